/* SPDX-License-Identifier: MIT */
/*
 * Scopes in virtual time: when timeouts of a scope run, which timeouts an end cancels, and what a
 * callback may do with its own scope.
 *
 * Seen to fail with these defects: the deadline stays TW_NEVER; the kind's slack is ignored; an end
 * omits the last slot, or the slots outside of the scope struct; a schedule does not check the
 * state; a slot is not freed; tw_scope_count returns the number of slots instead of timeouts.
 */
#include "scope_scene.h"

Test(scope, timeouts_run_when_they_are_due)
{
	static const int64_t delay_ns[] = {INT64_MIN + 1, -1, 0, 1, NS_PER_MS, NS_PER_S};
	enum { COUNT = sizeof delay_ns / sizeof delay_ns[0] };
	struct probe probe[COUNT];
	struct tw_scope *scope;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	for (int i = 0; i < COUNT; i++) {
		probe_init(&probe[i], fixture.engine);
		(void)scope_schedule(scope, delay_ns[i], &probe_final_kind, &probe[i]);
	}
	/* The worker may already have run the due timeouts. */
	check_at_least(tw_scope_count(scope), 3);
	check_at_most(tw_scope_count(scope), COUNT);
	fixture_advance(&fixture, NS_PER_MS);
	for (int i = 0; i < COUNT; i++)
		check_int(probe[i].runs, delay_ns[i] <= 1);
	check_int(tw_scope_count(scope), 2);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe[4].runs, 1);
	fixture_advance(&fixture, NS_PER_S);
	for (int i = 0; i < COUNT; i++) {
		check_int(probe[i].runs, 1);
		check_int(probe[i].end, TW_END_EXPIRED);
	}
	check_int(tw_scope_count(scope), 0);
	check_int(tw_scope_end(scope), 0);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

