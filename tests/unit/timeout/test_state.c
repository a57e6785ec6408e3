/* SPDX-License-Identifier: MIT */
/* tw_timeout_state and tw_timeout_get in each state of a timeout. */
#include "probe.h"

#include <errno.h>
#include <string.h>

struct inside {
	atomic_int state;
	atomic_int get;
	struct tw_timeout timeout;
};

static void on_inside(struct tw_handle self, void *arg)
{
	struct inside *inside = arg;

	inside->timeout.size = sizeof(inside->timeout);
	atomic_store(&inside->state, tw_timeout_state(self));
	atomic_store(&inside->get, tw_timeout_get(self, &inside->timeout));
}

static const struct tw_kind inside_kind = TW_KIND(on_inside, NULL);

/* Checks that an ended timeout still has its last state, or that its handle is stale. */
static void check_state_or_stale(struct tw_handle handle, int state)
{
	int actual = tw_timeout_state(handle);

	check_true(actual == state || actual == -ESTALE);
}

Test(state, init_until_it_expires)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, 10 * NS_PER_MS);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	fixture_flush(&fixture);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	fixture_advance(&fixture, 11 * NS_PER_MS);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	fixture_close(&fixture);
	check_state_or_stale(handle, TW_STATE_EXPIRED);
}

Test(state, cancelled_is_reported_before_and_after_transfer)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, 10 * NS_PER_MS);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_state_or_stale(handle, TW_STATE_CANCELLED);
	handle = probe_schedule(&fixture, &probe, 10 * NS_PER_MS);
	fixture_flush(&fixture);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_state_or_stale(handle, TW_STATE_CANCELLED);
	fixture_flush(&fixture);
	check_state_or_stale(handle, TW_STATE_CANCELLED);
	fixture_close(&fixture);
}

Test(state, unexpired_is_not_init)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_close(&fixture);
	check_true(tw_timeout_state(handle) != TW_STATE_INIT);
}

Test(state, state_in_its_own_callback_is_expired)
{
	struct fixture fixture;
	struct inside inside = {0};

	fixture_open(&fixture, NULL);
	must_schedule_at(fixture.engine, 5, &inside_kind, &inside);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(inside.state, TW_STATE_EXPIRED);
	check_int(inside.get, 0);
	check_int(inside.timeout.state, TW_STATE_EXPIRED);
	check_true(inside.timeout.engine == fixture.engine);
	check_true(inside.timeout.kind == &inside_kind);
	check_true(inside.timeout.arg == &inside);
	check_int(inside.timeout.deadline_ns, 5);
	fixture_close(&fixture);
}

Test(state, get_tells_what_was_scheduled)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open_at(&fixture, NULL, 3 * NS_PER_S);
	handle = probe_schedule(&fixture, &probe, 1234567);
	check_int(tw_timeout_get(handle, &timeout), 0);
	check_true(timeout.engine == fixture.engine);
	check_true(timeout.kind == &probe_final_kind);
	check_true(timeout.arg == &probe);
	check_int(timeout.deadline_ns, 3 * NS_PER_S + 1234567);
	check_int(timeout.state, TW_STATE_INIT);
	check_int(timeout.size, sizeof(timeout));
	fixture_close(&fixture);
}

Test(state, zero_handle_and_bad_output_are_rejected)
{
	const struct tw_handle zeros = {0};
	struct tw_timeout timeout = {.size = sizeof(timeout)};
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	check_int(tw_timeout_state(zeros), -EINVAL);
	check_int(tw_timeout_get(zeros, &timeout), -EINVAL);
	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	check_int(tw_timeout_get(handle, NULL), -EINVAL);
	timeout.size = 0;
	check_int(tw_timeout_get(handle, &timeout), -EINVAL);
	timeout.size = sizeof(timeout) - 1;
	check_int(tw_timeout_get(handle, &timeout), -EINVAL);
	fixture_close(&fixture);
}

Test(state, get_into_a_larger_struct_clears_the_tail)
{
	struct {
		struct tw_timeout known;
		uint64_t unknown[3];
	} larger;
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	memset(&larger, 0xAA, sizeof(larger));
	larger.known.size = sizeof(larger);
	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	check_int(tw_timeout_get(handle, &larger.known), 0);
	check_int(larger.unknown[0], 0);
	check_int(larger.unknown[2], 0);
	check_true(larger.known.arg == &probe);
	fixture_close(&fixture);
}

Test(state, handle_is_stale_after_reuse)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_true(make_stale(&fixture, handle));
	check_int(tw_timeout_state(handle), -ESTALE);
	check_int(tw_timeout_get(handle, &timeout), -ESTALE);
	check_int(tw_cancel(handle), TW_CANCEL_STALE);
	check_int(tw_cancel_wait(handle, TW_NEVER), TW_CANCEL_STALE);
	fixture_close(&fixture);
}

Test(state, larger_stats_get_a_zero_tail)
{
	struct {
		struct tw_stats known;
		uint64_t unknown[2];
	} larger;
	struct fixture fixture;

	memset(&larger, 0xAA, sizeof(larger));
	larger.known.size = sizeof(larger);
	fixture_open(&fixture, NULL);
	check_int(tw_stats_get(fixture.engine, &larger.known), 0);
	check_int(larger.unknown[1], 0);
	check_int(larger.known.scheduled, 0);
	check_int(tw_stats_get(fixture.engine, NULL), -EINVAL);
	check_int(tw_stats_get(NULL, &larger.known), -EINVAL);
	larger.known.size = 0;
	check_int(tw_stats_get(fixture.engine, &larger.known), -EINVAL);
	fixture_close(&fixture);
}
