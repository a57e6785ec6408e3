/* SPDX-License-Identifier: MIT */
/*
 * Races reschedule against cancel and the worker. usage: race_reschedule [operations] [seed]
 * [wheel: 0 hashed, 1 hierarchical] [seconds]. Ends after this many operations or seconds (0: no
 * bound). Busy machines need the bound in seconds: the threads yield to each other, and on such a
 * machine other programs run each time.
 *
 * Two threads share a few hundred places, each with the handle of a timeout. The mover changes
 * deadlines, to later and to earlier ones, most of them close to now. The filler cancels, and
 * refills places after their timeouts have ended. The mover also uses handles that became stale
 * long ago.
 *
 * Allowed outcomes: each timeout ends exactly once, by its callback, by a cancel that returned
 * "done", or by stop's hand-back. A callback runs no earlier than the last deadline that was
 * reported as done. No reschedule returns "done" if its timeout had ended before the call began.
 *
 * How the callback knows the last deadline: each timeout has one mover. Before a call, the mover
 * writes the deadline that it asks for (`asked`). After the call, it writes the deadline that it
 * got (`told`). It increments a count before the first of these writes and after the second. If a
 * callback finds the same even count before and after its look, `told` is the deadline in effect.
 * If a call is under way, the earlier of the two deadlines counts.
 *
 * Seen to fail with these defects:
 * - pair_swap() is a load and two stores with a delay in between, or a store of the deadline and a
 *   swap of the state word (a timeout has an end that no call reported, and the engine's counters
 *   are wrong);
 * - node_expire() expires a rescheduled timeout by a swap of the state word alone (a callback runs
 *   before the last deadline).
 */
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <tickwheel.h>

/* Each place may have `LIVES` timeouts, enough for 10 M operations. */
enum { PLACES = 256, LIVES = 8192, TICK_NS = 20000 };

/*
 * One timeout of a place. Each timeout has its own struct, so that a callback, or a thread with a
 * stale handle, finds the struct of its own timeout.
 */
struct life {
	_Atomic uint64_t count;   /* odd while the mover is in a call */
	_Atomic int64_t told_ns;  /* the deadline in effect, as reported */
	_Atomic int64_t asked_ns; /* the deadline that the current call asks for */
	_Atomic uint32_t ends;    /* how often it ended */
	_Atomic bool cancelled;   /* whether a cancel has returned "done" */
};

/*
 * A sequence lock around a handle. The struct of the handle's timeout is lives[place][sequence /
 * 2].
 */
struct place {
	_Atomic uint64_t sequence;
	_Atomic uintptr_t node;
	_Atomic uint64_t generation;
};

static struct tw_engine *engine;
static struct place places[PLACES];
static struct life lives[PLACES][LIVES];
static uint64_t operations;
static int64_t until_ns; /* when the program must end; 0: no bound */
static _Atomic uint64_t moved;
static _Atomic bool over;
static _Atomic uint64_t expired, unexpired;
static uint64_t accepted, cancelled, too_late, stale_cancels;
static uint64_t done_later, done_earlier, moved_too_late[4], stale_moves;

static void life_end(struct life *life)
{
	RACE_CHECK(atomic_fetch_add(&life->ends, 1) == 0);
}

/* Returns the earliest deadline that can be in effect. */
static int64_t earliest_ns(struct life *life)
{
	uint64_t before, after;
	int64_t told_ns, asked_ns;

	do {
		before = atomic_load(&life->count);
		told_ns = atomic_load(&life->told_ns);
		asked_ns = atomic_load(&life->asked_ns);
		after = atomic_load(&life->count);
	} while (before != after);
	return before % 2 != 0 && asked_ns < told_ns ? asked_ns : told_ns;
}

