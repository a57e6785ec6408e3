/* SPDX-License-Identifier: MIT */
/*
 * usage: race_fork [forks] [seed] [wheel] [seconds] [patience]
 *
 * The process forks at random moments. Meanwhile threads schedule, one by one and in batches,
 * cancel and reschedule, and a worker runs the callbacks. For a second engine, in loop mode, its
 * owner does all of that alone. Each child takes over both engines with their timeouts and checks
 * them:
 *
 *     - a call that had returned is visible: a timeout that was scheduled and neither cancelled nor
 *       run is pending under its handle, with its argument and the last deadline; others are not
 *       pending
 *     - a call that was under way has taken effect or not
 *     - if the parent was about to begin a callback, that timeout is lost to the child: one at most
 *
 * Then the child moves the clock. Each timeout must run once, and each chain more than once.
 *
 * Seen to fail with these defects: a timeout is pending before its fields are written, so cancelled
 * timeouts run; the child does not take over timeouts in INIT; it gives a chain's block to the
 * pool; it takes over a RUNNING timeout, which then runs twice.
 */
#include "heir_memory.h"
#include "heir_threads.h"
#include "race.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tickwheel.h>
#include <time.h>
#include <unistd.h>

enum {
	PRODUCERS = 3,
	CELLS = 48, /* how many cells each producer has */
	BATCH = 6,
	TICK_NS = 1000000,
};

#define FAR_NS INT64_C(1000000000000)

/*
 * How many seconds a child may wait for its engine. The child itself may take three times as long.
 */
static int64_t patience_s = 20;

/* The call that the cell's thread has made, or is about to make. */
enum step { IDLE, SCHEDULING, SCHEDULED, MOVING, CANCELLING };

struct cell {
	_Atomic uint32_t step;
	/* whether it has run in the parent; a chain may still run in the child */
	atomic_bool ran;
	atomic_int child_runs;
	bool chain;
	_Atomic int64_t deadline_ns;
	struct tw_handle handle;
};

struct producer {
	struct cell cell[CELLS];
	struct tw_engine *engine;
	uint64_t random;
	bool owner; /* whether it is the owner of the loop */
	pthread_t thread;
};

static struct producer producers[PRODUCERS + 1];
static struct tw_engine *engine, *looped;
static struct tw_clock *clock_of_engine, *clock_of_loop;
static atomic_bool over;
static _Atomic uint32_t begun; /* how many producers have begun; see heir_memory.h */
static atomic_bool resting;    /* whether a child is at work */
static bool in_child;
static _Atomic int64_t now_ns = TICK_NS;
static uint64_t kept, lost, open_steps;

static int64_t patience_ns(void)
{
	return patience_s * 1000000000;
}

/* Takes some time in the parent, so that forks find the callback running. */
static void on_due(struct tw_handle self, void *arg)
{
	struct cell *cell = arg;
	int64_t until_ns = race_now_ns() + 5000;

	(void)self;
	if (in_child) {
		atomic_fetch_add(&cell->child_runs, 1);
		return;
	}
	atomic_store(&cell->ran, true);
	while (race_now_ns() < until_ns)
		;
}

static const struct tw_kind kind = TW_KIND(on_due, NULL);
static const struct tw_kind owners_kind = TW_KIND_OWNER_ONLY(on_due, NULL);

/* Chooses a deadline. The near ones are due while the program runs. */
static int64_t deadline_choose(struct producer *producer)
{
	uint64_t bits = race_random(&producer->random);

	if (bits % 4 == 0)
		return atomic_load(&now_ns) + (int64_t)(bits / 4 % (4 * TICK_NS));
	return FAR_NS + (int64_t)(bits / 4 % 1000 * TICK_NS);
}

static void chain_schedule(struct producer *producer, struct cell *cell)
{
	struct tw_period period = TW_PERIOD_RATE(3 * TICK_NS);

	period.missed = TW_MISSED_SKIP;
	RACE_CHECK(tw_schedule_periodic(producer->engine, &period, &kind, cell, &cell->handle) ==
		   0);
}

