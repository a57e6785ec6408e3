/* SPDX-License-Identifier: MIT */
/*
 * A commit, a cancel, a run, a completion and a look-up access the state word of one durable timer
 * at the same time. Other harnesses test the sleep of the I/O thread, a caller that waits for it, a
 * close that waits for callbacks, serial numbers, and claims of a file (E101 to E108).
 *
 * The threads make the same steps as src/durable, in the same order. The timer's fields are
 * ordinary memory, so the model reports a race if a step is unordered. There is no store. Counters
 * stand for the contents of a store.
 *
 * Seen to fail with these defects:
 * - twi_durable_swap() is without release, or without acquire (durable_move, durable_commit);
 * - twi_slot_take() puts a timer into `set->slots` without release, or twi_timer_find() loads it
 *   without acquire (durable_find);
 * - twi_stage_begin() clears the mark of a caller that waits by a load and a store
 *   (durable_urgent).
 */
#include "durable/file/claim.h"
#include "durable/request.h"
#include "durable/run.h"
#include "durable/stage.h"
#include "model.h"
#include "thread/rcu.h"

static struct tw_durable set;
static struct twi_durable_timer one;
static _Atomic(struct twi_durable_timer *) slots[1];

/* Ordinary memory: only the thread that owns the timer may access these. */
static unsigned ran, stored, deleted, absorbed;
static bool cancelled, asked, started;
static uint64_t ended_word;

static void open_set(void)
{
	set.slots = slots;
	set.slot_mask = 0;
	set.hash = model_hash_new();
	one.id = (struct tw_durable_id){0, 1};
	one.due_ns = 5;
	MODEL_CHECK(twi_slot_take(&set, &one));
}

static void open_staged(void)
{
	open_set();
	twi_handover_push(&set.staging, &one.item.link);
}

static void push(void)
{
	twi_handover_push(&set.staging, &one.item.link);
}

/* Runs the timer with the steps of run.c. */
static void due(void)
{
	if (!twi_durable_hold(&one.word))
		return;
	MODEL_CHECK(one.due_ns == 5 || one.due_ns == 6);
	if (twi_durable_let_go(&one.word, TWI_DURABLE_RUNNING, 0, true))
		push();
	ran++;
	one.next_ns = 7;
	bool over;

	if (twi_durable_finish(&one.word, TWI_RESULT_DONE, &over))
		push();
	MODEL_CHECK(over);
}

/* Cancels the timer with the steps of change.c. */
static void cancel(void)
{
	struct twi_durable_timer *timer;
	uint64_t word = 0;

	twi_rcu_enter();
	timer = twi_timer_find(&set, (struct tw_durable_id){0, 1});
	if (timer != NULL)
		cancelled = twi_durable_revoke(&timer->word, &word);
	twi_rcu_leave();
	asked = cancelled && twi_durable_place(word) != TWI_DURABLE_STAGED;
}

/*
 * Cancels with the steps of change.c. First it tries to absorb the timer, which works only while no
 * commit has it.
 */
static void cancel_staged(void)
{
	struct twi_durable_timer *timer;
	uint64_t word = 0;

	twi_rcu_enter();
	timer = twi_timer_find(&set, (struct tw_durable_id){0, 1});
	if (timer != NULL)
		cancelled = twi_durable_absorb(&timer->word, &word);
	twi_rcu_leave();
	if (cancelled)
		MODEL_CHECK(twi_durable_place(word) == TWI_DURABLE_STAGED);
	else
		cancel();
}

static bool begun(uint64_t word)
{
	return twi_durable_state(word) == TWI_DURABLE_RUNNING ||
	       twi_durable_state(word) == TWI_DURABLE_PENDING;
}

/*
 * Makes one round of the I/O thread, with the steps of take.c and settle.c: handles one pushed
 * timer, if there is one.
 */
