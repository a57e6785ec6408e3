/* SPDX-License-Identifier: MIT */
/*
 * Scaled kinds (scaled/scaled.h says what factor, turn, driver, relay and seat are). A schedule and
 * changes of the factor race against a turn of the kind. In other harnesses a change of the factor
 * races against the creation or the end of a kind, or a stop races against a turn (E150, E151).
 *
 * Seen to fail with these defects:
 * - twi_seat_drive() does not make the relay due if it cannot make the driver due;
 * - on_driver(), or twi_seat_drive(), does not swap `asked`, or swaps it relaxed;
 * - timers_make() does not make its read-modify-write of `engine->factor`;
 * - that step, or the one in tw_scaled_factor_set, is relaxed;
 * - the list of seats is stored or loaded relaxed;
 * - seat_claim() claims a seat relaxed;
 * - twi_seat_handle() loads a handle relaxed;
 * - turn_polls() polls again and again for a push that is not linked yet;
 * - turn_next_ns() does not schedule a second look at such a push.
 */
#include "scaled/scaled.h"
#include "world.h"

static struct tw_scaled *scaled, *other;
static struct probe first, second;

/* Makes a turn of the engine. It runs the kind's turn only if the driver is due. */
static void turn(void)
{
	world_turn();
}

static void drive(void)
{
	twi_seat_drive(scaled->seat);
}

static void kind_open(void)
{
	MODEL_CHECK(tw_scaled_create(world.engine, 0, INT64_C(100) * WORLD_TICK_NS, &scaled) == 0);
}

static void other_open(void)
{
	MODEL_CHECK(tw_scaled_create(world.engine, 0, WORLD_TICK_NS, &other) == 0);
}

static void factor_low(void)
{
	MODEL_CHECK(tw_scaled_factor_set(world.engine, 0) == 0);
}

/* Opens a kind that has no timeouts. Its driver waits for nothing. */
static void open_waiting(void)
{
	world_open_layer();
	kind_open();
	turn();
}

/* Opens a kind whose next turn is due, because the factor has changed. */
static void open_driven(void)
{
	open_waiting();
	factor_low();
}

static void schedule_first(void)
{
	first.outcome = tw_scaled_schedule(scaled, &probe_kind, &first, &first.handle);
}

static void schedule_second(void)
{
	second.outcome = tw_scaled_schedule(scaled, &probe_kind, &second, &second.handle);
}

/* Opens a kind with a timeout whose deadline is far away. The kind's next turn is due. */
static void open_far(void)
{
	open_waiting();
	schedule_first();
	turn();
	drive();
}

static void open_stopping(void)
{
	open_driven();
	schedule_first();
}

/*
 * Creates a kind and makes its first turn, which reads the factor. Meanwhile the thread that sets
 * the factor may still be about to visit the seats.
 */
static void create_and_turn(void)
{
	kind_open();
	schedule_first();
	turn();
}

static void stop(void)
{
	MODEL_CHECK(tw_scaled_stop(scaled, NULL, NULL, TW_NEVER) == 0);
}

static void stop_and_destroy(void)
{
	stop();
	MODEL_CHECK(tw_scaled_destroy(scaled) == 0);
	scaled = NULL;
}

static void turn_and_destroy(void)
{
	turn();
	stop_and_destroy();
}

/* Opens with a kind that has ended and has left its seat. */
static void open_left(void)
{
	open_waiting();
	stop_and_destroy();
}

static void close_all(void)
{
	if (scaled != NULL)
		stop_and_destroy();
	world_close();
}

/* Runs everything that is due. Only drives have made these turns due. */
static void settle(void)
{
	world_time_goes_on();
	for (int i = 0; i < 4; i++)
		turn();
}

static void other_end(void)
{
	MODEL_CHECK(tw_scaled_stop(other, NULL, NULL, TW_NEVER) == 0);
	MODEL_CHECK(tw_scaled_destroy(other) == 0);
	other = NULL;
}

/* Checks that the two kinds do not share a seat. */
static void two_apart(void)
{
	MODEL_CHECK(scaled->seat != other->seat);
	settle();
	other_end();
	close_all();
}

static void other_left(void)
{
	other_end();
	close_all();
}

static void first_ran(void)
{
	settle();
	MODEL_CHECK(first.outcome == 0 && first.ran == 1);
	close_all();
}

static void both_ran(void)
{
	settle();
	MODEL_CHECK(first.outcome == 0 && first.ran == 1);
	MODEL_CHECK(second.outcome == 0 && second.ran == 1);
	close_all();
}

static void ended_once(void)
{
	close_all();
	MODEL_CHECK(first.ended[TW_END_EXPIRED] + first.ended[TW_END_UNEXPIRED] == 1);
	MODEL_CHECK(first.ran == first.ended[TW_END_EXPIRED]);
}

MODEL_HARNESS(scaled_schedule, .proves = "a timeout that is scheduled during a turn runs",
	      .setup = open_driven, .thread = {schedule_first, turn}, .finish = first_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 300);
MODEL_HARNESS(scaled_schedules, .proves = "timeouts that two threads schedule during a turn run",
	      .setup = open_driven, .thread = {schedule_first, schedule_second, turn},
	      .finish = both_ran, .preemptions = 1, .weak = 1, .random_runs = 300);
MODEL_HARNESS(scaled_factor, .proves = "a change of the factor during a turn is not missed",
	      .setup = open_far, .thread = {factor_low, turn}, .finish = first_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 300);
MODEL_HARNESS(scaled_factors, .proves = "two threads may change the factor during a turn",
	      .setup = open_far, .thread = {factor_low, factor_low, turn}, .finish = first_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 300);
MODEL_HARNESS(scaled_create, .proves = "a new kind does not miss a change of the factor",
	      .setup = world_open_layer, .thread = {create_and_turn, factor_low},
	      .finish = first_ran, .preemptions = 2, .weak = 1, .random_runs = 300);
MODEL_HARNESS(scaled_again,
	      .proves = "a kind that takes a seat of an ended kind misses no change of the factor",
	      .setup = open_left, .thread = {create_and_turn, factor_low}, .finish = first_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 300);
MODEL_HARNESS(scaled_end, .proves = "a change of the factor does no harm while a kind ends",
	      .setup = open_waiting, .thread = {stop_and_destroy, factor_low}, .finish = close_all,
	      .preemptions = 1, .weak = 1, .random_runs = 300);
MODEL_HARNESS(scaled_stop, .proves = "each timeout ends once if stop races against a turn",
	      .setup = open_stopping, .thread = {stop, turn}, .finish = ended_once,
	      .preemptions = 1, .weak = 1, .random_runs = 300);
MODEL_HARNESS(scaled_seats, .proves = "two new kinds get two seats", .setup = world_open_layer,
	      .thread = {kind_open, other_open}, .finish = two_apart, .preemptions = 1, .weak = 1,
	      .random_runs = 300);
MODEL_HARNESS(scaled_handed, .proves = "a new kind may take the seat that another kind leaves",
	      .setup = open_driven, .thread = {turn_and_destroy, other_open}, .finish = other_left,
	      .preemptions = 1, .weak = 1, .random_runs = 300);
