/* SPDX-License-Identifier: MIT */
/*
 * The owner of a loop forks between two polls. The child polls its own engine, and must not touch
 * the parent's descriptor. The child makes no thread, because not every emulator supports that.
 *
 * Seen to fail with these defects: the child keeps the parent's descriptor, so it wakes the
 * parent's loop; OWNED timeouts are not kept; OWNED timeouts are kept, but every thread may use
 * them.
 */
#include "heir.h"

#include <poll.h>

static struct fixture fixture;
static struct probe probes[3];
static struct tw_handle handles[3];

static bool readable(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	return poll(&polled, 1, 0) == 1;
}

static int parents_fd;

static void child_polls(void)
{
	int fd;

	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_state(fixture.engine), TW_ENGINE_STARTING);
	child_need(tw_timeout_state(handles[0]), TW_STATE_INIT);
	/* The timeout is still owner-only, and no thread is the owner yet. */
	child_need(tw_cancel(handles[1]), -EPERM);
	child_need(tw_loop_enter(fixture.engine), 0);
	fd = tw_engine_fd(fixture.engine);
	child_need(fd >= 0, true);
	child_need(tw_engine_poll_at(fixture.engine, 2 * NS_PER_MS, 0), 0);
	child_need(readable(fd), false);
	/* This thread is the owner now, so it may cancel the owner-only timeout. */
	child_need(tw_cancel(handles[1]), TW_CANCEL_DONE);
	child_need(probes[1].finalised, 1);
	fixture.now_ns = 4 * NS_PER_S;
	child_need(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	child_need(readable(fd), true);
	child_need(tw_engine_poll(fixture.engine, 0), 2);
	child_need(probes[0].runs, 1);
	child_need(probes[2].runs, 1);
	heir_close(&fixture);
}

Test(reinit_loop, child_of_the_owner_leaves_the_parents_descriptor)
{
	struct tw_kind owners = TW_KIND_OWNER_ONLY(NULL, NULL);
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	owners.callback = probe_final_kind.callback;
	owners.finaliser = probe_final_kind.finaliser;
	check_int(tw_engine_start(fixture.engine), 0);
	for (int i = 0; i < 3; i++) {
		probe_init(&probes[i], fixture.engine);
		handles[i] = must_schedule(fixture.engine, (i + 1) * NS_PER_S,
					   i == 2 ? &probe_final_kind : &owners, &probes[i]);
		/* The first timeout is in the wheel. The others are fresh. */
		if (i == 0)
			check_int(tw_engine_poll(fixture.engine, 0), 0);
	}
	parents_fd = tw_engine_fd(fixture.engine);
	check_at_least(parents_fd, 0);
	check_int(readable(parents_fd), false);
	in_child(child_polls);
	/* The child must not have set the parent's descriptor. */
	check_int(readable(parents_fd), false);
	fixture_advance(&fixture, 4 * NS_PER_S);
	for (int i = 0; i < 3; i++)
		check_int(probes[i].runs, 1);
	fixture_close(&fixture);
}

/* Checks that the child's own descriptor is readable when a timeout is due. */
static void child_is_woken(void)
{
	int fd;

	heir_take(&fixture, TW_REINIT_KEEP);
	fd = tw_engine_fd(fixture.engine);
	child_need(tw_engine_poll(fixture.engine, 0), 0);
	child_need(readable(fd), false);
	child_need(tw_clock_set(fixture.clock, 9 * NS_PER_S), 0);
	child_need(readable(fd), true);
}

Test(reinit_loop, the_parent_is_not_woken)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	handles[0] = must_schedule(fixture.engine, NS_PER_S, &probe_kind, &probes[0]);
	parents_fd = tw_engine_fd(fixture.engine);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	in_child(child_is_woken);
	check_int(readable(parents_fd), false);
	fixture_close(&fixture);
}

/* Cancels its own chain. In the next test one chain is pending at the fork, and this callback has
 * cancelled the other chain. */
static void on_last(struct tw_handle self, void *arg)
{
	probe_kind.callback(self, arg);
	(void)tw_cancel(self);
}

static const struct tw_kind last_kind = TW_KIND(on_last, NULL);

static void child_polls_chains(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_pending(fixture.engine), 1);
	child_need(tw_timeout_state(handles[0]), TW_STATE_INIT);
	child_need(tw_timeout_state(handles[1]), TW_STATE_CANCELLED);
	for (int64_t now_ms = 1; now_ms <= 100; now_ms++)
		child_need(tw_engine_poll_at(fixture.engine, now_ms * NS_PER_MS, 0) >= 0, true);
	child_need(probes[0].runs, 10);
	child_need(probes[1].runs, 1);
	child_need(tw_cancel(handles[0]), TW_CANCEL_DONE);
	heir_close(&fixture);
}

Test(reinit_loop, child_goes_on_with_the_chains_of_its_parent)
{
	static const struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	const struct tw_kind *kinds[] = {&probe_kind, &last_kind};
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	for (int i = 0; i < 2; i++) {
		probe_init(&probes[i], fixture.engine);
		check_int(tw_schedule_periodic(fixture.engine, &period, kinds[i], &probes[i],
					       &handles[i]),
			  0);
	}
	for (int64_t now_ms = 1; now_ms <= 35; now_ms++)
		check_at_least(tw_engine_poll_at(fixture.engine, now_ms * NS_PER_MS, 0), 0);
	check_int(probes[0].runs, 3);
	in_child(child_polls_chains);
	check_int(tw_cancel(handles[0]), TW_CANCEL_DONE);
	fixture_close(&fixture);
}
