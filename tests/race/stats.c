/* SPDX-License-Identifier: MIT */
/*
 * Readers of the counters, while threads schedule and cancel. usage: race_stats [readings]
 * [seconds]
 *
 * - 1 to 8 threads each have no timeout or one, while 1,000 other timeouts stay pending.
 *   tw_engine_pending and tw_stats_get must always read at least 1,000 and at most one more for
 *   each thread. Every second round has a limit, which no reading may exceed. In those rounds the
 *   worker transfers the timeouts, so that cancels find them in the wheel too.
 * - The owner of a loop does the same, but its timeouts go straight into the wheel.
 * - One thread schedules and another cancels. The lower bound is the number of timeouts that have
 *   certainly begun and not ended when the call begins. The upper bound is the number that may have
 *   begun and not ended when the call returns. The reading must be between the two.
 *
 * In each reading the counters must add up, and none may be less than in the reading before. The
 * seconds are a bound for busy machines: when they are over, fewer readings are enough.
 *
 * Seen to fail with these defects: the counts of ended timeouts of all lanes are read first, and
 * then the counts of scheduled ones; in the build with delays, also: lane_read() or direct_read()
 * reads its two counters separately; early_report() does not store the number of early cancels that
 * it reports.
 */
#include "race.h"

#include <sched.h>
#include <tickwheel.h>

enum {
	STANDING = 1000,
	CHURNERS = 8,
	LEAST = 100,
	ON_THE_WAY = 1024,
	FLUSH_EACH = 64,
};

static struct tw_engine *engine;
static _Atomic bool over;
static uint64_t readings;
static int64_t until_ns;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void engine_open(uint64_t limit, uint64_t flags)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.pending_limit = limit;
	options.flags = flags;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	for (int i = 0; i < STANDING; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	atomic_store(&over, false);
}

static void engine_close(void)
{
	RACE_CHECK(tw_engine_pending(engine) == STANDING);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

static void stats_check(struct tw_stats *last)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.scheduled ==
		   stats.expired + stats.cancelled + stats.unexpired + stats.pending);
	RACE_CHECK(stats.scheduled >= last->scheduled && stats.cancelled >= last->cancelled);
	RACE_CHECK(stats.cancelled_early >= last->cancelled_early);
	RACE_CHECK(stats.cancelled_early <= stats.cancelled);
	*last = stats;
}

static bool goes_on(uint64_t reading)
{
	return reading < readings && (reading < LEAST || race_now_ns() < until_ns);
}

static void churn_once(void)
{
	struct tw_handle handle;

	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &handle) == 0);
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
}

static void *churn_main(void *flushes)
{
	for (uint64_t i = 0; !atomic_load(&over); i++) {
		churn_once();
		if (flushes != NULL && i % FLUSH_EACH == 0)
			RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	}
	return NULL;
}

static void *owner_main(void *unused)
{
	(void)unused;
	RACE_CHECK(tw_loop_enter(engine) == 0);
	for (uint64_t i = 0; !atomic_load(&over); i++) {
		churn_once();
		if (i % FLUSH_EACH == 0)
			RACE_CHECK(tw_engine_poll(engine, 0) >= 0);
	}
	RACE_CHECK(tw_loop_exit(engine) == 0);
	return NULL;
}

static void own_check(int64_t count)
{
	struct tw_stats last = {.size = sizeof last};

	for (uint64_t i = 0; goes_on(i); i++) {
		int64_t pending = tw_engine_pending(engine);

		RACE_CHECK(pending >= STANDING && pending <= STANDING + count);
		stats_check(&last);
		RACE_CHECK(last.pending >= STANDING && last.pending <= STANDING + (uint64_t)count);
	}
}

static void own(void *(*body)(void *), void *argument, int count)
{
	pthread_t thread[CHURNERS];

	for (int i = 0; i < count; i++)
		RACE_CHECK(pthread_create(&thread[i], NULL, body, argument) == 0);
	own_check(count);
	atomic_store(&over, true);
	race_join(thread, (size_t)count);
}

/* A queue by which one thread passes handles to the other. */
static struct {
	struct tw_handle handle[ON_THE_WAY];
	_Atomic uint64_t scheduling, scheduled, cancelling, cancelled;
} way;

static void *schedule_main(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; !atomic_load(&over);) {
		if (i - atomic_load(&way.cancelled) == ON_THE_WAY) {
			(void)sched_yield();
			continue;
		}
		atomic_store(&way.scheduling, ++i);
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL,
				       &way.handle[(i - 1) % ON_THE_WAY]) == 0);
		atomic_store(&way.scheduled, i);
	}
	return NULL;
}

static void *cancel_main(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; !atomic_load(&over) || i < atomic_load(&way.scheduling);) {
		if (i == atomic_load(&way.scheduled)) {
			(void)sched_yield();
			continue;
		}
		atomic_store(&way.cancelling, ++i);
		RACE_CHECK(tw_cancel(way.handle[(i - 1) % ON_THE_WAY]) == TW_CANCEL_DONE);
		atomic_store(&way.cancelled, i);
	}
	return NULL;
}

static void handed_over_check(void)
{
	struct tw_stats last = {.size = sizeof last};

	for (uint64_t i = 0; goes_on(i); i++) {
		int64_t scheduled = (int64_t)atomic_load(&way.scheduled);
		int64_t cancelled = (int64_t)atomic_load(&way.cancelled);
		int64_t pending = tw_engine_pending(engine) - STANDING;

		RACE_CHECK(pending >= scheduled - (int64_t)atomic_load(&way.cancelling));
		RACE_CHECK(pending <= (int64_t)atomic_load(&way.scheduling) - cancelled);
		stats_check(&last);
	}
}

static void handed_over(uint64_t limit)
{
	pthread_t thread[2];

	way.scheduling = way.scheduled = way.cancelling = way.cancelled = 0;
	engine_open(limit, 0);
	RACE_CHECK(pthread_create(&thread[0], NULL, schedule_main, NULL) == 0);
	RACE_CHECK(pthread_create(&thread[1], NULL, cancel_main, NULL) == 0);
	handed_over_check();
	atomic_store(&over, true);
	race_join(thread, 2);
	engine_close();
}

/* Gives each part its share of the time and of the readings. */
static void part_begin(double seconds)
{
	until_ns = race_now_ns() + (int64_t)(seconds / (CHURNERS + 3) * 1e9);
}

int main(int argc, char **argv)
{
	uint64_t seconds = race_argument(argc, argv, 2, 4);

	race_watchdog(120 + (unsigned)seconds);
	readings = race_size(argc, argv, 1, 110000) / (CHURNERS + 3);
	for (int count = 1; count <= CHURNERS; count++) {
		bool limited = count % 2 == 0;

		part_begin((double)seconds);
		engine_open(limited ? STANDING + CHURNERS : 0, 0);
		own(churn_main, limited ? engine : NULL, count);
		engine_close();
	}
	part_begin((double)seconds);
	engine_open(0, TW_ENGINE_LOOP);
	own(owner_main, NULL, 1);
	engine_close();
	for (int limited = 0; limited < 2; limited++) {
		part_begin((double)seconds);
		handed_over(limited ? STANDING + ON_THE_WAY : 0);
	}
	return 0;
}
