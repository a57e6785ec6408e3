/* SPDX-License-Identifier: MIT */
/*
 * Slack: no timeout may be early, or later than its deadline plus slack and a tick. Timeouts with
 * slack must share ticks.
 *
 * Seen to fail with these defects: the tick of deadline plus slack is used without rounding, so the
 * timeouts share no ticks; the tick is one beyond the slack; the roundest tick is chosen even if it
 * is before the deadline.
 */
#include "probe.h"

#include <errno.h>
#include <stdlib.h>

enum { COUNT = 1000 };

static void ran_note(struct tw_handle self, void *argument)
{
	struct probe *probe = argument;

	(void)self;
	probe->ran_at_ns = tw_engine_now(probe->engine);
	probe->runs++;
}

static int64_t deadline_of(struct tw_handle handle)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};

	check_int(tw_timeout_get(handle, &timeout), 0);
	return timeout.deadline_ns;
}

/* The deadlines are random, with slack from less than a tick to many ticks. */
Test(slack, run_lies_between_deadline_and_slack)
{
	static const int64_t slacks_ns[] = {1, NS_PER_MS / 3, NS_PER_MS, 7 * NS_PER_MS, NS_PER_S};
	struct fixture fixture;

	fixture_open_at(&fixture, NULL, 12345678);
	for (int i = 0; i < COUNT; i++) {
		int64_t slack_ns = slacks_ns[i % 5];
		const struct tw_kind kind = TW_KIND_SLACK(ran_note, NULL, (uint64_t)slack_ns);
		struct probe probe;
		struct tw_handle handle;
		int64_t deadline_ns = fixture.now_ns + rand() % (3 * NS_PER_S);
		int64_t slackened_ns;

		probe_init(&probe, fixture.engine);
		handle = must_schedule_at(fixture.engine, deadline_ns, &kind, &probe);
		slackened_ns = deadline_of(handle);
		check_at_least(slackened_ns, deadline_ns);
		check_at_most(slackened_ns, deadline_ns + slack_ns);
		fixture_advance_to(&fixture, slackened_ns);
		check_int(probe.runs, 0);
		fixture_advance_to(&fixture, deadline_ns + slack_ns + NS_PER_MS);
		check_int(probe.runs, 1);
		check_at_least(probe.ran_at_ns, deadline_ns);
	}
	fixture_close(&fixture);
}

/* Spreads 1,000 deadlines over a second. Returns the number of different times at which the
 * timeouts ran. */
static int meetings(uint64_t slack_ns)
{
	const struct tw_kind kind = TW_KIND_SLACK(ran_note, NULL, slack_ns);
	static struct probe probe[COUNT];
	struct fixture fixture;
	int64_t last_ns = -1;
	int count = 0;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < COUNT; i++) {
		probe_init(&probe[i], fixture.engine);
		must_schedule_at(fixture.engine, NS_PER_S + i * NS_PER_MS, &kind, &probe[i]);
	}
	for (int tick = 1; tick <= 2200; tick++)
		fixture_advance_to(&fixture, tick * NS_PER_MS);
	for (int i = 0; i < COUNT; i++) {
		check_int(probe[i].runs, 1);
		count += probe[i].ran_at_ns != last_ns;
		last_ns = probe[i].ran_at_ns;
	}
	fixture_close(&fixture);
	return count;
}

Test(slack, slack_makes_timeouts_meet)
{
	check_int(meetings(0), COUNT);
	check_at_most(meetings(100 * NS_PER_MS), COUNT / 64 + 2);
}

/* In real time. The ten timeouts share their tick, so the worker sleeps once or twice. */
Test(slack, slack_saves_wake_ups)
{
	static const struct tw_kind kind = TW_KIND_SLACK(ran_note, NULL, 1000 * NS_PER_MS);
	struct tw_engine *engine = real_engine_open(NULL);
	static struct probe probe[10];
	struct tw_stats before;

	for (int i = 0; i < 10; i++) {
		probe_init(&probe[i], engine);
		must_schedule(engine, (100 + 10 * i) * NS_PER_MS, &kind, &probe[i]);
	}
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	before = stats_of(engine);
	for (int i = 0; i < 10; i++)
		check_true(wait_until_at_least(&probe[i].runs, 1));
	check_at_most(stats_of(engine).parks - before.parks, 4);
	real_engine_close(engine);
}

Test(slack, slack_moves_no_deadline_to_the_end_of_time)
{
	static const struct tw_kind wide = TW_KIND_SLACK(ran_note, NULL, INT64_MAX);
	static const struct tw_kind too_wide =
		TW_KIND_SLACK(ran_note, NULL, (uint64_t)INT64_MAX + 1);
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open_at(&fixture, NULL, 1000);
	probe_init(&probe, fixture.engine);
	check_int(tw_schedule(fixture.engine, 1, &too_wide, &probe, NULL), -EINVAL);
	handle = must_schedule(fixture.engine, TW_NEVER, &wide, &probe);
	check_int(deadline_of(handle), TW_NEVER);
	/* Slack must not move a deadline to the end of time. */
	handle = must_schedule_at(fixture.engine, TW_NEVER - 1, &wide, &probe);
	check_int(deadline_of(handle), TW_NEVER - 1);
	handle = must_schedule_at(fixture.engine, -5, &wide, &probe);
	check_at_most(deadline_of(handle), TW_NEVER - 1);
	fixture_close(&fixture);
}