static void cell_schedule(struct producer *producer, struct cell *cell)
{
	uint64_t bits = race_random(&producer->random);
	int64_t deadline_ns = deadline_choose(producer);
	const struct tw_kind *own = producer->owner && bits % 2 == 0 ? &owners_kind : &kind;

	cell->chain = bits % 8 == 1;
	atomic_store(&cell->ran, false);
	atomic_store(&cell->deadline_ns, deadline_ns);
	atomic_store(&cell->step, SCHEDULING);
	if (cell->chain)
		chain_schedule(producer, cell);
	else
		RACE_CHECK(tw_schedule_at(producer->engine, deadline_ns, own, cell,
					  &cell->handle) == 0);
	atomic_store(&cell->step, SCHEDULED);
}

/* Schedules some idle cells by one call. */
static void cells_schedule(struct producer *producer, struct cell *first)
{
	struct tw_handle handles[BATCH];
	struct tw_item items[BATCH] = {{0}};
	struct cell *cells[BATCH];
	size_t count = 0;

	for (struct cell *cell = first; cell < producer->cell + CELLS && count < BATCH; cell++) {
		int64_t deadline_ns = deadline_choose(producer);

		if (atomic_load(&cell->step) != IDLE)
			continue;
		cell->chain = false;
		atomic_store(&cell->ran, false);
		atomic_store(&cell->deadline_ns, deadline_ns);
		atomic_store(&cell->step, SCHEDULING);
		cells[count] = cell;
		items[count++] = (struct tw_item){deadline_ns, &kind, cell};
	}
	RACE_CHECK(tw_schedule_many_at(producer->engine, items, count, handles, NULL) ==
		   (int)count);
	for (size_t i = 0; i < count; i++) {
		cells[i]->handle = handles[i];
		atomic_store(&cells[i]->step, SCHEDULED);
	}
}

static void cell_cancel(struct cell *cell)
{
	int outcome;

	atomic_store(&cell->step, CANCELLING);
	outcome = tw_cancel_wait(cell->handle, TW_NEVER);
	RACE_CHECK(outcome >= 0);
	/* If the callback ran at all, it ended before the cancel returned. */
	atomic_store(&cell->step, IDLE);
}

static void cell_move(struct producer *producer, struct cell *cell)
{
	int64_t deadline_ns = deadline_choose(producer);

	atomic_store(&cell->step, MOVING);
	if (tw_reschedule_at(cell->handle, deadline_ns) == TW_RESCHEDULE_DONE)
		atomic_store(&cell->deadline_ns, deadline_ns);
	atomic_store(&cell->step, SCHEDULED);
}

static void producer_step(struct producer *producer)
{
	uint64_t bits = race_random(&producer->random);
	struct cell *cell = &producer->cell[bits % CELLS];

	if (atomic_load(&cell->step) == IDLE && bits >> 40 & 1)
		cells_schedule(producer, cell);
	else if (atomic_load(&cell->step) == IDLE)
		cell_schedule(producer, cell);
	else if (bits / CELLS % 4 != 0 || cell->chain)
		cell_cancel(cell);
	else
		cell_move(producer, cell);
}

