/* SPDX-License-Identifier: MIT */
/*
 * Timeouts by id, and the functions for handles: none, equal, as text.
 *
 * Seen to fail with these defects: the id is written after the push; after a rejection, the old id
 * stays; an id does not contain the generation; an invalid index is looked up beyond the slabs.
 */
#include "fixture.h"
#include "probe.h"
#include "random.h"
#include "slowdown.h"

#include <errno.h>
#include <string.h>

enum { TICK_NS = NS_PER_MS };

Test(id, life_of_a_timeout)
{
	struct fixture fixture;
	atomic_int runs = 0;
	tw_id id = TW_ID_NONE, other = TW_ID_NONE;

	fixture_open(&fixture, NULL);
	check_int(tw_id_schedule(fixture.engine, 5 * TICK_NS, &count_kind, &runs, &id), 0);
	check_int(tw_id_schedule_at(fixture.engine, 5 * TICK_NS, &count_kind, &runs, &other), 0);
	check_true(id != TW_ID_NONE && other != TW_ID_NONE && id != other);
	check_int(tw_id_state(id), TW_STATE_INIT);
	check_true(tw_id_of(tw_id_handle(id)) == id);
	check_int(tw_id_reschedule(id, 9 * TICK_NS), TW_RESCHEDULE_DONE);
	check_int(tw_id_cancel(other), TW_CANCEL_DONE);
	check_int(tw_id_cancel(other), TW_CANCEL_CANCELLED);
	check_int(tw_id_state(other), TW_STATE_CANCELLED);
	fixture_advance(&fixture, 8 * TICK_NS);
	check_int(runs, 0);
	check_int(tw_id_reschedule_at(id, 9 * TICK_NS), TW_RESCHEDULE_DONE);
	fixture_advance(&fixture, 8 * TICK_NS);
	check_int(runs, 1);
	check_int(tw_id_state(id), TW_STATE_EXPIRED);
	check_int(tw_id_cancel(id), TW_CANCEL_EXPIRED);
	check_int(tw_id_reschedule(id, 1), TW_RESCHEDULE_EXPIRED);
	fixture_close(&fixture);
	/* Ids, like handles, remain valid after their engine has been destroyed. */
	check_int(tw_id_cancel(id), TW_CANCEL_EXPIRED);
}

Test(id, id_of_a_periodic_timeout_serves_all_runs)
{
	static const struct tw_period each = TW_PERIOD_RATE(TICK_NS);
	struct fixture fixture;
	atomic_int runs = 0;
	tw_id id = TW_ID_NONE;

	fixture_open(&fixture, NULL);
	check_int(tw_id_schedule_periodic(fixture.engine, &each, &count_kind, &runs, &id), 0);
	for (int i = 0; i < 5; i++)
		fixture_advance(&fixture, TICK_NS);
	check_at_least(atomic_load(&runs), 4);
	check_int(tw_id_state(id), TW_STATE_INIT);
	check_int(tw_id_cancel(id), TW_CANCEL_DONE);
	check_int(tw_id_state(id), TW_STATE_CANCELLED);
	fixture_close(&fixture);
}

/*
 * In the next test, the callback frees the object that holds the id. So the id must be stored
 * before the callback can run.
 */
struct object {
	tw_id id;
	atomic_int *runs;
};

static void on_object(struct tw_handle self, void *arg)
{
	struct object *object = arg;

	check_true(object->id == tw_id_of(self));
	atomic_fetch_add(object->runs, 1);
	memset(object, 0xff, sizeof *object);
	free(object);
}

static const struct tw_kind object_kind = TW_KIND(on_object, NULL);

Test(id, is_there_before_the_callback)
{
	struct tw_engine *engine = real_engine_open(NULL);
	int count = (int)slowed(50000);
	atomic_int runs = 0;

	for (int i = 0; i < count; i++) {
		struct object *object = calloc(1, sizeof *object);

		object->runs = &runs;
		check_int(tw_id_schedule(engine, 0, &object_kind, object, &object->id), 0);
	}
	check_true(wait_until_at_least(&runs, count));
	real_engine_close(engine);
}

Test(id, in_a_loop)
{
	static struct tw_kind owned;
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;
	tw_id id = TW_ID_NONE, before;

	owned = count_kind;
	owned.flags = TW_KIND_FLAG_OWNER_ONLY;
	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	for (int i = 0; i < 1000; i++) {
		check_int(tw_id_schedule_at(fixture.engine, NS_PER_S, &owned, &runs, &id), 0);
		if (i % 3 == 0)
			check_int(tw_id_cancel(id), TW_CANCEL_DONE);
	}
	check_int(tw_loop_exit(fixture.engine), 0);
	before = id;
	check_int(tw_id_schedule_at(fixture.engine, NS_PER_S, &owned, &runs, &id), -EPERM);
	check_true(id == before);
	check_int(tw_id_cancel(tw_id_of(tw_id_handle(id))), TW_CANCEL_CANCELLED);
	check_int(tw_clock_set(fixture.clock, NS_PER_S), 0);
	check_int(tw_engine_poll(fixture.engine, 0), 666);
	fixture_close(&fixture);
}