Test(scope, timeouts_run_at_their_deadlines)
{
	struct probe past, next, never;
	struct tw_scope *scope;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	fixture_advance(&fixture, NS_PER_S);
	scope = scope_open(fixture.engine);
	probe_init(&past, fixture.engine);
	probe_init(&next, fixture.engine);
	probe_init(&never, fixture.engine);
	check_int(tw_scope_schedule_at(scope, -5, &probe_kind, &past, NULL), 0);
	check_int(tw_scope_schedule_at(scope, fixture.now_ns + 3 * NS_PER_MS, &probe_kind, &next,
				       NULL),
		  0);
	check_int(tw_scope_schedule_at(scope, TW_NEVER, &probe_kind, &never, NULL), 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(past.runs, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(next.runs, 0);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(next.runs, 1);
	fixture_advance(&fixture, 1000000 * NS_PER_S);
	check_int(never.runs, 0);
	check_int(tw_scope_end(scope), 1);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

/* The deadline must be the same as with tw_schedule. If it would overflow, it must be TW_NEVER. */
Test(scope, deadlines_are_those_of_a_single_timeout)
{
	static const int64_t delay_ns[] = {0, 5, NS_PER_MS, TW_NEVER - 1, TW_NEVER};
	struct tw_kind slack = TW_KIND_SLACK(probe_kind.callback, NULL, 64000000);
	struct tw_scope *scope;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	fixture_advance(&fixture, 7 * NS_PER_MS);
	scope = scope_open(fixture.engine);
	probe_init(&probe, fixture.engine);
	for (size_t i = 0; i < sizeof delay_ns / sizeof delay_ns[0]; i++) {
		for (int slackened = 0; slackened < 2; slackened++) {
			const struct tw_kind *kind = slackened ? &slack : &probe_kind;
			struct tw_timeout in = {.size = sizeof in}, out = {.size = sizeof out};
			struct tw_handle handle;

			handle = scope_schedule(scope, delay_ns[i], kind, &probe);
			check_int(tw_timeout_get(handle, &in), 0);
			handle = must_schedule(fixture.engine, delay_ns[i], kind, &probe);
			check_int(tw_timeout_get(handle, &out), 0);
			check_int(in.deadline_ns, out.deadline_ns);
			check_true(in.kind == kind && in.arg == &probe && in.engine == out.engine);
		}
	}
	scope_close(scope);
	fixture_close(&fixture);
}

static void end_cancels(int count)
{
	struct probe *probe = calloc((size_t)count, sizeof *probe);
	struct tw_scope *scope;
	struct fixture fixture;
	struct probe other;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	(void)probe_schedule(&fixture, &other, NS_PER_S);
	for (int i = 0; i < count; i++) {
		probe_init(&probe[i], fixture.engine);
		(void)scope_schedule(scope, NS_PER_MS + i,
				     i % 3 == 0 ? &probe_final_kind : &probe_kind, &probe[i]);
		/* After half of the schedules, moves the timeouts that are scheduled so far into
		 * the wheel. */
		if (i == count / 2)
			fixture_flush(&fixture);
	}
	check_int(tw_scope_count(scope), count);
	check_int(tw_scope_end(scope), count);
	for (int i = 0; i < count; i++)
		check_int(probe[i].finalised, i % 3 == 0);
	check_int(tw_scope_count(scope), 0);
	/* A second end must find no timeouts. */
	check_int(tw_scope_end(scope), 0);
	check_int(tw_scope_end_wait(scope, TW_NEVER), 0);
	fixture_advance(&fixture, 2 * NS_PER_S);
	for (int i = 0; i < count; i++)
		check_int(probe[i].runs, 0);
	check_int(other.runs, 1);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
	free(probe);
}

Test(scope, end_cancels_all)
{
	for (int count = 0; count < 70; count++)
		end_cancels(count);
	end_cancels(3000);
}

Test(scope, handles_are_those_of_single_timeouts)
{
	struct tw_handle first, second, third;
	struct tw_scope *scope;
	struct fixture fixture;
	atomic_int runs = 0;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	first = scope_schedule(scope, NS_PER_MS, &count_kind, &runs);
	second = scope_schedule(scope, NS_PER_MS, &count_kind, &runs);
	third = scope_schedule(scope, NS_PER_MS, &count_kind, &runs);
	check_int(tw_cancel(first), TW_CANCEL_DONE);
	check_int(tw_reschedule(second, NS_PER_S), TW_RESCHEDULE_DONE);
	check_int(tw_scope_count(scope), 2);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(runs, 1);
	check_int(tw_cancel(third), TW_CANCEL_EXPIRED);
	check_int(tw_scope_end(scope), 1);
	check_int(tw_timeout_state(second), TW_STATE_CANCELLED);
	check_int(tw_cancel(second), TW_CANCEL_CANCELLED);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

Test(scope, nothing_comes_in_after_the_end)
{
	struct tw_handle handle = {NULL, 77};
	struct tw_scope *scope;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	probe_init(&probe, fixture.engine);
	check_int(tw_scope_end(scope), 0);
	check_int(tw_scope_schedule(scope, 0, &probe_final_kind, &probe, &handle), -ESHUTDOWN);
	check_int(tw_scope_schedule_at(scope, 0, &probe_final_kind, &probe, &handle), -ESHUTDOWN);
	check_true(handle.node == NULL && handle.generation == 77);
	fixture_advance(&fixture, NS_PER_S);
	check_int(probe.runs + probe.finalised, 0);
	check_int(tw_scope_count(scope), 0);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

/* A callback that makes calls on its own scope, and their results. */
struct session {
	struct tw_scope *scope;
	struct tw_handle handle;
	atomic_int runs, finalised;
	int64_t said[4];
};

static void on_session_end(struct tw_handle self, void *arg)
{
	struct session *session = arg;

	atomic_fetch_add(&session->runs, 1);
	session->said[0] = tw_scope_count(session->scope);
	session->said[1] = tw_scope_end(session->scope);
	session->said[2] = tw_scope_schedule(session->scope, 0, &count_kind, NULL, &self);
	session->said[3] = tw_scope_end_wait(session->scope, TW_NEVER);
	check_abort_unless(tw_scope_destroy(session->scope) == 0);
}

Test(scope, callback_ends_and_destroys_its_scope)
{
	struct session session = {.runs = 0};
	struct fixture fixture;
	atomic_int others = 0;

	fixture_open(&fixture, NULL);
	session.scope = scope_open(fixture.engine);
	{
		static const struct tw_kind kind = TW_KIND(on_session_end, NULL);

		(void)scope_schedule(session.scope, NS_PER_MS, &kind, &session);
	}
	for (int i = 0; i < 20; i++)
		(void)scope_schedule(session.scope, NS_PER_S, &count_kind, &others);
	fixture_advance(&fixture, NS_PER_MS + 1);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(session.runs, 1);
	check_int(session.said[0], 21);
	check_int(session.said[1], 20);
	check_int(session.said[2], -ESHUTDOWN);
	check_int(session.said[3], 0);
	check_int(others, 0);
	fixture_close(&fixture);
}

static void on_beat(struct tw_handle self, void *arg);
static const struct tw_kind beat_kind = TW_KIND(on_beat, NULL);

static void on_beat(struct tw_handle self, void *arg)
{
	struct session *session = arg;

	(void)self;
	atomic_fetch_add(&session->runs, 1);
	session->said[0] = tw_scope_schedule(session->scope, NS_PER_MS, &beat_kind, session, NULL);
}

/* A timeout whose callback schedules it again must run until the scope ends. */
Test(scope, callback_schedules_itself_again)
{
	struct session session = {.runs = 0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	session.scope = scope_open(fixture.engine);
	(void)scope_schedule(session.scope, NS_PER_MS, &beat_kind, &session);
	for (int i = 0; i < 100; i++)
		fixture_advance(&fixture, NS_PER_MS);
	/* Each run comes two ticks after the previous one, because its deadline is at the
	 * beginning of the second tick. */
	check_int(session.runs, 50);
	check_int(session.said[0], 0);
	check_int(tw_scope_count(session.scope), 1);
	scope_close(session.scope);
	session.runs = 0;
	fixture_advance(&fixture, NS_PER_S);
	check_int(session.runs, 0);
	fixture_close(&fixture);
}

static void on_last(void *arg, enum tw_end end)
{
	struct session *session = arg;

	atomic_fetch_add(&session->finalised, 1);
	session->said[0] = end;
	session->said[1] = tw_scope_schedule(session->scope, 0, &count_kind, NULL, NULL);
	session->said[2] = tw_scope_end(session->scope);
}

/* A finaliser that runs inside the end must find the scope ended. Its own call of end cancels
 * the remaining timeouts. */
Test(scope, finaliser_inside_the_end)
{
	static const struct tw_kind kind = TW_KIND(on_beat, on_last);
	struct session session = {.runs = 0};
	struct fixture fixture;
	atomic_int others = 0;

	fixture_open(&fixture, NULL);
	session.scope = scope_open(fixture.engine);
	(void)scope_schedule(session.scope, NS_PER_MS, &kind, &session);
	for (int i = 0; i < 5; i++)
		(void)scope_schedule(session.scope, NS_PER_MS, &count_kind, &others);
	check_int(tw_scope_end(session.scope), 1);
	check_int(session.finalised, 1);
	check_int(session.said[0], TW_END_CANCELLED);
	check_int(session.said[1], -ESHUTDOWN);
	check_int(session.said[2], 5);
	fixture_advance(&fixture, NS_PER_S);
	check_int(session.runs + others, 0);
	check_int(tw_scope_destroy(session.scope), 0);
	fixture_close(&fixture);
}

/* Frees the object that holds the handle. The handle must not be written after that. */
static void on_free(void *arg, enum tw_end end)
{
	(void)end;
	free(arg);
}

Test(scope, handle_may_lie_in_what_the_finaliser_frees)
{
	static const struct tw_kind kind = TW_KIND(on_beat, on_free);
	struct tw_scope *scope;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	for (int i = 0; i < 40; i++) {
		struct session *session = calloc(1, sizeof *session);

		session->scope = scope;
		check_int(tw_scope_schedule(scope, NS_PER_S, &kind, session, &session->handle), 0);
		if (i % 2 == 0)
			check_int(tw_cancel(session->handle), TW_CANCEL_DONE);
	}
	check_int(tw_scope_end(scope), 20);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

/* Two scopes of one engine, and timeouts without a scope, must not affect each other. */
Test(scope, scopes_are_independent)
{
	struct tw_scope *left, *right;
	struct fixture fixture;
	atomic_int runs = 0;

	fixture_open(&fixture, NULL);
	left = scope_open(fixture.engine);
	right = scope_open(fixture.engine);
	for (int i = 0; i < 30; i++) {
		(void)scope_schedule(left, NS_PER_MS, &count_kind, &runs);
		(void)scope_schedule(right, NS_PER_MS, &count_kind, &runs);
		(void)must_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs);
	}
	check_int(tw_scope_end(left), 30);
	check_int(tw_scope_destroy(left), 0);
	fixture_advance(&fixture, NS_PER_S);
	check_int(runs, 60);
	scope_close(right);
	fixture_close(&fixture);
}
