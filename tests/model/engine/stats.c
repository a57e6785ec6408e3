/* SPDX-License-Identifier: MIT */
/*
 * Races readers of the counters against threads that schedule and cancel (E90). A reader must see a
 * lane's counts of scheduled and of ended timeouts as of one moment, in whatever order it reads. A
 * reader that sees an end must also see everything that was counted before it.
 *
 * Seen to fail with these defects:
 * - lane_read() loads the pair of counters in two halves, or relaxed;
 * - twi_half_count() adds to `scheduled_count`, or to `ended_count`, relaxed;
 * - a cancel in the wheel is counted in `ended_count` before it is counted in `cancelled_count`;
 * - early_report() does not store the number that it reports, so a later reader may report a
 *   smaller one.
 */
#include "world.h"

enum { ROUNDS = 2 };

/*
 * A timeout that no thread ends. Without it, a count that is one too low could still read as zero
 * and pass.
 */
static struct probe standing;
static struct probe own[ROUNDS], wheeled;

static void open_running(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&standing, &probe_kind, TW_NEVER);
}

/* Puts the timeout into the wheel before a thread cancels it. */
static void open_wheeled(void)
{
	open_running();
	world_schedule(&wheeled, &probe_kind, TW_NEVER);
	world_turn();
}

static void share_lane(void)
{
	twi_thread()->lane = TWI_LANE_SHARED;
	twi_thread()->presence = NULL;
}

static void open_shared(void)
{
	open_running();
	model_as(0, share_lane);
}

static void open_wheeled_shared(void)
{
	open_wheeled();
	model_as(0, share_lane);
}

/* Opens an engine in loop mode: the polling thread files timeouts straight into the wheel. */
static void open_loop(void)
{
	struct tw_options options = world_options();

	options.flags = TW_ENGINE_LOOP;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
	world_schedule(&standing, &probe_kind, TW_NEVER);
}

static void own_round(struct probe *probe)
{
	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &probe_kind, probe, &probe->handle) ==
		    0);
	MODEL_CHECK(tw_cancel(probe->handle) == TW_CANCEL_DONE);
}

static void schedule_and_cancel(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		own_round(&own[i]);
}

static void cancel_wheeled(void)
{
	MODEL_CHECK(tw_cancel(wheeled.handle) == TW_CANCEL_DONE);
}

static void own_and_cancel(void)
{
	MODEL_CHECK(tw_loop_enter(world.engine) == 0);
	schedule_and_cancel();
	MODEL_CHECK(twi_load_relaxed(&world.worker->direct_cancelled_count) == ROUNDS);
	MODEL_CHECK(tw_loop_exit(world.engine) == 0);
}

static void cancel_both(void)
{
	own_round(&own[0]);
	cancel_wheeled();
}

/*
 * Reads how many timeouts are pending. One timeout (`standing`) always is. The other thread has at
 * most one more.
 */
static void read_pending(void)
{
	int64_t pending = tw_engine_pending(world.engine);

	MODEL_CHECK(pending == 1 || pending == 2);
}

static struct tw_stats stats_read(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.scheduled == stats.pending + stats.cancelled);
	return stats;
}

/*
 * Reads the counters three times. None may fall. At most one cancel took place in a ring, so at
 * most one counts as early.
 */
static void read_thrice(void)
{
	struct tw_stats first = stats_read();
	struct tw_stats second = stats_read();
	struct tw_stats third = stats_read();

	MODEL_CHECK(first.scheduled <= second.scheduled && first.cancelled <= second.cancelled);
	MODEL_CHECK(first.cancelled_early <= second.cancelled_early);
	MODEL_CHECK(second.cancelled_early <= third.cancelled_early);
	MODEL_CHECK(third.cancelled_early <= 1);
}

static void close_it(void)
{
	world_close();
	MODEL_CHECK(standing.unexpired == 1);
}

/*
 * The value of `cancelled_early` that each reader got. The next reader must get the greatest of
 * these values.
 */
static uint64_t early_read[MODEL_FIBERS];

static void read_early(void)
{
	early_read[model_self()] = stats_read().cancelled_early;
}

static void close_early(void)
{
	for (unsigned i = 0; i < MODEL_FIBERS; i++)
		MODEL_CHECK(early_read[i] <= twi_load_relaxed(&world.worker->early_reported));
	close_it();
}

/* Reads the counters. No cancel took place in a ring, so none may count as early. */
static void read_wheeled(void)
{
	struct tw_stats stats = stats_read();

	MODEL_CHECK(stats.scheduled == 2 && stats.cancelled_early == 0);
}

MODEL_HARNESS(stats_own,
	      .proves = "a reader counts 0 or 1 pending of a thread that cancels its own timeouts",
	      .setup = open_running, .thread = {schedule_and_cancel, read_pending},
	      .finish = close_it, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(stats_own_shared,
	      .proves = "in the shared lane, a reader counts 0 or 1 pending of such a thread",
	      .setup = open_shared, .thread = {schedule_and_cancel, read_pending},
	      .finish = close_it, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(stats_thrice, .proves = "no counter falls, and the counters agree in each reading",
	      .setup = open_wheeled, .thread = {cancel_both, read_thrice}, .finish = close_it,
	      .preemptions = 2, .weak = 0, .random_runs = 500);
MODEL_HARNESS(stats_wheeled, .proves = "a timeout cancelled in the wheel does not count as early",
	      .setup = open_wheeled, .thread = {cancel_wheeled, read_wheeled}, .finish = close_it,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(stats_wheeled_shared,
	      .proves = "in the shared lane, a timeout cancelled in the wheel is not early",
	      .setup = open_wheeled_shared, .thread = {cancel_wheeled, read_wheeled},
	      .finish = close_it, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(stats_direct, .proves = "a reader counts 0 or 1 pending of the owner of a loop",
	      .setup = open_loop, .thread = {own_and_cancel, read_pending}, .finish = close_it,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(stats_two_readers, .proves = "no reader gets a smaller number than an earlier reader",
	      .setup = open_running, .thread = {schedule_and_cancel, read_early, read_early},
	      .finish = close_early, .preemptions = 2, .weak = 0, .random_runs = 500);
