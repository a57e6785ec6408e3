/* SPDX-License-Identifier: MIT */
/*
 * Alarms on top of tickwheel: how timeouts of a worker thread reach an event loop.
 *
 *   worker   dispatch hook: links the batch of expired alarms, prepends it to `due` with one
 *            compare-and-swap, and writes to the eventfd: one write per batch
 *   loop     alarms_run: takes all of `due` with one exchange, calls tw_due_run for each, so
 *            callback and finaliser run on the loop's thread
 *
 * The hook accepts every timeout and cannot fail, because the link and the copy of tw_due are
 * inside the alarm. So no callback ever runs on the worker.
 *
 * With --loop there is no worker: the event loop waits for the engine's descriptor, and alarms_run
 * polls, which runs the due timeouts at once.
 *
 * Only the timeout's finaliser frees an alarm. tickwheel runs it exactly once, however the timeout
 * ended. So alarm_clear need not look at the outcome of the cancel. After TW_CANCEL_DONE the alarm
 * is freed. After TW_CANCEL_RUNNING it is on its way to the loop; its callback finds no owner, and
 * the finaliser frees it afterwards.
 */
#include "alarms.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <tickwheel.h>
#include <unistd.h>

/* Lateness is counted in steps of 10 µs up to 1 s; greater lateness counts in the last step. */
#define LATENESS_STEP_US 10
#define LATENESS_STEPS 100000

struct alarm {
	/* Used by the worker, then by the loop; handed over through `due` of struct alarms. */
	struct alarm *next;
	struct tw_due timeout;
	/* Used by the loop only, and constant. */
	struct alarms *alarms;
	int64_t deadline_ns;
	alarm_ring *ring;
	/* Used by the loop only. */
	struct tw_handle handle;
	void *owner;
};

struct alarms {
	struct tw_engine *engine;
	bool loop;
	int wake_fd; /* with a worker */
	/* Expired alarms, the newest first. The hook writes it with release, alarms_run reads it
	 * with acquire. */
	_Atomic(struct alarm *) due;
	/* How many timeouts were finalised, by enum tw_end. Atomic, because hand-backs run on the
	 * worker. */
	atomic_uint_fast64_t ended[3];
	uint64_t set_count;
	struct alarms_figures figures;
	uint32_t lateness[LATENESS_STEPS];
};

static void wake(struct alarms *alarms)
{
	/* The write fails only if the counter is full; then the loop has already been woken. */
	ssize_t written = write(alarms->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
	(void)written;
}

static size_t dispatch(void *context, const struct tw_due *due, size_t count)
{
	struct alarms *alarms = context;
	struct alarm *oldest = due[0].arg;
	struct alarm *newest = NULL;

	for (size_t i = 0; i < count; i++) {
		struct alarm *alarm = due[i].arg;

		alarm->timeout = due[i];
		alarm->next = newest;
		newest = alarm;
	}
	oldest->next = atomic_load_explicit(&alarms->due, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&alarms->due, &oldest->next, newest,
						      memory_order_release, memory_order_relaxed))
		;
	wake(alarms);
	return count;
}

static struct alarm *take_due_oldest_first(struct alarms *alarms)
{
	struct alarm *from = atomic_exchange_explicit(&alarms->due, NULL, memory_order_acquire);
	struct alarm *reversed = NULL;

	while (from != NULL) {
		struct alarm *next = from->next;

		from->next = reversed;
		reversed = from;
		from = next;
	}
	return reversed;
}

static void run_dispatched(struct alarms *alarms)
{
	uint64_t wakes;
	ssize_t got = read(alarms->wake_fd, &wakes, sizeof(wakes));
	struct alarm *alarm = take_due_oldest_first(alarms);

	(void)got;
	while (alarm != NULL) {
		struct tw_due timeout = alarm->timeout;

		alarm = alarm->next;
		tw_due_run(&timeout);
	}
}

void alarms_run(struct alarms *alarms)
{
	if (alarms->loop)
		tw_engine_poll(alarms->engine, 0);
	else
		run_dispatched(alarms);
}

static void record_lateness(struct alarms *alarms, int64_t lateness_ns)
{
	uint64_t lateness_us = lateness_ns < 0 ? 0 : (uint64_t)lateness_ns / 1000;
	uint64_t step = lateness_us / LATENESS_STEP_US;

	if (lateness_ns < 0)
		alarms->figures.early_count++;
	if (lateness_us > alarms->figures.lateness_max_us)
		alarms->figures.lateness_max_us = lateness_us;
	alarms->lateness[step < LATENESS_STEPS ? step : LATENESS_STEPS - 1]++;
}

static void on_due(struct tw_handle self, void *arg)
{
	struct alarm *alarm = arg;
	struct alarms *alarms = alarm->alarms;

	(void)self;
	record_lateness(alarms, alarms_now_ns(alarms) - alarm->deadline_ns);
	if (alarm->owner == NULL) {
		alarms->figures.overtaken_count++;
		return;
	}
	alarms->figures.rung_count++;
	alarm->ring(alarm->owner);
}

static void on_end(void *arg, enum tw_end end)
{
	struct alarm *alarm = arg;

	/* RELAXED: only a count, which the account reads after tw_engine_stop has returned. */
	atomic_fetch_add_explicit(&alarm->alarms->ended[end], 1, memory_order_relaxed);
	free(alarm);
}

