/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread, a worker and callers run at once, in real time, but no check depends on the time.
 * Callers schedule, cancel, reschedule, complete, flush and find, while the I/O thread commits and
 * the worker runs timers. ThreadSanitizer checks this program too.
 */
#include "memory_store.h"

#include "check.h"
#include "slowdown.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <tickwheel.h>

enum { THREADS = 4, EACH = 20000, RING = 64 };

static struct tw_engine *engine;
static struct tw_durable *set;
static struct disk *disk;
static atomic_ulong runs, acked, absorbed, scheduled, cancelled, failures;

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	unsigned long number;

	if (bytes != sizeof number) {
		atomic_fetch_add(&failures, 1);
		return TW_RETRY_DONE;
	}
	memcpy(&number, payload, sizeof number);
	atomic_fetch_add(&runs, 1);
	if (tw_durable_flush(self->durable, TW_NEVER) != -EDEADLK)
		atomic_fetch_add(&failures, 1);
	if (number % 3 == 0 && self->attempt == 1)
		return TW_RETRY_AGAIN;
	if (number % 5 == 0) {
		if (tw_durable_complete(self->durable, self->id, self->attempt, TW_RETRY_DONE) != 0)
			atomic_fetch_add(&failures, 1);
		return TW_RETRY_PENDING;
	}
	return TW_RETRY_DONE;
}

static const int64_t delays[] = {1000000};
static const struct tw_retry_schedule soon = TW_RETRY_TABLE(delays);
static const struct tw_durable_kind kind = TW_DURABLE_KIND("kind", on_run, &soon);
static const struct tw_durable_kind patient = {
	.size = sizeof patient,
	.name = "patient",
	.run = on_run,
	.schedule = &soon,
	.linger_ns = 20000000,
};

static const struct tw_durable_kind counted = {
	.size = sizeof counted,
	.flags = TW_DURABLE_KIND_ELAPSED,
	.name = "counted",
	.run = on_run,
	.schedule = &soon,
};

static void on_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++) {
		if (acks[i].context == &scheduled) {
			atomic_fetch_add(&acked, 1);
			if (acks[i].outcome == TW_DURABLE_ABSORBED)
				atomic_fetch_add(&absorbed, 1);
		}
		if (acks[i].status != 0)
			atomic_fetch_add(&failures, 1);
	}
}

static void open_all(void)
{
	const struct tw_durable_kind *kinds[] = {&kind, &patient, &counted};
	struct tw_durable_options options;

	check_int(tw_engine_create(NULL, &engine), 0);
	disk = disk_create();
	check_int(tw_durable_options_init(&options, sizeof options), 0);
	options.store = disk_store(disk);
	options.acked = on_acked;
	check_int(tw_durable_open(engine, kinds, 3, &options, &set), 0);
}

static void close_all(void)
{
	check_int(tw_durable_close(set, TW_NEVER), 0);
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(engine), 0);
	disk_destroy(disk);
}

/* Returns the kind for a timer. Timers with a delay below a second are of each kind in turn. */
static const struct tw_durable_kind *kind_for(unsigned long number, int64_t delay_ns)
{
	if (delay_ns >= TW_S(1) || number % 2 == 0)
		return &kind;
	return number % 4 == 1 ? &patient : &counted;
}

static int schedule_as(const struct tw_durable_kind *as, unsigned long number, int64_t delay_ns,
		       struct tw_durable_id *ret_id)
{
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = as,
		.due_ns = delay_ns,
		.payload = &number,
		.payload_bytes = sizeof number,
		.context = &scheduled,
	};
	int error = tw_durable_schedule(set, &spec, ret_id);

	if (error == 0)
		atomic_fetch_add(&scheduled, 1);
	return error;
}

static int schedule(unsigned long number, int64_t delay_ns, struct tw_durable_id *ret_id)
{
	return schedule_as(kind_for(number, delay_ns), number, delay_ns, ret_id);
}

