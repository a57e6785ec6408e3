/* SPDX-License-Identifier: MIT */
/* Timeouts that record their runs and ends. */
#include "probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void on_probe(struct tw_handle self, void *arg)
{
	struct probe *probe = arg;

	probe->self = self;
	atomic_store(&probe->ran_at_ns, tw_engine_now(probe->engine));
	atomic_fetch_add(&probe->runs, 1);
}

static void on_probe_end(void *arg, enum tw_end end)
{
	struct probe *probe = arg;

	atomic_store(&probe->end, (int)end);
	atomic_fetch_add(&probe->finalised, 1);
}

static void on_count(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

const struct tw_kind probe_kind = TW_KIND(on_probe, NULL);
const struct tw_kind probe_final_kind = TW_KIND(on_probe, on_probe_end);
const struct tw_kind count_kind = TW_KIND(on_count, NULL);

void probe_init(struct probe *probe, struct tw_engine *engine)
{
	memset(probe, 0, sizeof(*probe));
	probe->engine = engine;
	atomic_store(&probe->end, -1);
	atomic_store(&probe->ran_at_ns, -1);
}

struct tw_handle must_schedule(struct tw_engine *engine, int64_t delay_ns,
			       const struct tw_kind *kind, void *arg)
{
	struct tw_handle handle = {0};

	check_int(tw_schedule(engine, delay_ns, kind, arg, &handle), 0);
	check_true(handle.node != NULL);
	return handle;
}

struct tw_handle must_schedule_at(struct tw_engine *engine, int64_t deadline_ns,
				  const struct tw_kind *kind, void *arg)
{
	struct tw_handle handle = {0};

	check_int(tw_schedule_at(engine, deadline_ns, kind, arg, &handle), 0);
	check_true(handle.node != NULL);
	return handle;
}

struct tw_handle probe_schedule(struct fixture *fixture, struct probe *probe, int64_t delay_ns)
{
	probe_init(probe, fixture->engine);
	return must_schedule(fixture->engine, delay_ns, &probe_final_kind, probe);
}

static void on_gate(struct tw_handle self, void *arg)
{
	struct gate *gate = arg;

	(void)self;
	sem_post(&gate->entered);
	while (sem_wait(&gate->leave) == -1 && errno == EINTR)
		;
}

const struct tw_kind gate_kind = TW_KIND(on_gate, NULL);

void gate_init(struct gate *gate)
{
	check_int(sem_init(&gate->entered, 0, 0), 0);
	check_int(sem_init(&gate->leave, 0, 0), 0);
}

void gate_await(struct gate *gate)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += PATIENCE_NS / NS_PER_S;
	check_int(sem_timedwait(&gate->entered, &limit), 0);
}

void gate_open(struct gate *gate)
{
	check_int(sem_post(&gate->leave), 0);
}

struct tw_handle gate_hold(struct fixture *fixture, struct gate *gate)
{
	struct tw_handle handle;

	gate_init(gate);
	handle = must_schedule(fixture->engine, 1, &gate_kind, gate);
	fixture->now_ns += fixture->tick_ns;
	check_int(tw_clock_set(fixture->clock, fixture->now_ns), 0);
	gate_await(gate);
	return handle;
}

/*
 * The timeouts that use_pool() schedules at once and then cancels. The worker does the same in a
 * callback, because it has its own stock.
 */
struct hoard {
	struct tw_engine *engine;
	size_t count;
	struct tw_handle *handles;
	atomic_int rejected;
};

static void on_hoard(struct tw_handle self, void *arg)
{
	static atomic_int unused;
	struct hoard *hoard = arg;
	size_t i;

	(void)self;
	for (i = 0; i < hoard->count; i++)
		if (tw_schedule(hoard->engine, TW_NEVER, &count_kind, &unused, &hoard->handles[i]))
			atomic_fetch_add(&hoard->rejected, 1);
}

static const struct tw_kind hoard_kind = TW_KIND(on_hoard, NULL);

static void hoard_begin(struct hoard *hoard, struct tw_engine *engine, size_t count)
{
	*hoard = (struct hoard){.engine = engine, .count = count};
	hoard->handles = calloc(count, sizeof(*hoard->handles));
	check_true(hoard->handles != NULL);
}

static void hoard_end(struct hoard *hoard)
{
	size_t i;

	check_int(hoard->rejected, 0);
	for (i = 0; i < hoard->count; i++)
		check_int(tw_cancel(hoard->handles[i]), TW_CANCEL_DONE);
	free(hoard->handles);
}

/* Takes blocks from the pool until it holds all of them. The pool is last in, first out, so no
 * smaller number is sure to reach a certain node. */
static void use_pool(struct fixture *fixture)
{
	size_t count = (size_t)(tw_memory_slab_bytes() / 64);
	struct tw_handle none = {0};
	struct hoard here;
	struct hoard worker;

	hoard_begin(&worker, fixture->engine, 2000);
	hoard_begin(&here, fixture->engine, count);
	must_schedule(fixture->engine, 1, &hoard_kind, &worker);
	fixture_advance(fixture, fixture->tick_ns);
	on_hoard(none, &here);
	fixture_flush(fixture);
	hoard_end(&worker);
	hoard_end(&here);
	fixture_flush(fixture);
}

bool make_stale(struct fixture *fixture, struct tw_handle handle)
{
	int round;

	for (round = 0; round < 4 && tw_timeout_state(handle) != -ESTALE; round++)
		use_pool(fixture);
	return tw_timeout_state(handle) == -ESTALE;
}