static void io_once(void)
{
	struct twi_handover_link *link = twi_handover_take(&set.staging);
	uint64_t word;

	if (link == NULL)
		return;
	MODEL_CHECK(link->next == NULL);
	word = twi_durable_look(&one.word);
	if (twi_durable_place(word) == TWI_DURABLE_STAGED) {
		bool pushes;

		if (!twi_durable_take(&one.word, &ended_word)) {
			absorbed++;
			return;
		}
		stored++;
		started = begun(ended_word);
		(void)twi_durable_keep(&one.word, started, &pushes);
		if (pushes)
			push();
		return;
	}
	word = twi_durable_place_set(&one.word, TWI_DURABLE_KEPT);
	started = started || begun(word);
	if (twi_durable_state(word) == TWI_DURABLE_ENDED &&
	    twi_durable_result(word) == TWI_RESULT_DONE) {
		MODEL_CHECK(one.next_ns == 7);
		deleted++;
	}
}

static void commit(void)
{
	io_once();
	io_once();
}

/* Makes the step of the I/O thread that moves a kept timer to another deadline. */
static void move(void)
{
	if (!twi_durable_hold(&one.word))
		return;
	one.due_ns = 6;
	MODEL_CHECK(!twi_durable_let_go(&one.word, TWI_DURABLE_WAITING, 0, false));
}

/*
 * Checks that the timer ran or was cancelled, once. If its end reached the I/O thread before the
 * commit, the store never got the timer.
 */
static void ended_once(void)
{
	for (int i = 0; i < 3; i++)
		io_once();
	MODEL_CHECK(ran + cancelled == 1);
	MODEL_CHECK(twi_durable_state(one.word) == TWI_DURABLE_ENDED);
	MODEL_CHECK(stored + absorbed == 1);
	if (cancelled)
		MODEL_CHECK(asked == (stored == 1) && deleted == 0);
	else
		MODEL_CHECK(deleted == stored);
}

static void cancelled_or_not(void)
{
	due();
	ended_once();
}

static void open_kept(void)
{
	open_set();
	one.word = TWI_DURABLE_KEPT;
	stored = 1;
}

static void moved_and_ended(void)
{
	if (!cancelled && ran == 0)
		due();
	ended_once();
}

