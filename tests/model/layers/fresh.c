/* SPDX-License-Identifier: MIT */
/*
 * Fresh timers: durable timers to which only the entry of their serial points (E109). Cancellers
 * and the I/O thread decide about one entry. In other harnesses two threads fill one lane, an entry
 * gets another serial while a canceller still has the old one, or the I/O thread sleeps.
 *
 * The timers are ordinary memory, and the free of a timer writes to it. So the model reports a race
 * if two threads own a timer, or if an owner does not see what the scheduler wrote.
 *
 * Seen to fail with these defects:
 * - twi_fresh_timer_put() stores the word without release, or twi_fresh_timer_absorb() loads it, or
 *   entry_take() swaps it, without acquire (durable_fresh_find);
 * - twi_fresh_timer_absorb() or entry_take() stores the word without a swap (durable_fresh_cancel,
 *   durable_fresh_reuse);
 * - twi_fresh_timer_absorb() does not compare the place (durable_fresh_cancel);
 * - chunk_claim() is without acquire, or chunk_free() without release (durable_fresh_reuse);
 * - lane_fill() fills the lane before it pushes the chunk, or does not say that it gives out only
 *   one serial of a chunk (durable_fresh_flush);
 * - unseen() returns one serial too few (all harnesses);
 * - twi_fresh_timer_absorb() subtracts all bytes of the timer (durable_fresh_sleep).
 */
#include "durable/batch.h"
#include "durable/fresh/table.h"
#include "durable/keep.h"
#include "durable/stage.h"
#include "model.h"

enum { OLD, NEW, TIMERS };

static struct tw_durable set;
static struct twi_fresh_chunk chunks[4];
static struct twi_durable_timer old_timer, new_timer;
static struct twi_durable_timer *const timers[TIMERS] = {&old_timer, &new_timer};
static struct tw_durable_id ids[TIMERS];
static struct twi_item requests[TIMERS];

/* Ordinary memory: only the owner of the timer, or the I/O thread, may access these. */
static unsigned given[TIMERS], freed[TIMERS], acked[TIMERS];
static bool cancelled[2];

/* The functions that this file replaces belong to files that the model does not have. */
void twi_timer_free(struct twi_durable_timer *timer)
{
	MODEL_CHECK(timer == timers[OLD] || timer == timers[NEW]);
	timer->due_ns = 0;
	freed[timer == timers[NEW]]++;
}

void twi_batch_absorbed(struct tw_durable *durable, struct tw_durable_id id, void *context)
{
	unsigned *count = context;

	(void)durable;
	MODEL_CHECK(id.serial == ids[count - acked].serial && id.place == 7);
	++*count;
}

void twi_batch_absorbed_tell(struct tw_durable *durable)
{
	(void)durable;
}

static void give(struct tw_durable *durable, struct twi_durable_timer *timer)
{
	MODEL_CHECK(timer->due_ns == 5);
	given[timer == timers[NEW]]++;
	durable->taken_bytes += (int64_t)twi_timer_bytes(timer);
}

static bool schedule(unsigned which)
{
	struct twi_durable_timer *timer = timers[which];
	struct twi_fresh_entry *entry = twi_fresh_timer_take(&set, &timer->id.serial);

	if (entry == NULL)
		return false;
	timer->due_ns = 5;
	timer->id.place = 7;
	timer->context = &acked[which];
	ids[which] = timer->id;
	twi_fresh_timer_put(&set, entry, timer);
	return true;
}

static void collect(void)
{
	(void)twi_fresh_timers_collect(&set, give);
	twi_stage_took(&set, set.taken_bytes);
	set.taken_bytes = 0;
}

static void open_with(uint64_t count)
{
	set.fresh_chunks = chunks;
	set.fresh_mask = count - 1;
	set.fresh_end = &set.fresh_open;
	/* In the model all threads have one lane. Later they only read its number. */
	(void)twi_lane_number();
	set.serial_next = TWI_DURABLE_CHUNK;
	set.serial_end = UINT64_C(100) * TWI_DURABLE_CHUNK;
}

static void open_one(void)
{
	open_with(4);
	MODEL_CHECK(schedule(OLD));
	MODEL_CHECK(!twi_fresh_timer_absorb(&set, (struct tw_durable_id){8, ids[OLD].serial}));
}

static void cancel_first(void)
{
	cancelled[0] = twi_fresh_timer_absorb(&set, ids[OLD]);
}

static void cancel_second(void)
{
	cancelled[1] = twi_fresh_timer_absorb(&set, ids[OLD]);
}

/* Checks that a timer has ended once, and that its canceller and its acknowledgement say so. */
static void ended_once(unsigned which, unsigned cancels)
{
	MODEL_CHECK(given[which] + freed[which] == 1);
	MODEL_CHECK(freed[which] == cancels && acked[which] == cancels);
}

static void one_ended(void)
{
	collect();
	ended_once(OLD, (unsigned)cancelled[0] + cancelled[1]);
	MODEL_CHECK(set.staged_bytes == 0);
	MODEL_CHECK(!twi_fresh_timer_absorb(&set, ids[OLD]));
}

