/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-perf-idle [rounds [activities]]: compares two ways to implement idle timeouts of
 * connections. One reschedules the timeout at each activity. The other stores the time of each
 * activity, and the timeout's callback checks that time.
 *
 * Connections are active at random, in virtual time, with a tick of 10 ms and an idle time of 10 s.
 * Three variants take turns with the same random numbers. `none` has no timeouts. `reschedule`
 * moves the timeout at each activity. `note` stores the time of each activity. When its timeout
 * expires, the callback schedules the timeout again for the remaining idle time, or closes the
 * connection. The cost of an activity is the process's CPU time of the whole run, engine included,
 * minus that of `none`, divided by the number of activities. One connection in 100 falls silent in
 * the middle of the run. The program must close such a connection, and records how late it does so.
 *
 * Exit code: 0; 1 if a call failed, or if a connection was closed early, or never.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel.h>
#include <time.h>

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define TICK_NS TW_MS(10)
#define IDLE_NS TW_S(10)

enum { ROUNDS_MAX = 99, SILENT_EVERY = 100, STEPS_MAX = 100000 };
enum way { NONE, RESCHEDULE, NOTE, WAYS };

struct connection {
	struct tw_handle idle;
	int64_t last_ns;
	bool closed;
};

struct figures {
	double cpu_ns;
	uint64_t activities, looks, closed;
	int64_t late_ns;
};

static struct tw_clock *clock_of;
static struct tw_engine *engine;
static struct connection *connections;
static struct figures *figures;
static int64_t now_ns;
static enum way way;

static double cpu_ns(void)
{
	struct timespec time;

	NEED(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void on_idle(struct tw_handle self, void *arg);

static const struct tw_kind shared = TW_KIND(on_idle, NULL);
static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_idle, NULL);
static const struct tw_kind *idle;

static void on_idle(struct tw_handle self, void *arg)
{
	struct connection *connection = arg;
	int64_t late_ns = now_ns - (connection->last_ns + IDLE_NS);

	(void)self;
	figures->looks++;
	if (way == NOTE && late_ns < 0) {
		NEED(tw_schedule_at(engine, now_ns - late_ns, idle, connection,
				    &connection->idle) == 0);
		return;
	}
	NEED(late_ns >= 0);
	connection->closed = true;
	figures->closed++;
	if (late_ns > figures->late_ns)
		figures->late_ns = late_ns;
}

/*
 * `reschedule` and `none` store the time too: the check in on_idle needs it, and all variants then
 * do the same stores.
 */
static inline void activity(struct connection *connection)
{
	connection->last_ns = now_ns;
	if (way == RESCHEDULE)
		NEED(tw_reschedule_at(connection->idle, now_ns + IDLE_NS) == TW_RESCHEDULE_DONE);
}

static uint64_t dice(void)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return state >> 33;
}

static void step(uint64_t count, uint64_t per_step, bool some_silent)
{
	now_ns += TICK_NS;
	NEED(tw_clock_set(clock_of, now_ns) == 0);
	for (uint64_t i = 0; i < per_step; i++) {
		uint64_t which = dice() % count;
		struct connection *connection = &connections[which];

		if (connection->closed || (some_silent && which % SILENT_EVERY == 0))
			continue;
		activity(connection);
		figures->activities++;
	}
	NEED(tw_engine_flush(engine, TW_NEVER) == 0);
}

static void engine_open(bool loop)
{
	struct tw_options options;

	NEED(tw_options_init(&options, sizeof(options)) == 0);
	NEED(tw_clock_create_virtual(0, &clock_of) == 0);
	options.clock = clock_of;
	options.tick_ns = TICK_NS;
	options.flags = loop ? TW_ENGINE_LOOP : 0;
	NEED(tw_engine_create(&options, &engine) == 0);
	if (loop)
		NEED(tw_loop_enter(engine) == 0);
	idle = loop ? &owned : &shared;
}

static struct figures measure(enum way measured, bool loop, uint64_t count, uint64_t steps,
			      uint64_t per_step)
{
	struct figures found = {0};
	double begin_ns;

	way = measured;
	figures = &found;
	now_ns = 0;
	engine_open(loop);
	for (uint64_t i = 0; i < count; i++) {
		connections[i] = (struct connection){0};
		/*
		 * `none` has one timeout, which never expires. Without any timeout, a flush would
		 * not need the worker, and would cost less than in the other variants.
		 */
		if (way != NONE || i == 0)
			NEED(tw_schedule_at(engine, way == NONE ? TW_NEVER : IDLE_NS, idle,
					    &connections[i], &connections[i].idle) == 0);
	}
	NEED(tw_engine_flush(engine, TW_NEVER) == 0);
	begin_ns = cpu_ns();
	for (uint64_t i = 0; i < steps; i++)
		step(count, per_step, i >= steps / 2);
	found.cpu_ns = cpu_ns() - begin_ns;
	NEED(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0 && tw_engine_destroy(engine) == 0);
	tw_clock_destroy(clock_of);
	return found;
}

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/*
 * Measures and prints one line of the table: `count` connections, each active every `every_ms` on
 * average. `loop`: the engine is in loop mode.
 */
static void compare(bool loop, uint64_t count, int64_t every_ms, uint64_t rounds, uint64_t wanted)
{
	uint64_t per_step = count * 10 / (uint64_t)every_ms;
	uint64_t least = (uint64_t)(4 * IDLE_NS / TICK_NS), steps = wanted / per_step;
	double costs[WAYS][ROUNDS_MAX];
	struct figures found[WAYS];

	steps = steps < least ? least : steps > STEPS_MAX ? STEPS_MAX : steps;
	for (uint64_t round = 0; round < rounds; round++) {
		for (int i = 0; i < WAYS; i++)
			found[i] = measure((enum way)i, loop, count, steps, per_step);
		for (int i = 0; i < WAYS; i++)
			costs[i][round] = (found[i].cpu_ns - found[NONE].cpu_ns) /
					  (double)found[i].activities;
	}
	for (int i = RESCHEDULE; i < WAYS; i++) {
		qsort(costs[i], rounds, sizeof(double), by_size);
		printf("| %s | %" PRIu64 " | %g s | %s | %.1f (%.1f to %.1f) | %.4f | %" PRId64
		       " ms |\n",
		       loop ? "loop" : "worker", count, (double)every_ms / 1e3,
		       i == NOTE ? "note" : "reschedule", costs[i][rounds / 2], costs[i][0],
		       costs[i][rounds - 1],
		       (double)(found[i].looks - found[i].closed) / (double)found[i].activities,
		       found[i].late_ns / TW_MS(1));
		NEED(found[i].closed >= count / SILENT_EVERY);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
	uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000000;

	NEED(rounds > 0 && rounds <= ROUNDS_MAX);
	connections = calloc(100000, sizeof(*connections));
	NEED(connections != NULL);
	printf("| engine | connections | active every | way | ns per activity | early looks per "
	       "activity | "
	       "closed late by at most |\n|---|---|---|---|---|---|---|\n");
	for (int loop = 1; loop >= 0; loop--) {
		for (uint64_t count = 1000; count <= 100000; count *= 100) {
			compare(loop != 0, count, 100, rounds, wanted);
			compare(loop != 0, count, 1000, rounds, wanted);
			compare(loop != 0, count, 5000, rounds, wanted);
		}
	}
	free(connections);
	return 0;
}
