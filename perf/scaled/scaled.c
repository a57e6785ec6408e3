/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-perf-scaled [timeouts]: measures the cost of scaled timeouts, and the longest turn when
 * the factor of an engine falls from 1 to 0.1.
 *
 * An engine in loop mode has the given number of idle timeouts (by default a million). They are of
 * a scaled kind whose delay is 1 s to 601 s. The program's only thread polls the engine without a
 * pause. The deadlines are set as if the timeouts had been started evenly over the last ten
 * minutes. The program measures each poll in CPU time of the thread, which is the engine's own
 * work, and in wall time, which includes other programs. After the drop nine of ten timeouts are
 * overdue. Their callback only counts.
 *
 * Exit code: 0; 1 if a call failed, or if a timeout was lost.
 */
#include <inttypes.h>
#include <stdint.h>
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

enum { MILLION = 1000000, PERCENT_OVERDUE = 89 };

struct turns {
	uint64_t count;
	int64_t longest_cpu_ns, longest_wall_ns, sum_ns;
};

static struct tw_engine *engine;
static struct tw_scaled *scaled;
static struct tw_handle *handles;
static uint64_t timeouts, runs, unexpired;

static int64_t time_ns(clockid_t clock)
{
	struct timespec now;

	NEED(clock_gettime(clock, &now) == 0);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void on_idle(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	runs++;
}

static const struct tw_kind idle = TW_KIND(on_idle, NULL);

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)arg;
	(void)remaining_ns;
	unexpired += kind == &idle;
}

static void one_turn(struct turns *turns)
{
	int64_t wall_ns = time_ns(CLOCK_MONOTONIC), cpu_ns = time_ns(CLOCK_THREAD_CPUTIME_ID);

	NEED(tw_engine_poll(engine, 0) >= 0);
	cpu_ns = time_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	wall_ns = time_ns(CLOCK_MONOTONIC) - wall_ns;
	turns->count++;
	turns->sum_ns += cpu_ns;
	if (cpu_ns > turns->longest_cpu_ns)
		turns->longest_cpu_ns = cpu_ns;
	if (wall_ns > turns->longest_wall_ns)
		turns->longest_wall_ns = wall_ns;
}

static void turns_print(const char *what, const struct turns *turns)
{
	printf("%-28s %7" PRIu64 " turns, longest %.3f ms of CPU, %.3f ms of wall\n", what,
	       turns->count, (double)turns->longest_cpu_ns / 1e6,
	       (double)turns->longest_wall_ns / 1e6);
}

static void figure_print(const char *what, int64_t begin_ns)
{
	int64_t ns = time_ns(CLOCK_MONOTONIC) - begin_ns;

	printf("%-28s %7.1f ns each\n", what, (double)ns / (double)timeouts);
}

/* Takes turns until all timeouts are in the wheel and have been moved to their final slots. */
static void settle(const char *what)
{
	int64_t until_ns = time_ns(CLOCK_MONOTONIC) + TW_MS(300) + (int64_t)timeouts * 1000;
	struct turns turns = {0};

	while (time_ns(CLOCK_MONOTONIC) < until_ns)
		one_turn(&turns);
	turns_print(what, &turns);
}

static void load(void)
{
	int64_t begin_ns = time_ns(CLOCK_MONOTONIC);

	for (uint64_t i = 0; i < timeouts; i++)
		NEED(tw_scaled_schedule(scaled, &idle, NULL, &handles[i]) == 0);
	figure_print("schedule", begin_ns);
	settle("load");
	begin_ns = time_ns(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < timeouts; i++)
		NEED(tw_scaled_touch(scaled, handles[i * 7919 % timeouts]) == TW_RESCHEDULE_DONE);
	figure_print("touch a random one", begin_ns);
}

/*
 * Sets deadlines as if the timeouts had been started one after the other over ten minutes, and the
 * last one just now.
 */
static void spread(void)
{
	int64_t now_ns = tw_engine_now(engine) + TW_S(2);

	for (uint64_t i = 0; i < timeouts; i++) {
		int64_t after_ns = (int64_t)((double)i / (double)timeouts * 599e9);

		NEED(tw_reschedule_at(handles[i], now_ns + after_ns) == TW_RESCHEDULE_DONE);
	}
	settle("settle");
}

static void drop(void)
{
	uint64_t before = runs;
	struct turns turns = {0};
	int64_t begin_ns = time_ns(CLOCK_MONOTONIC);

	NEED(tw_scaled_factor_set(engine, 0.1) == 0);
	printf("%-28s %7.1f us\n", "change of the factor",
	       (double)(time_ns(CLOCK_MONOTONIC) - begin_ns) / 1e3);
	begin_ns = time_ns(CLOCK_MONOTONIC);
	while (runs < timeouts * PERCENT_OVERDUE / 100)
		one_turn(&turns);
	printf("%-28s %" PRIu64 " runs in %.1f ms\n", "factor 1 to 0.1", runs - before,
	       (double)(time_ns(CLOCK_MONOTONIC) - begin_ns) / 1e6);
	turns_print("factor 1 to 0.1", &turns);
}

int main(int argc, char **argv)
{
	struct tw_options options;

	timeouts = argc > 1 ? strtoull(argv[1], NULL, 10) : MILLION;
	NEED(timeouts > 0 && timeouts <= 100 * (uint64_t)MILLION);
	handles = calloc(timeouts, sizeof *handles);
	NEED(handles != NULL && tw_options_init(&options, sizeof options) == 0);
	options.flags = TW_ENGINE_LOOP;
	NEED(tw_engine_create(&options, &engine) == 0);
	NEED(tw_scaled_create(engine, TW_S(1), TW_S(601), &scaled) == 0);
	load();
	spread();
	drop();
	NEED(tw_scaled_stop(scaled, on_unexpired, NULL, TW_NEVER) == 0);
	NEED(runs + unexpired == timeouts);
	NEED(tw_scaled_destroy(scaled) == 0);
	NEED(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0 && tw_engine_destroy(engine) == 0);
	free(handles);
	return 0;
}
