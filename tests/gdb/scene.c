/* SPDX-License-Identifier: MIT */
/*
 * Engines with known figures. gdb stops this program in stand() and inspects them. Exit code: 0, or
 * 1 if the engines cannot be created.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <tickwheel.h>

enum { NEAR = 30, FAR = 100 };

static struct tw_engine *hashed, *levels;
static struct tw_handle pending, cancelled, stale, none, garbage, chain;
static int argument;

static void need(bool holds)
{
	if (!holds)
		exit(1);
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static struct tw_engine *engine_make(uint32_t wheel, struct tw_clock *clock)
{
	struct tw_options options;
	struct tw_engine *engine;

	need(tw_options_init(&options, sizeof options) == 0);
	options.wheel = wheel;
	options.clock = clock;
	need(tw_engine_create(&options, &engine) == 0);
	return engine;
}

static void many(struct tw_engine *engine, int count, int64_t delay_ns)
{
	for (int i = 0; i < count; i++)
		need(tw_schedule(engine, delay_ns, &kind, &argument, NULL) == 0);
}

static void fill(struct tw_engine *engine)
{
	many(engine, NEAR, 10000000);
	many(engine, FAR, 2000000000);
	need(tw_engine_flush(engine, TW_NEVER) == 0);
}

/*
 * Makes the timeouts. The node of a timeout that is cancelled in a ring serves the next timeout.
 * Both timeouts have the deadline TW_NEVER. So their schedules do not wake the worker, which would
 * take them out of the ring.
 */
static void handles_make(void)
{
	const struct tw_period period = TW_PERIOD_RATE(3000000000);

	need(tw_schedule(levels, TW_NEVER, &kind, &argument, &stale) == 0);
	need(tw_cancel(stale) == TW_CANCEL_DONE);
	need(tw_schedule(levels, TW_NEVER, &kind, &argument, &pending) == 0);
	need(tw_timeout_state(stale) < 0);
	need(tw_schedule(levels, 1000, &kind, &argument, &cancelled) == 0);
	need(tw_schedule_periodic(levels, &period, &kind, &argument, &chain) == 0);
	need(tw_cancel(cancelled) == TW_CANCEL_DONE);
	need(tw_engine_flush(levels, TW_NEVER) == 0);
	garbage = (struct tw_handle){.node = (void *)8, .generation = 256};
}

/*
 * Marks the place at which gdb stops. The arguments prevent the compiler from removing the objects.
 */
static __attribute__((noinline)) void stand(struct tw_engine *engine,
					    const struct tw_handle *handle)
{
	__asm__ volatile("" : : "r"(engine), "r"(handle) : "memory");
}

static void end(struct tw_engine *engine, struct tw_clock *clock)
{
	need(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	need(tw_engine_destroy(engine) == 0);
	need(tw_clock_destroy(clock) == 0);
}

int main(void)
{
	struct tw_clock *clock[2];

	for (int i = 0; i < 2; i++)
		need(tw_clock_create_virtual(0, &clock[i]) == 0);
	hashed = engine_make(TW_WHEEL_HASHED, clock[0]);
	levels = engine_make(TW_WHEEL_HIERARCHICAL, clock[1]);
	fill(hashed);
	fill(levels);
	handles_make();
	stand(levels, &none);
	stand(hashed, &garbage);
	end(hashed, clock[0]);
	end(levels, clock[1]);
	return 0;
}