MODEL_HARNESS(durable_commit,
	      .proves = "a commit, a cancel and a run: one end, which the owner learns",
	      .setup = open_staged, .thread = {commit, cancel, due}, .finish = ended_once,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(durable_cancel, .proves = "a cancel and the commit, with a run afterwards: one end",
	      .setup = open_staged, .thread = {commit, cancel_staged}, .finish = cancelled_or_not,
	      .preemptions = 3, .weak = 2, .random_runs = 500);
MODEL_HARNESS(durable_move, .proves = "a move, a cancel and a run of a stored timer: one end",
	      .setup = open_kept, .thread = {move, cancel, due}, .finish = moved_and_ended,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/* In the next harness, two completions race against the return of the callback. */
static bool over;
static enum twi_durable_completed completed[2];

static void open_running(void)
{
	open_set();
	one.word = TWI_DURABLE_KEPT | (uint64_t)TWI_DURABLE_RUNNING;
	stored = 1;
}

static void come_back(void)
{
	one.next_ns = 7;
	if (twi_durable_finish(&one.word, TWI_RESULT_NONE, &over))
		push();
}

static void complete_as(unsigned who)
{
	uint64_t word = twi_durable_look(&one.word);
	bool pushes;

	completed[who] = twi_durable_complete(&one.word, word, TWI_RESULT_DONE, &pushes);
	if (pushes)
		push();
}

static void complete_first(void)
{
	complete_as(0);
}

static void complete_second(void)
{
	complete_as(1);
}

static void completed_once(void)
{
	commit();
	MODEL_CHECK((completed[0] == TWI_COMPLETED_STALE) != (completed[1] == TWI_COMPLETED_STALE));
	MODEL_CHECK(over ==
		    (completed[0] == TWI_COMPLETED_EARLY || completed[1] == TWI_COMPLETED_EARLY));
	MODEL_CHECK(deleted == 1);
}

MODEL_HARNESS(durable_complete,
	      .proves = "two completions and the callback's return: one result, pushed once",
	      .setup = open_running, .thread = {come_back, complete_first, complete_second},
	      .finish = completed_once, .preemptions = 2, .weak = 1, .random_runs = 500);

/* Looks up the timer while another thread frees its memory. */
static void find(void)
{
	struct twi_durable_timer *timer;

	twi_rcu_enter();
	timer = twi_timer_find(&set, (struct tw_durable_id){0, 1});
	if (timer != NULL)
		MODEL_CHECK(timer->due_ns == 5);
	twi_rcu_leave();
}

static void make_and_free(void)
{
	one.id = (struct tw_durable_id){0, 1};
	one.due_ns = 5;
	MODEL_CHECK(twi_slot_take(&set, &one));
	twi_slot_clear(&set, &one);
	twi_rcu_synchronize();
	one.due_ns = 0;
}

static void open_empty(void)
{
	set.slots = slots;
	set.hash = model_hash_new();
}

MODEL_HARNESS(durable_find,
	      .proves = "a timer that a look-up returns is complete until the look-up ends",
	      .setup = open_empty, .thread = {find, make_and_free}, .preemptions = 2, .weak = 2,
	      .random_runs = 500);

/*
 * The next harnesses test the sleep of the I/O thread. `seen` is set when that thread has taken the
 * staged timer.
 */
static bool seen;

static void stage(void)
{
	twi_stage(&set, &one.item, 1, false);
}

static void stage_and_wait(void)
{
	twi_stage(&set, &one.item, 1, true);
}

static void sleep_for_work(void)
{
	while (twi_handover_empty(&set.staging)) {
		twi_stage_begin(&set);
		if (twi_handover_take(&set.staging) != NULL)
			break;
		twi_stage_sleep(&set, TWI_ASLEEP_IDLE, INT64_MAX);
	}
	seen = true;
}

/*
 * Makes the I/O thread's steps while its commit window is open. The thread sleeps although a timer
 * is staged, until a caller waits.
 */
static void sleep_for_window(void)
{
	for (;;) {
		twi_stage_begin(&set);
		if (twi_handover_take(&set.staging) != NULL)
			break;
		twi_stage_sleep(&set, TWI_ASLEEP_WINDOW, INT64_MAX);
	}
	twi_stage_took(&set, 1);
	seen = true;
}

static void seen_in_time(void)
{
	MODEL_CHECK(seen);
}

MODEL_HARNESS(durable_sleep, .proves = "the I/O thread does not sleep while a timer is staged",
	      .setup = open_empty, .thread = {stage, sleep_for_work}, .finish = seen_in_time,
	      .preemptions = 2, .weak = 2, .any_order = true, .random_runs = 500);
MODEL_HARNESS(durable_urgent, .proves = "a caller that waits ends the commit window",
	      .setup = open_empty, .thread = {stage_and_wait, sleep_for_window},
	      .finish = seen_in_time, .preemptions = 2, .weak = 2, .any_order = true,
	      .random_runs = 500);

/* In the next harness, a caller asks the I/O thread and waits for the answer, or gives up. */
static struct twi_request request;
static unsigned frees;
static int got;

/* Replaces the library's function, which frees memory that the model does not know. */
void twi_request_free(struct twi_request *freed)
{
	MODEL_CHECK(freed == &request);
	request.result = 0;
	frees++;
}

static void ask(void)
{
	got = twi_request_ask(&set, &request, 1000);
	if (got == 0) {
		MODEL_CHECK(request.result == -5);
		twi_request_free(&request);
	}
}

static void answer(void)
{
	while (twi_handover_take(&set.staging) == NULL)
		model_wait_idle();
	twi_request_answer(&request, -5);
}

static void freed_once(void)
{
	MODEL_CHECK(frees == 1);
}

MODEL_HARNESS(durable_ask, .proves = "an answer is complete, and its request is freed once",
	      .setup = open_empty, .thread = {ask, answer}, .finish = freed_once, .preemptions = 2,
	      .weak = 2, .random_runs = 500);

/* In the next harness, the close of the set waits for callbacks. */
static unsigned memory;
static bool gone;

static void open_inside(void)
{
	open_empty();
	twi_run_enter(&set);
}

static void callback(void)
{
	memory++;
	twi_run_exit(&set);
}

static void close_it(void)
{
	if (twi_run_any(&set))
		return;
	MODEL_CHECK(memory == 1);
	gone = true;
}

MODEL_HARNESS(durable_close,
	      .proves = "when the close continues, it sees everything that callbacks wrote",
	      .setup = open_inside, .thread = {callback, close_it}, .preemptions = 2, .weak = 2,
	      .random_runs = 500);

/*
 * Begins a run during the commit. The run then waits for its completion. The commit must store that
 * it has started.
 */
static void due_pending(void)
{
	bool ends;

	if (!twi_durable_hold(&one.word))
		return;
	if (twi_durable_let_go(&one.word, TWI_DURABLE_RUNNING, 0, true))
		push();
	if (twi_durable_finish(&one.word, TWI_RESULT_NONE, &ends))
		push();
}

static void start_is_stored(void)
{
	for (int i = 0; i < 3; i++)
		io_once();
	MODEL_CHECK(twi_durable_state(one.word) == TWI_DURABLE_PENDING);
	MODEL_CHECK(started);
}

MODEL_HARNESS(durable_start,
	      .proves = "the I/O thread learns of a run that began during the commit",
	      .setup = open_staged, .thread = {io_once, due_pending}, .finish = start_is_stored,
	      .preemptions = 3, .weak = 2, .random_runs = 500);

/* A new reservation of serial numbers does not begin where the old one ended. */
#define OLD_END (UINT64_C(2) * TWI_DURABLE_CHUNK)
#define NEW_FIRST (UINT64_C(100) * TWI_DURABLE_CHUNK)

static void open_used_up(void)
{
	set.serial_next = OLD_END;
	set.serial_end = OLD_END;
}

static void reserve(void)
{
	twi_serial_give(&set, NEW_FIRST, NEW_FIRST + 4 * TWI_DURABLE_CHUNK);
}

static void take_serial(void)
{
	uint64_t serial;

	if (twi_serial_take(&set, &serial))
		MODEL_CHECK(serial >= NEW_FIRST);
}

MODEL_HARNESS(durable_serials, .proves = "no serial number lies between two reservations",
	      .setup = open_used_up, .thread = {reserve, take_serial}, .preemptions = 2, .weak = 2,
	      .random_runs = 500);

/* In the next harness, two threads claim one file. */
static _Atomic uint32_t file_owners;
static int claims[2];

static void claim_as(unsigned who)
{
	claims[who] = twi_claim_take(1, 2);
	if (claims[who] < 0)
		return;
	MODEL_CHECK(twi_fetch_add_relaxed(&file_owners, 1) == 0);
	(void)twi_fetch_sub_relaxed(&file_owners, 1);
	twi_claim_drop(claims[who]);
}

static void claim_first(void)
{
	claim_as(0);
}

/*
 * Claims the file as the second thread. Before that, another file, which open_first_taken has put
 * into place 0, leaves that place. So the two claimants may take different places, and neither has
 * looked at the other's place yet.
 */
static void claim_second(void)
{
	twi_claim_drop(0);
	claim_as(1);
}

static void open_first_taken(void)
{
	MODEL_CHECK(twi_claim_take(8, 9) == 0);
}

static void places_are_free(void)
{
	MODEL_CHECK(twi_claim_take(1, 2) == 0);
	twi_claim_drop(0);
}

MODEL_HARNESS(durable_claim, .proves = "in a process, one file has one owner",
	      .setup = open_first_taken, .thread = {claim_first, claim_second},
	      .finish = places_are_free, .preemptions = 3, .weak = 2, .any_order = true,
	      .random_runs = 500);
