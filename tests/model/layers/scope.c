/* SPDX-License-Identifier: MIT */
/*
 * Scopes: a schedule races against an end, and two ends race. Other harnesses have a scope that
 * grows, slots that are used again, and an end that waits for a callback (E4, E140, E141). In this
 * build only the scope's first slot is part of the scope itself; the others come in chunks.
 *
 * Seen to fail with these defects:
 * - an end combines the generation of one handle with the node of another;
 * - an end reads the slots as an array of handles while another end loads them one by one;
 * - scope_close(), end_leave() or scope_leave() changes the scope's word relaxed;
 * - the node or the generation of a slot is stored or loaded relaxed;
 * - chunk_make() stores a chunk relaxed;
 * - member_over() loads the member's state word relaxed;
 * - scope_schedule() sets the deadline before scope_leave();
 * - an end does not copy the handles one by one while a schedule is inside.
 */
#include "scope/scope.h"
#include "world.h"

#include <errno.h>

static struct tw_scope *scope;
static struct probe first, second, third;
static int64_t cancelled[MODEL_FIBERS];
static int waited;

static void open_empty(void)
{
	world_open_layer();
	MODEL_CHECK(tw_scope_create(world.engine, &world_pages, &scope) == 0);
}

static void schedule_probe(struct probe *probe, int64_t deadline_ns)
{
	probe->outcome =
		tw_scope_schedule_at(scope, deadline_ns, &probe_kind, probe, &probe->handle);
	MODEL_CHECK(probe->outcome == 0 || probe->outcome == -ESHUTDOWN);
}

/* Opens a scope with one member, which fills its slot. */
static void open_full(void)
{
	open_empty();
	schedule_probe(&first, TW_NEVER);
}

/* Opens a scope with one member, which is in the wheel and due. */
static void open_due(void)
{
	open_empty();
	schedule_probe(&first, WORLD_NOW_NS + WORLD_TICK_NS);
	world_turn();
	world_time_goes_on();
}

/* Opens a scope with one member, whose callback has run. */
static void open_run(void)
{
	open_due();
	world_turn();
	MODEL_CHECK(first.ran == 1);
}

static void first_comes_and_goes(void)
{
	schedule_probe(&first, TW_NEVER);
	MODEL_CHECK(tw_cancel(first.handle) == TW_CANCEL_DONE);
}

/*
 * Opens a scope whose slot has held a timeout. The first thread's next timeout gets the memory of
 * that timeout.
 */
static void open_left(void)
{
	open_empty();
	model_as(0, first_comes_and_goes);
}

static void schedule_second(void)
{
	schedule_probe(&second, WORLD_DUE_NS);
}

static void schedule_third(void)
{
	schedule_probe(&third, WORLD_DUE_NS);
}

static void cancel_first(void)
{
	(void)tw_cancel(first.handle);
}

static void turn(void)
{
	world_turn();
}

static void end(void)
{
	cancelled[model_self()] = tw_scope_end(scope);
	MODEL_CHECK(cancelled[model_self()] >= 0);
}

/*
 * Ends the scope, then makes a turn. Only this thread makes turns, so a callback that runs in this
 * turn would run after the end.
 */
static void end_and_turn(void)
{
	end();
	world_turn();
	MODEL_CHECK(second.ran == 0);
}

/*
 * Ends the scope and waits. Then no callback runs, and this thread sees what the member's callback
 * wrote.
 */
static void end_wait(void)
{
	waited = tw_scope_end_wait(scope, TW_NEVER);
	MODEL_CHECK(waited == 0);
	MODEL_CHECK(first.ended[TW_END_EXPIRED] + first.ended[TW_END_CANCELLED] == 1);
	MODEL_CHECK(first.ran == first.ended[TW_END_EXPIRED]);
	first.ran += 10;
}

/*
 * Checks the member. If it was accepted, it must have been cancelled. If it was rejected, it must
 * not have ended at all.
 */