static void rest(void)
{
	while (atomic_load(&resting))
		(void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void *producer_body(void *arg)
{
	struct producer *producer = arg;
	uint64_t steps = 0;

	/* From here on this thread is the loop's owner. */
	if (producer->owner)
		RACE_CHECK(tw_loop_enter(producer->engine) == 0);
	atomic_fetch_add(&begun, 1);
	while (!atomic_load(&over)) {
		rest();
		producer_step(producer);
		if (producer->owner && ++steps % 64 == 0)
			RACE_CHECK(tw_engine_poll_at(producer->engine, atomic_load(&now_ns), 0) >=
				   0);
	}
	/* Leaves the loop, so that the main thread can stop it. */
	if (producer->owner)
		RACE_CHECK(tw_loop_exit(producer->engine) == 0);
	return NULL;
}

/* The functions of the child. */

/*
 * Returns whether the timeout was due in the parent. Then the parent may have run it, or may have
 * been about to run it.
 */
static bool cell_due(struct cell *cell)
{
	return atomic_load(&cell->deadline_ns) <= atomic_load(&now_ns);
}

static void cell_find(struct cell *cell)
{
	struct tw_timeout seen = {.size = sizeof seen};

	if (tw_timeout_state(cell->handle) != TW_STATE_INIT) {
		RACE_CHECK(!cell->chain);
		/* The timeout has run, in the parent or here, or the parent was about to run it. */
		RACE_CHECK(cell_due(cell));
		lost += !atomic_load(&cell->ran) && atomic_load(&cell->child_runs) == 0;
		kept += atomic_load(&cell->child_runs) > 0;
		return;
	}
	RACE_CHECK(cell->chain || !atomic_load(&cell->ran));
	RACE_CHECK(tw_timeout_get(cell->handle, &seen) == 0 && seen.arg == cell);
	RACE_CHECK(cell->chain || seen.deadline_ns == atomic_load(&cell->deadline_ns));
	kept++;
}

static void producer_find(struct producer *producer)
{
	for (int number = 0; number < CELLS; number++) {
		struct cell *cell = &producer->cell[number];
		uint32_t step = atomic_load(&cell->step);

		if (step == SCHEDULED)
			cell_find(cell);
		else if (step != IDLE)
			open_steps++;
	}
}

static void producer_judge(struct producer *producer)
{
	for (int number = 0; number < CELLS; number++) {
		struct cell *cell = &producer->cell[number];
		uint32_t step = atomic_load(&cell->step);
		int runs = atomic_load(&cell->child_runs);

		if (step == IDLE || (!cell->chain && atomic_load(&cell->ran)))
			RACE_CHECK(runs == 0);
		else if (cell->chain)
			RACE_CHECK(step != SCHEDULED || runs > 1);
		else
			RACE_CHECK(runs <= 1);
		kept -= step == SCHEDULED && runs > 0;
	}
}

static int64_t expired_of(struct tw_engine *own)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_stats_get(own, &stats) == 0);
	return (int64_t)stats.expired;
}