int alarm_set(struct alarms *alarms, int64_t deadline_ns, alarm_ring *ring, void *owner,
	      struct alarm **ret_alarm)
{
	static const struct tw_kind kind = TW_KIND(on_due, on_end);
	struct alarm *alarm = calloc(1, sizeof(*alarm));
	int rc;

	if (alarm == NULL)
		return -ENOMEM;
	alarm->alarms = alarms;
	alarm->deadline_ns = deadline_ns;
	alarm->ring = ring;
	alarm->owner = owner;
	rc = tw_schedule_at(alarms->engine, deadline_ns, &kind, alarm, &alarm->handle);
	if (rc < 0) {
		free(alarm);
		return rc;
	}
	alarms->set_count++;
	*ret_alarm = alarm;
	return 0;
}

void alarm_clear(struct alarm *alarm)
{
	if (alarm == NULL)
		return;
	alarm->owner = NULL;
	tw_cancel(alarm->handle);
}

static int create_engine(struct alarms *alarms, uint64_t tick_ns)
{
	struct tw_options options;

	tw_options_init(&options, sizeof(options));
	options.tick_ns = tick_ns;
	if (alarms->loop) {
		options.flags = TW_ENGINE_LOOP;
	} else {
		options.dispatch = dispatch;
		options.dispatch_context = alarms;
	}
	return tw_engine_create(&options, &alarms->engine);
}

static int open_wake_fd(struct alarms *alarms)
{
	alarms->wake_fd = -1;
	if (alarms->loop)
		return 0;
	alarms->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return alarms->wake_fd < 0 ? -errno : 0;
}

int alarms_create(uint64_t tick_ns, bool loop, struct alarms **ret_alarms)
{
	struct alarms *alarms = calloc(1, sizeof(*alarms));
	int rc;

	if (alarms == NULL)
		return -ENOMEM;
	alarms->loop = loop;
	rc = open_wake_fd(alarms);
	if (rc == 0)
		rc = create_engine(alarms, tick_ns);
	if (rc == 0)
		rc = loop ? tw_loop_enter(alarms->engine) : tw_engine_start(alarms->engine);
	if (rc == 0 && loop && tw_engine_fd(alarms->engine) < 0)
		rc = -ENOMEM;
	if (rc < 0)
		alarms_destroy(alarms);
	else
		*ret_alarms = alarms;
	return rc;
}

int alarms_stop(struct alarms *alarms)
{
	int rc;

	/* The stop waits for the due timeouts, which this thread itself must run. */
	while ((rc = tw_engine_stop(alarms->engine, NULL, NULL, TW_MS(1))) == -ETIMEDOUT)
		alarms_run(alarms);
	return rc;
}

void alarms_destroy(struct alarms *alarms)
{
	if (alarms == NULL)
		return;
	if (alarms->engine != NULL)
		(void)alarms_stop(alarms);
	tw_engine_destroy(alarms->engine);
	if (alarms->wake_fd >= 0)
		close(alarms->wake_fd);
	free(alarms);
}

int alarms_fd(const struct alarms *alarms)
{
	return alarms->loop ? tw_engine_fd(alarms->engine) : alarms->wake_fd;
}

int64_t alarms_now_ns(struct alarms *alarms)
{
	return tw_engine_now(alarms->engine);
}

/* Returns the upper end of the step with the `percent`-th percentile, but at most the greatest
 * lateness. */
static uint64_t lateness_us(const struct alarms *alarms, uint64_t percent)
{
	uint64_t total = alarms->figures.rung_count + alarms->figures.overtaken_count;
	uint64_t seen = alarms->lateness[0];
	uint64_t step = 0;

	while (step + 1 < LATENESS_STEPS && seen * 100 < total * percent)
		seen += alarms->lateness[++step];
	step = (step + 1) * LATENESS_STEP_US;
	return step < alarms->figures.lateness_max_us ? step : alarms->figures.lateness_max_us;
}

void alarms_figures_get(const struct alarms *alarms, struct alarms_figures *ret_figures)
{
	*ret_figures = alarms->figures;
	ret_figures->lateness_p50_us = lateness_us(alarms, 50);
	ret_figures->lateness_p99_us = lateness_us(alarms, 99);
}

void alarms_stats_get(struct alarms *alarms, struct tw_stats *ret_stats)
{
	ret_stats->size = sizeof(*ret_stats);
	tw_stats_get(alarms->engine, ret_stats);
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

uint64_t alarms_account(struct alarms *alarms, FILE *stream)
{
	uint64_t expired = atomic_load(&alarms->ended[TW_END_EXPIRED]);
	uint64_t cancelled = atomic_load(&alarms->ended[TW_END_CANCELLED]);
	uint64_t unexpired = atomic_load(&alarms->ended[TW_END_UNEXPIRED]);
	uint64_t lost = difference(alarms->set_count, expired + cancelled + unexpired);
	struct tw_stats stats;

	fprintf(stream,
		"scheduled %" PRIu64 " = expired %" PRIu64 " + cancelled %" PRIu64
		" + handed back %" PRIu64 "; lost %" PRIu64 "\n",
		alarms->set_count, expired, cancelled, unexpired, lost);
	fflush(stream);
	alarms_stats_get(alarms, &stats);
	return lost + difference(stats.scheduled, alarms->set_count) +
	       difference(stats.expired, expired) + difference(stats.cancelled, cancelled) +
	       difference(stats.unexpired, unexpired);
}