static void on_expire(struct tw_handle self, void *arg)
{
	struct life *life = arg;
	int64_t now_ns = tw_engine_now(engine);

	(void)self;
	RACE_CHECK(now_ns > earliest_ns(life));
	RACE_CHECK(!atomic_load(&life->cancelled));
	life_end(life);
	atomic_fetch_add(&expired, 1);
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	struct life *life = arg;

	(void)context;
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	life_end(life);
	atomic_fetch_add(&unexpired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static int64_t near_ns(uint64_t *random)
{
	return (int64_t)(race_random(random) % (race_random(random) % 8 == 0 ? 2000000 : 60000));
}

/*
 * Refills a place, which only the filler does. Returns false if the place has used up its structs.
 */
static bool place_fill(struct place *place, uint64_t *random)
{
	uint64_t sequence = atomic_load(&place->sequence);
	struct life *life;
	struct tw_handle handle;
	int64_t deadline_ns = tw_engine_now(engine) + near_ns(random);

	if (sequence / 2 + 1 >= LIVES)
		return false;
	life = &lives[place - places][sequence / 2 + 1];
	atomic_store(&life->told_ns, deadline_ns);
	RACE_CHECK(tw_schedule_at(engine, deadline_ns, &kind, life, &handle) == 0);
	accepted++;
	atomic_store(&place->sequence, sequence + 1);
	atomic_store(&place->node, (uintptr_t)handle.node);
	atomic_store(&place->generation, handle.generation);
	atomic_store(&place->sequence, sequence + 2);
	return true;
}

static struct life *place_read(struct place *place, struct tw_handle *ret_handle)
{
	uint64_t sequence = atomic_load(&place->sequence);

	ret_handle->node = (void *)atomic_load(&place->node);
	ret_handle->generation = atomic_load(&place->generation);
	if (sequence == 0 || sequence % 2 != 0 || atomic_load(&place->sequence) != sequence)
		return NULL;
	return &lives[place - places][sequence / 2];
}

static void one_cancel(struct place *place)
{
	struct tw_handle handle;
	struct life *life = place_read(place, &handle);
	int outcome = tw_cancel(handle);

	switch (outcome) {
	case TW_CANCEL_DONE:
		atomic_store(&life->cancelled, true);
		life_end(life);
		cancelled++;
		break;
	case TW_CANCEL_STALE:
		stale_cancels++;
		break;
	default:
		RACE_CHECK(outcome == TW_CANCEL_EXPIRED || outcome == TW_CANCEL_RUNNING);
		too_late++;
	}
}

static void *filler_main(void *argument)
{
	uint64_t random = (uint64_t)(uintptr_t)argument * 77 + 5;

	while (!atomic_load(&over)) {
		struct place *place = &places[race_random(&random) % PLACES];
		struct tw_handle handle;
		struct life *life = place_read(place, &handle);

		/*
		 * Refills a place whose timeout has ended. But if this thread is far ahead of the
		 * mover, it waits, because it could use up the structs.
		 */
		if (life == NULL || atomic_load(&life->ends) != 0) {
			if (accepted > atomic_load(&moved) / 8 + 2 * PLACES ||
			    !place_fill(place, &random))
				(void)sched_yield();
		} else if (race_random(&random) % 64 == 0) {
			one_cancel(place);
		}
	}
	return NULL;
}

/* Counts the outcome and checks it against the known facts. */
static void move_account(struct life *life, int outcome, bool ended_before, int64_t deadline_ns)
{
	if (outcome == TW_RESCHEDULE_DONE) {
		RACE_CHECK(!ended_before);
		if (deadline_ns >= atomic_load(&life->told_ns))
			done_later++;
		else
			done_earlier++;
		atomic_store(&life->told_ns, deadline_ns);
		return;
	}
	if (outcome == -ESTALE) {
		stale_moves++;
		return;
	}
	RACE_CHECK(outcome > 0 && outcome <= TW_RESCHEDULE_RUNNING);
	moved_too_late[outcome]++;
}

static void one_move(struct life *life, struct tw_handle handle, uint64_t *random)
{
	bool ended_before = atomic_load(&life->ends) != 0;
	bool by_delay = race_random(random) % 4 == 0;
	int64_t delay_ns = near_ns(random);
	int64_t deadline_ns = tw_engine_now(engine) + delay_ns;
	int outcome;

	atomic_store(&life->asked_ns, deadline_ns);
	atomic_fetch_add(&life->count, 1);
	/*
	 * If the call is by a delay, the real deadline is slightly later than the one that was
	 * written.
	 */
	outcome =
		by_delay ? tw_reschedule(handle, delay_ns) : tw_reschedule_at(handle, deadline_ns);
	move_account(life, outcome, ended_before, deadline_ns);
	atomic_fetch_add(&life->count, 1);
}

/* Reads the clock only on some rounds. */
static bool time_is_over(uint64_t rounds)
{
	return rounds % 64 == 0 && until_ns != 0 && race_now_ns() >= until_ns;
}

/*
 * Returns whether more moves are needed. On a busy machine the worker may get no processor for so long
 * that all moves are made before a timeout expires.
 */
static bool moves_missing(uint64_t moves)
{
	return moves < operations || atomic_load(&expired) == 0;
}

static void mover_run(uint64_t seed)
{
	uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	struct tw_handle kept[PLACES] = {{0}};
	struct life *kept_life[PLACES] = {NULL};
	uint64_t ended_count = 0;
	uint64_t rounds = 0;

	for (uint64_t moves = 0; moves_missing(moves) && !time_is_over(rounds++);) {
		size_t at = race_random(&random) % PLACES;
		bool ended;

		/* Sometimes keeps the old handle instead of the place's present one. */
		if (kept_life[at] == NULL || race_random(&random) % 8 != 0)
			kept_life[at] = place_read(&places[at], &kept[at]);
		ended = kept_life[at] == NULL || atomic_load(&kept_life[at]->ends) != 0;
		/*
		 * The other threads are slower than this one. If there are few CPUs, this thread
		 * lets them run.
		 */
		if (ended && ++ended_count % 16 == 0)
			(void)sched_yield();
		/* Mostly skips a handle whose timeout has ended. */
		if (kept_life[at] == NULL || (ended && race_random(&random) % 8 != 0))
			continue;
		one_move(kept_life[at], kept[at], &random);
		moves++;
		atomic_store_explicit(&moved, moves, memory_order_relaxed);
	}
}

static void engine_make(uint64_t wheel)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	options.slots = 16;
	options.wheel = wheel == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
	options.check = TW_CHECK_FULL;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
}

static void all_account(void)
{
	struct tw_stats stats = {.size = sizeof stats};
	uint64_t moves = done_later + done_earlier + stale_moves;

	for (int i = 0; i < 4; i++)
		moves += moved_too_late[i];
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	printf("moves %" PRIu64 " = later %" PRIu64 " + earlier %" PRIu64 " + cancelled %" PRIu64
	       " + expired %" PRIu64 " + running %" PRIu64 " + stale %" PRIu64 "; accepted %" PRIu64
	       " = expired %" PRIu64 " + cancelled %" PRIu64 " + handed back %" PRIu64
	       "; cancels too late %" PRIu64 ", stale %" PRIu64 "\n",
	       moves, done_later, done_earlier, moved_too_late[TW_RESCHEDULE_CANCELLED],
	       moved_too_late[TW_RESCHEDULE_EXPIRED], moved_too_late[TW_RESCHEDULE_RUNNING],
	       stale_moves, accepted, expired, cancelled, unexpired, too_late, stale_cancels);
	RACE_CHECK(accepted == expired + cancelled + unexpired);
	RACE_CHECK(stats.scheduled == accepted && stats.expired == expired);
	RACE_CHECK(stats.cancelled == cancelled && stats.unexpired == unexpired);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
	RACE_CHECK(done_later > 0 && done_earlier > 0 && expired > 0);
}

int main(int argc, char **argv)
{
	pthread_t filler;
	uint64_t seed = race_argument(argc, argv, 2, 1);
	uint64_t seconds = race_argument(argc, argv, 4, 0);

	operations = race_size(argc, argv, 1, 200000);
	until_ns = seconds > 0 ? race_now_ns() + (int64_t)seconds * 1000000000 : 0;
	race_watchdog(1200);
	engine_make(race_argument(argc, argv, 3, 0));
	for (size_t i = 0; i < PLACES; i++)
		RACE_CHECK(place_fill(&places[i], &(uint64_t){seed + i + 1}));
	RACE_CHECK(pthread_create(&filler, NULL, filler_main, (void *)(uintptr_t)seed) == 0);
	mover_run(seed);
	atomic_store(&over, true);
	RACE_CHECK(pthread_join(filler, NULL) == 0);
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	all_account();
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	return 0;
}
