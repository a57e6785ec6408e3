/* SPDX-License-Identifier: MIT */
/*
 * Races cancel against the worker, and against another cancel. The timeout must end once, as each
 * outcome says. If a caller learns that the callback ran, it sees what the callback wrote (E1, E4).
 *
 * Seen to fail with these defects:
 * - word_end() ends a run by a relaxed swap;
 * - victim_cancel() loads the state word relaxed;
 * - pending_cancel() does not acquire if its swap fails;
 * - node_expire() expires a timeout by a load and a store instead of a swap;
 * - own_cancel() cancels by a load and a store, or relaxed.
 */
#include "world.h"

#include "worker/state.h"

static struct probe one, two;
static unsigned before_own;
static int own_outcome, other_outcome;

static void open_in_ingress(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	world_thread_bare(1);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
}

static void open_due(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	world_thread_bare(1);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, WORLD_DUE_NS);
}

/* Opens with the timeout in the wheel and due. */
static void open_wheeled(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	world_thread_bare(1);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, WORLD_NOW_NS + WORLD_TICK_NS);
	world_turn();
	world_time_goes_on();
}

static void cancel(void)
{
	one.outcome = tw_cancel(one.handle);
	if (one.outcome == TW_CANCEL_EXPIRED)
		MODEL_CHECK(one.ran == 1 && one.ended[TW_END_EXPIRED] == 1);
	if (one.outcome == TW_CANCEL_DONE)
		MODEL_CHECK(one.ended[TW_END_CANCELLED] == 1);
}

static void turn(void)
{
	world_turn();
}

static void turn_twice(void)
{
	world_turn();
	world_turn();
}

static void ended_as_told(void)
{
	world_turn();
	world_close();
	if (probe_end(&one) == TW_END_CANCELLED)
		MODEL_CHECK(one.outcome == TW_CANCEL_DONE);
	else
		MODEL_CHECK(one.outcome != TW_CANCEL_DONE);
}

/* Runs on the worker's own thread, in the callback of `one`, and cancels `two`. */
static void cancel_own(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	before_own = 1;
	own_outcome = tw_cancel(two.handle);
}

static void open_own(void)
{
	static const struct tw_kind kind = TW_KIND(cancel_own, NULL);

	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &kind, WORLD_NOW_NS + WORLD_TICK_NS);
	world_schedule(&two, &probe_kind, TW_NEVER);
	world_turn();
	world_time_goes_on();
}

static void cancel_other(void)
{
	other_outcome = tw_cancel(two.handle);
}

static void one_of_two(void)
{
	MODEL_CHECK((own_outcome == TW_CANCEL_DONE) != (other_outcome == TW_CANCEL_DONE));
	world_turn();
	world_close();
	MODEL_CHECK(probe_end(&two) == TW_END_CANCELLED);
}

static void look_if_cancelled(void)
{
	if (tw_timeout_state(two.handle) == TW_STATE_CANCELLED)
		MODEL_CHECK(before_own == 1);
}

MODEL_HARNESS(cancel_own, .proves = "of the worker's own cancel and another cancel, one succeeds",
	      .setup = open_own, .thread = {turn, cancel_other}, .finish = one_of_two,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(cancel_own_seen,
	      .proves = "a thread that sees the worker's cancel sees what came before it",
	      .setup = open_own, .thread = {turn, look_if_cancelled}, .finish = world_close,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(cancel_transfer,
	      .proves = "cancel and the transfer: the timeout ends once, as the code says",
	      .setup = open_in_ingress, .thread = {cancel, turn_twice}, .finish = ended_as_told,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(cancel_due,
	      .proves = "cancel, transfer and expiry in one turn: the timeout ends once",
	      .setup = open_due, .thread = {cancel, turn}, .finish = ended_as_told,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(cancel_expire, .proves = "a cancel that reports a run sees what the callback wrote",
	      .setup = open_wheeled, .thread = {cancel, turn}, .finish = ended_as_told,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