Test(id, rejections_leave_the_id)
{
	static const struct tw_period wrong = TW_PERIOD_RATE(0);
	struct tw_kind unset = {.size = sizeof unset};
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;
	tw_id id = 77;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	check_int(tw_id_schedule(NULL, 1, &count_kind, &runs, &id), -EINVAL);
	check_int(tw_id_schedule(fixture.engine, 1, &count_kind, &runs, NULL), -EINVAL);
	check_int(tw_id_schedule(fixture.engine, 1, NULL, &runs, &id), -EINVAL);
	check_int(tw_id_schedule(fixture.engine, 1, &unset, &runs, &id), -EINVAL);
	check_int(tw_id_schedule(fixture.engine, INT64_MIN, &count_kind, &runs, &id), -ERANGE);
	check_int(tw_id_schedule_at(fixture.engine, 1, NULL, &runs, &id), -EINVAL);
	check_int(tw_id_schedule_at(NULL, 1, &count_kind, &runs, &id), -EINVAL);
	check_int(tw_id_schedule_periodic(NULL, &wrong, &count_kind, &runs, &id), -EINVAL);
	check_int(tw_id_schedule_periodic(fixture.engine, &wrong, &count_kind, &runs, &id),
		  -EINVAL);
	check_int(tw_id_schedule_periodic(fixture.engine, NULL, &count_kind, &runs, NULL), -EINVAL);
	must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	check_int(tw_id_schedule(fixture.engine, 1, &count_kind, &runs, &id), -EAGAIN);
	fixture_stop(&fixture);
	check_int(tw_id_schedule(fixture.engine, 1, &count_kind, &runs, &id), -ESHUTDOWN);
	check_true(id == 77);
	check_last_books(fixture.engine);
	fixture_destroy(&fixture);
}

/* Makes up ids near to a valid one. No call has returned any of them. */
Test(id, made_up_ids_are_rejected)
{
	struct random random = {.state = 5};
	int count = (int)slowed(300000);
	struct fixture fixture;
	atomic_int runs = 0;
	tw_id id = TW_ID_NONE;

	fixture_open(&fixture, NULL);
	check_int(tw_id_schedule(fixture.engine, NS_PER_S, &count_kind, &runs, &id), 0);
	check_int(tw_id_cancel(TW_ID_NONE), -EINVAL);
	check_int(tw_id_state(TW_ID_NONE), -EINVAL);
	check_int(tw_id_reschedule(TW_ID_NONE, 1), -EINVAL);
	check_int(tw_id_reschedule_at(TW_ID_NONE, 1), -EINVAL);
	check_int(tw_handle_is_set(tw_id_handle(TW_ID_NONE)), 0);
	check_int(tw_handle_is_set(tw_id_handle(UINT64_MAX)), 0);
	check_int(tw_id_cancel(UINT64_MAX), -EINVAL);
	check_int(tw_id_cancel(id & ~UINT64_C(0xffffffff)), -EINVAL);
	check_int(tw_id_state(id + 1), -ESTALE);
	for (int i = 0; i < count; i++) {
		uint64_t bits = random_next(&random);
		tw_id wrong = i % 2 == 0 ? bits : id + (bits % 20000 << 32 | (bits >> 32) % 16);

		if (wrong != id)
			check_true(tw_id_cancel(wrong) != TW_CANCEL_DONE);
	}
	check_int(tw_id_cancel(id), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

Test(id, handles_compare_by_their_timeout)
{
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_handle one, two;

	fixture_open(&fixture, NULL);
	one = must_schedule(fixture.engine, 1, &count_kind, &runs);
	two = must_schedule(fixture.engine, 1, &count_kind, &runs);
	check_int(tw_handle_is_set(TW_HANDLE_NONE), 0);
	check_int(tw_handle_is_set(one), 1);
	check_int(tw_handle_equal(one, one), 1);
	check_int(tw_handle_equal(one, two), 0);
	check_int(tw_handle_equal(one, TW_HANDLE_NONE), 0);
	check_int(tw_handle_equal(TW_HANDLE_NONE, TW_HANDLE_NONE), 1);
	check_true(tw_id_of(TW_HANDLE_NONE) == TW_ID_NONE);
	check_true(tw_id_of(one) != tw_id_of(two));
	fixture_close(&fixture);
}

static const char *text_of(struct tw_handle handle)
{
	static char text[300];
	int length = tw_timeout_text(handle, text, sizeof text);

	check_int(length, (int)strlen(text));
	/* If the buffer is too small, it must get as much of the text as fits. */
	for (size_t bytes = 0; bytes < 20; bytes++) {
		char small[20];

		memset(small, '#', sizeof small);
		check_int(tw_timeout_text(handle, small, bytes), length);
		check_true(bytes == 0 || strncmp(small, text, bytes - 1) == 0);
		check_true(bytes == 0 || small[bytes - 1] == '\0');
		check_true(small[bytes] == '#');
	}
	check_int(tw_timeout_text(handle, NULL, 0), length);
	return text;
}

static void check_has(const char *text, const char *part)
{
	cr_assert(strstr(text, part) != NULL, "%s: has no %s", text, part);
}

Test(id, a_timeout_as_text)
{
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = must_schedule_at(fixture.engine, 12 * NS_PER_S + 5, &count_kind, &runs);
	check_has(text_of(handle), ": init, deadline 12.000000005 s, kind 0x");
	check_int(tw_reschedule_at(handle, TW_NEVER), TW_RESCHEDULE_DONE);
	check_has(text_of(handle), "deadline never");
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_has(text_of(handle), ": cancelled, ");
	(void)must_schedule(fixture.engine, 1, &count_kind, &runs);
	check_has(text_of(TW_HANDLE_NONE), ": none");
	handle.generation += (uint64_t)100 << 32;
	check_has(text_of(handle), ": ended");
	check_int(tw_timeout_text(handle, NULL, 1), -EINVAL);
	fixture_close(&fixture);
}