MODEL_HARNESS(durable_fresh_cancel,
	      .proves = "two cancels of a fresh timer and the I/O thread: one owner, one answer",
	      .setup = open_one, .thread = {cancel_first, cancel_second, collect},
	      .finish = one_ended, .preemptions = 3, .weak = 2, .random_runs = 500);

/* The next harness: the canceller has learned the id in a way that orders nothing. */
static void schedule_old(void)
{
	MODEL_CHECK(schedule(OLD));
}

static void cancel_unordered(void)
{
	struct tw_durable_id id = {7, TWI_DURABLE_CHUNK};

	cancelled[0] = twi_fresh_timer_absorb(&set, id);
}

static void open_none(void)
{
	open_with(4);
}

MODEL_HARNESS(durable_fresh_find,
	      .proves = "a thread that finds a fresh timer by its id finds it complete",
	      .setup = open_none, .thread = {schedule_old, cancel_unordered, collect},
	      .finish = one_ended, .preemptions = 3, .weak = 2, .random_runs = 500);

/* The next harness: there is one chunk only, and the old timer has its last serial. */
static void open_last(void)
{
	open_with(1);
	for (int i = 1; i < TWI_DURABLE_CHUNK; i++) {
		MODEL_CHECK(schedule(OLD));
		MODEL_CHECK(twi_fresh_timer_absorb(&set, ids[OLD]));
		collect();
	}
	freed[OLD] = acked[OLD] = 0;
	MODEL_CHECK(schedule(OLD));
}

static bool scheduled;

static void schedule_next(void)
{
	scheduled = schedule(NEW);
}

static void reused(void)
{
	collect();
	ended_once(OLD, cancelled[0]);
	MODEL_CHECK(given[NEW] == scheduled && freed[NEW] == 0);
	if (!scheduled)
		MODEL_CHECK(schedule(NEW));
}

MODEL_HARNESS(durable_fresh_reuse,
	      .proves = "a canceller with an old id never ends the timer of the next serial",
	      .setup = open_last, .thread = {cancel_first, collect, schedule_next},
	      .finish = reused, .preemptions = 3, .weak = 2, .random_runs = 500);

/* The next harness: two threads of one lane schedule, and then flush. */
static unsigned flushed;
static bool done[TIMERS];

static void schedule_and_flush(unsigned which)
{
	/*
	 * A thread that reads an old `serial_next` may find no entry. Then it has no timer to
	 * flush.
	 */
	done[which] = schedule(which);
	if (!done[which])
		return;
	twi_handover_push(&set.staging, &requests[which].link);
}

static void flush_old(void)
{
	schedule_and_flush(OLD);
}

static void flush_new(void)
{
	schedule_and_flush(NEW);
}

/* Makes one step of the I/O thread, with the steps of take.c. */
static void step(void)
{
	struct twi_handover_link *link = twi_handover_take(&set.staging);

	collect();
	for (; link != NULL; link = link->next, flushed++)
		MODEL_CHECK(given[(struct twi_item *)(void *)link - requests] == 1);
}

static void two_steps(void)
{
	step();
	step();
}

static void both_flushed(void)
{
	step();
	MODEL_CHECK(done[OLD] || done[NEW]);
	MODEL_CHECK(flushed == (unsigned)done[OLD] + done[NEW]);
	MODEL_CHECK(given[OLD] == done[OLD] && given[NEW] == done[NEW]);
	MODEL_CHECK(ids[OLD].serial != ids[NEW].serial);
	MODEL_CHECK(set.staged_bytes == 0 && !twi_fresh_timers_any(&set));
	/* If both threads took a chunk, only one chunk is the lane's. The other is free again. */
	MODEL_CHECK(set.fresh_open != NULL && set.fresh_open->next == NULL);
}

MODEL_HARNESS(durable_fresh_flush,
	      .proves = "the I/O thread has each timer of a thread before its flush",
	      .setup = open_none, .thread = {flush_old, flush_new, two_steps},
	      .finish = both_flushed, .preemptions = 2, .weak = 2, .random_runs = 500);

/* The next harness: the I/O thread sleeps, and must learn of a timer that was absorbed. */
static void schedule_and_cancel(void)
{
	MODEL_CHECK(schedule(OLD));
	cancelled[0] = twi_fresh_timer_absorb(&set, ids[OLD]);
}

static void sleep_for_work(void)
{
	while (given[OLD] + acked[OLD] == 0) {
		twi_stage_begin(&set);
		collect();
		if (given[OLD] + acked[OLD] != 0)
			break;
		twi_stage_sleep(&set, TWI_ASLEEP_IDLE, INT64_MAX);
	}
}

static void slept(void)
{
	ended_once(OLD, cancelled[0]);
}

MODEL_HARNESS(durable_fresh_sleep, .proves = "no fresh timer is left beside a sleeper",
	      .setup = open_none, .thread = {schedule_and_cancel, sleep_for_work}, .finish = slept,
	      .preemptions = 2, .weak = 2, .any_order = true, .random_runs = 500);