static void none_left(const struct probe *probe)
{
	MODEL_CHECK(probe->ran == 0);
	MODEL_CHECK(probe->ended[TW_END_CANCELLED] == (probe->outcome == 0 ? 1u : 0u));
	MODEL_CHECK(probe->ended[TW_END_EXPIRED] + probe->ended[TW_END_UNEXPIRED] == 0);
}

static void close_all(void)
{
	MODEL_CHECK(tw_scope_count(scope) == 0);
	world_time_goes_on();
	world_turn();
	world_close();
	MODEL_CHECK(tw_scope_end(scope) == 0);
	MODEL_CHECK(tw_scope_destroy(scope) == 0);
}

static void second_left(void)
{
	close_all();
	none_left(&second);
}

static void all_left(void)
{
	close_all();
	none_left(&first);
	none_left(&second);
	none_left(&third);
}

/*
 * Checks that the finaliser of each cancelled timeout ran once. Also checks the sum of what the two
 * ends returned. An end must have counted `first`. It need not have counted `second`, which its own
 * schedule may have cancelled.
 */
static void ended_once(void)
{
	second_left();
	none_left(&first);
	MODEL_CHECK(cancelled[1] + cancelled[2] <=
		    first.ended[TW_END_CANCELLED] + second.ended[TW_END_CANCELLED]);
	MODEL_CHECK(cancelled[1] + cancelled[2] >= first.ended[TW_END_CANCELLED]);
}

static void waited_for(void)
{
	close_all();
	MODEL_CHECK(first.ran >= 10);
}

static void waited_for_and_left(void)
{
	waited_for();
	MODEL_CHECK(second.ran == second.ended[TW_END_EXPIRED]);
	MODEL_CHECK(second.ended[TW_END_EXPIRED] + second.ended[TW_END_CANCELLED] ==
		    (second.outcome == 0 ? 1u : 0u));
}

/*
 * Checks that both members are in the scope, each in a slot of its own. Otherwise the end would
 * miss one of them.
 */
static void both_in(void)
{
	end();
	close_all();
	MODEL_CHECK(second.outcome == 0 && third.outcome == 0);
	none_left(&second);
	none_left(&third);
}

MODEL_HARNESS(scope_end,
	      .proves = "a schedule and an end: the member is cancelled, or was rejected",
	      .setup = open_empty, .thread = {schedule_second, end_and_turn}, .finish = second_left,
	      .preemptions = 2, .weak = 1, .any_order = true, .random_runs = 500);
MODEL_HARNESS(scope_grow, .proves = "a schedule in a new chunk and an end: cancelled, or rejected",
	      .setup = open_full, .thread = {schedule_second, schedule_third, end},
	      .finish = all_left, .preemptions = 1, .weak = 1, .any_order = true,
	      .random_runs = 500);
MODEL_HARNESS(scope_two_ends,
	      .proves = "two ends and a schedule: no member is left, and each is counted",
	      .setup = open_full, .thread = {end, end, schedule_second}, .finish = ended_once,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(scope_claim,
	      .proves = "two schedules get two slots, even if one slot was used before",
	      .setup = open_run, .thread = {schedule_second, schedule_third}, .finish = both_in,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(scope_again,
	      .proves = "two schedules get two slots, even if a slot gets the same memory again",
	      .setup = open_left, .thread = {schedule_second, schedule_third}, .finish = both_in,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(scope_wait, .proves = "an end that waits sees what the callback wrote",
	      .setup = open_due, .thread = {turn, end_wait}, .finish = waited_for, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(scope_reuse,
	      .proves = "an end that waits sees the callback's writes, even if the slot is reused",
	      .setup = open_due, .thread = {turn, schedule_second, end_wait},
	      .finish = waited_for_and_left, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(scope_cancel, .proves = "a single cancel frees the slot for a schedule",
	      .setup = open_full, .thread = {cancel_first, schedule_second, end},
	      .finish = second_left, .preemptions = 1, .weak = 1, .random_runs = 500);