/* Takes over one of the two engines, and runs all of its timeouts. */
static void child_take(struct tw_engine *own, struct tw_clock *clock, struct producer *first,
		       int count)
{
	int64_t pending;

	kept = lost = open_steps = 0;
	RACE_CHECK(tw_fork_reinit(own, TW_REINIT_KEEP) == 0);
	/* The child has no other thread, so this one must be the owner of the loop. */
	RACE_CHECK(tw_engine_start(own) == 0);
	if (own == looped)
		RACE_CHECK(tw_loop_enter(own) == 0);
	/* Waits until the timeouts that are already due have run. */
	RACE_CHECK(tw_engine_flush(own, patience_ns()) == 0);
	pending = tw_engine_pending(own) + expired_of(own);
	for (int number = 0; number < count; number++)
		producer_find(&first[number]);
	RACE_CHECK((uint64_t)pending >= kept && (uint64_t)pending <= kept + open_steps);
	RACE_CHECK(lost <= 1);
	for (int step = 0; step < 3; step++) {
		RACE_CHECK(tw_clock_set(clock, 2 * FAR_NS + step * 10 * TICK_NS) == 0);
		RACE_CHECK(tw_engine_flush(own, patience_ns()) == 0);
	}
	for (int number = 0; number < count; number++)
		producer_judge(&first[number]);
	RACE_CHECK(kept == 0);
	RACE_CHECK(tw_engine_stop(own, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(own) == 0);
	RACE_CHECK(tw_clock_destroy(clock) == 0);
}

static void child_run(void)
{
	in_child = true;
	heir_threads_begin();
	child_take(engine, clock_of_engine, producers, PRODUCERS);
	child_take(looped, clock_of_loop, &producers[PRODUCERS], 1);
	_exit(0);
}

/*
 * Kills a child that hangs. A child that hangs inside liburcu has all signals blocked, so no alarm
 * ends it.
 */
static int child_await(pid_t child)
{
	int64_t limit_ns = race_now_ns() + 3 * patience_ns();
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
		if (race_now_ns() > limit_ns)
			(void)kill(child, SIGKILL);
		(void)nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
	RACE_CHECK(ended == child);
	return status;
}

static void fork_once(void)
{
	pid_t child = heir_fork();
	int status;

	if (child == 0)
		child_run();
	RACE_CHECK(child > 0);
	atomic_store(&resting, true);
	status = child_await(child);
	if (status != 0)
		fprintf(stderr, "a child's status: 0x%x\n", (unsigned)status);
	RACE_CHECK(status == 0);
	atomic_store(&resting, false);
}

static struct tw_engine *engine_open(struct tw_clock **ret_clock, uint64_t flags, uint32_t wheel)
{
	struct tw_options options;
	struct tw_engine *made = NULL;

	RACE_CHECK(tw_clock_create_virtual(0, ret_clock) == 0);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.clock = *ret_clock;
	options.flags = flags;
	options.wheel = wheel;
	options.slots = 64;
	RACE_CHECK(tw_engine_create(&options, &made) == 0);
	return made;
}

static void producers_begin(uint64_t seed)
{
	for (int number = 0; number <= PRODUCERS; number++) {
		struct producer *producer = &producers[number];

		producer->random = seed * 77 + (uint64_t)number + 1;
		producer->owner = number == PRODUCERS;
		producer->engine = producer->owner ? looped : engine;
		RACE_CHECK(pthread_create(&producer->thread, NULL, producer_body, producer) == 0);
	}
}

/*
 * Waits until all producers have begun and the worker runs. The first schedule starts the worker.
 */
static void all_await(void)
{
	while (atomic_load(&begun) <= PRODUCERS)
		(void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	RACE_CHECK(tw_engine_start(engine) == 0);
	RACE_CHECK(tw_engine_flush(engine, patience_ns()) == 0);
}

static void engine_close(struct tw_engine *own, struct tw_clock *clock)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_engine_stop(own, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_stats_get(own, &stats) == 0);
	RACE_CHECK(stats.scheduled == stats.expired + stats.cancelled + stats.unexpired);
	RACE_CHECK(tw_engine_destroy(own) == 0);
	RACE_CHECK(tw_clock_destroy(clock) == 0);
}

/* Lets some time and one tick pass. */
static void pass(uint64_t *random)
{
	struct timespec pause = {.tv_nsec = (long)(race_random(random) % 500000)};
	int64_t next_ns = atomic_load(&now_ns) + TICK_NS;

	(void)nanosleep(&pause, NULL);
	RACE_CHECK(tw_clock_set(clock_of_engine, next_ns) == 0);
	RACE_CHECK(tw_clock_set(clock_of_loop, next_ns) == 0);
	atomic_store(&now_ns, next_ns);
	/* Waits again, so that the fork may come while the worker is in that tick. */
	pause.tv_nsec = (long)(race_random(random) % 30000);
	(void)nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	uint64_t forks = race_size(argc, argv, 1, 300);
	uint64_t random = race_argument(argc, argv, 2, 1) * 1001;
	uint32_t wheel = (uint32_t)race_argument(argc, argv, 3, 1);
	uint64_t seconds = race_argument(argc, argv, 4, 100);
	int64_t until_ns = race_now_ns() + (int64_t)seconds * 1000000000;
	uint64_t done = 0;

	patience_s = (int64_t)race_argument(argc, argv, 5, 20);
	race_watchdog((unsigned)seconds + 5 * (unsigned)patience_s);
	heir_memory_begin();
	engine = engine_open(&clock_of_engine, 0, wheel);
	looped = engine_open(&clock_of_loop, TW_ENGINE_LOOP, wheel);
	producers_begin(random);
	all_await();
	while (done < forks && race_now_ns() < until_ns) {
		pass(&random);
		fork_once();
		done++;
	}
	atomic_store(&over, true);
	for (int number = 0; number <= PRODUCERS; number++)
		RACE_CHECK(pthread_join(producers[number].thread, NULL) == 0);
	engine_close(engine, clock_of_engine);
	engine_close(looped, clock_of_loop);
	printf("%llu children, each with what its parent had\n", (unsigned long long)done);
	return done == 0;
}