static void *caller(void *arg)
{
	unsigned long number = (unsigned long)(uintptr_t)arg;
	unsigned long each = slowed(EACH);
	struct tw_durable_id ring[RING] = {{0, 0}};

	for (unsigned long i = 0; i < each; i++, number += THREADS) {
		struct tw_durable_id *id = &ring[i % RING];
		int outcome;

		while (schedule(number, (int64_t)(number % 97) * 100000, id) == -EAGAIN)
			continue;
		if (i % 4 == 0)
			continue;
		id = &ring[number % RING];
		if (id->serial == 0)
			continue;
		outcome = i % 64 == 1 ? tw_durable_reschedule(set, *id, 0, NULL)
				      : tw_durable_cancel(set, *id, NULL);
		if (outcome < 0 && outcome != -EINPROGRESS)
			atomic_fetch_add(&failures, 1);
		if (outcome == TW_DURABLE_ABSORBED || outcome == TW_DURABLE_DONE)
			atomic_fetch_add(&cancelled, outcome == TW_DURABLE_ABSORBED);
		if (i % 1024 == 5 && tw_durable_flush(set, TW_NEVER) != 0)
			atomic_fetch_add(&failures, 1);
	}
	return NULL;
}

Test(durable_threads, callers_commits_and_runs_at_once)
{
	pthread_t threads[THREADS];
	struct tw_durable_stats stats;

	open_all();
	for (uintptr_t i = 0; i < THREADS; i++)
		check_int(pthread_create(&threads[i], NULL, caller, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		check_int(pthread_join(threads[i], NULL), 0);
	check_int(tw_durable_flush(set, TW_NEVER), 0);
	check_int(atomic_load(&acked), atomic_load(&scheduled));
	check_int(tw_durable_stats_get(set, &stats, sizeof stats), 0);
	check_int(stats.scheduled, atomic_load(&scheduled));
	cr_assert(atomic_load(&absorbed) >= atomic_load(&cancelled));
	close_all();
	check_int(atomic_load(&failures), 0);
}

/*
 * All timers of the next test have this deadline, from which the place in their ids follows. So a
 * thread needs only the serial of an id.
 */
#define FAR_NS INT64_C(4000000000000000000)

static _Atomic uint64_t offered[THREADS];

static void *far_caller(void *arg)
{
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.flags = TW_DURABLE_AT,
		.kind = &kind,
		.due_ns = FAR_NS,
		.context = &scheduled,
	};
	unsigned long each = slowed(EACH);
	uintptr_t number = (uintptr_t)arg;
	struct tw_durable_id id;

	for (unsigned long i = 0; i < each; i++) {
		while (tw_durable_schedule(set, &spec, &id) == -EAGAIN)
			continue;
		atomic_fetch_add(&scheduled, 1);
		atomic_store(&offered[number], id.serial);
		/* Cancels its own timer, or a timer of another thread, which may cancel it too. */
		id.serial = atomic_load(&offered[(number + i % 2) % THREADS]);
		if (id.serial != 0 && tw_durable_cancel(set, id, NULL) == TW_DURABLE_ABSORBED)
			atomic_fetch_add(&cancelled, 1);
		if (i % 512 == 5 && tw_durable_flush(set, TW_NEVER) != 0)
			atomic_fetch_add(&failures, 1);
	}
	return NULL;
}

Test(durable_threads, cancels_by_other_threads_are_acknowledged_once)
{
	pthread_t threads[THREADS];

	open_all();
	for (uintptr_t i = 0; i < THREADS; i++)
		check_int(pthread_create(&threads[i], NULL, far_caller, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		check_int(pthread_join(threads[i], NULL), 0);
	check_int(tw_durable_flush(set, TW_NEVER), 0);
	check_int(atomic_load(&acked), atomic_load(&scheduled));
	check_int(atomic_load(&absorbed), atomic_load(&cancelled));
	close_all();
	check_int(atomic_load(&failures), 0);
}

Test(durable_threads, a_flush_waits_for_what_was_staged_and_finds_see_it)
{
	struct tw_durable_info info = {.size = sizeof info}, dead[4] = {{.size = sizeof dead[0]}};
	struct tw_durable_id id;

	open_all();
	for (unsigned long i = 0; i < 200; i++) {
		check_int(schedule(1, TW_HOURS(1), &id), 0);
		check_int(tw_durable_flush(set, TW_NEVER), 0);
		check_int(atomic_load(&acked), i + 1);
		check_int(disk->rows, i + 1);
	}
	check_int(schedule(1, TW_HOURS(1), &id), 0);
	check_int(tw_durable_find(set, id, &info, TW_NEVER), 0);
	cr_assert(info.id.serial == id.serial && info.kind == &kind);
	check_int(info.payload_bytes, sizeof(long));
	id.serial++;
	check_int(tw_durable_find(set, id, &info, TW_NEVER), -ENOENT);
	check_int(tw_durable_find_key(set, "k", 1, &info, TW_NEVER), -ENOENT);
	check_int(tw_durable_dead_list(set, (struct tw_durable_id){0, 0}, dead, 4, TW_NEVER), 0);
	close_all();
}

/* Lists in pages of three, with a timer that ends between two pages. */
Test(durable_threads, timers_are_listed_in_the_order_of_their_deadlines)
{
	struct tw_durable_info page[3] = {{.size = sizeof *page}}, last = {.size = sizeof last};
	struct tw_durable_id ids[10];
	int64_t before_ns = INT64_MIN;
	int count, seen = 0;

	open_all();
	check_int(tw_durable_list(set, NULL, page, 3, TW_NEVER), 0);
	for (unsigned long i = 0; i < 10; i++)
		check_int(schedule_as(i % 3 == 0 ? &counted : &kind, 1,
				      TW_HOURS(10 - (int64_t)i % 5) + TW_S((int64_t)i), &ids[i]),
			  0);
	count = tw_durable_list(set, NULL, page, 3, TW_NEVER);
	while (count > 0) {
		for (int i = 0; i < count; i++, seen++) {
			cr_assert(page[i].due_ns >= before_ns);
			before_ns = page[i].due_ns;
		}
		last = page[count - 1];
		if (seen == 6)
			(void)tw_durable_cancel(set, last.id, NULL);
		count = tw_durable_list(set, &last, page, 3, TW_NEVER);
	}
	check_int(count, 0);
	check_int(seen, 10);
	check_int(tw_durable_list(set, NULL, page, 1, TW_NEVER), 1);
	cr_assert(page[0].kind == &kind && page[0].payload_bytes == sizeof(long));
	close_all();
}

static int slow_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)self;
	(void)payload;
	(void)bytes;
	atomic_fetch_add(&runs, 1);
	while (atomic_load(&cancelled) == 0)
		continue;
	return TW_RETRY_DONE;
}

Test(durable_threads, a_close_waits_for_a_run)
{
	static const struct tw_durable_kind slow = TW_DURABLE_KIND("slow", slow_run, NULL);
	const struct tw_durable_kind *kinds[] = {&slow};
	struct tw_durable_spec spec = {.size = sizeof spec, .kind = &slow};
	struct tw_durable_options options;

	check_int(tw_engine_create(NULL, &engine), 0);
	disk = disk_create();
	check_int(tw_durable_options_init(&options, sizeof options), 0);
	options.store = disk_store(disk);
	options.window_ns = 0;
	check_int(tw_durable_open(engine, kinds, 1, &options, &set), 0);
	check_int(tw_durable_schedule(set, &spec, NULL), 0);
	while (atomic_load(&runs) == 0)
		continue;
	check_int(tw_durable_close(set, 1000000), -ETIMEDOUT);
	check_int(tw_durable_schedule(set, &spec, NULL), -ESHUTDOWN);
	atomic_store(&cancelled, 1);
	check_int(tw_durable_close(set, TW_NEVER), 0);
	check_int(disk->rows, 0);
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(engine), 0);
	disk_destroy(disk);
}
