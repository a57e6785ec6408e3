/* SPDX-License-Identifier: MIT */
/*
 * A callback of one engine owns a loop and flushes it. In the loop's callbacks the thread is inside
 * both engines, and must not wait for either of them.
 *
 * Seen to fail with this defect: a thread knows only its inner engine. Then the outer loop is
 * polled inside its own poll, or a worker's thread waits for itself.
 */
#include "probe.h"

#include <errno.h>

static struct tw_engine *outer, *inner;
static struct tw_handle outer_handle;
static atomic_int looks;

static void on_text(void *context, const char *text, size_t bytes)
{
	(void)context;
	(void)text;
	(void)bytes;
}

static void on_inner(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	check_int(tw_engine_flush(outer, NS_PER_S), -EDEADLK);
	check_int(tw_engine_dump(outer, on_text, NULL, NS_PER_S), 0);
	check_int(tw_cancel_wait(outer_handle, NS_PER_S), TW_CANCEL_RUNNING);
	check_int(tw_engine_stop(outer, NULL, NULL, NS_PER_S), -EDEADLK);
	atomic_fetch_add(&looks, 1);
}

static void on_outer(struct tw_handle self, void *arg)
{
	static const struct tw_kind inner_kind = TW_KIND(on_inner, NULL);
	int64_t until_ns = monotonic_ns() + PATIENCE_NS;

	(void)arg;
	outer_handle = self;
	check_int(tw_loop_enter(inner), 0);
	must_schedule(inner, 1, &inner_kind, NULL);
	while (atomic_load(&looks) == 0 && monotonic_ns() < until_ns)
		check_int(tw_engine_flush(inner, PATIENCE_NS), 0);
	check_int(tw_engine_stop(inner, NULL, NULL, PATIENCE_NS), 0);
	/* The thread has left the inner engine, but is still inside the outer one. */
	check_int(tw_engine_flush(outer, NS_PER_S), -EDEADLK);
	atomic_fetch_add(&looks, 1);
}

static void inside_two(uint64_t flags)
{
	static const struct tw_kind outer_kind = TW_KIND(on_outer, NULL);
	struct tw_options options;

	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	check_int(tw_engine_create(&options, &inner), 0);
	options.flags = flags;
	check_int(tw_engine_create(&options, &outer), 0);
	must_schedule(outer, 1, &outer_kind, NULL);
	while ((flags & TW_ENGINE_LOOP) != 0 && atomic_load(&looks) < 2)
		check_at_least(tw_engine_poll(outer, 0), 0);
	check_true(wait_until_at_least(&looks, 2));
	check_int(tw_engine_stop(outer, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_engine_destroy(outer), 0);
	check_int(tw_engine_destroy(inner), 0);
}

Test(nested, in_a_callback_of_a_worker)
{
	inside_two(0);
}

Test(nested, in_a_poll)
{
	inside_two(TW_ENGINE_LOOP);
}
