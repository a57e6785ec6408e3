/* SPDX-License-Identifier: MIT */
/*
 * [io] The near window. All timers up to the cursor, in the order of (due, place, serial), are in
 * memory. So a new or moved timer before the cursor stays in memory, and a load begins at the
 * cursor. If a timer before the cursor could not be loaded, the cursor goes back to it
 * (twi_keep_return). One thread both commits and loads, so no timer is skipped. Kinds that count
 * elapsed time have a window of their own, on their own clock. If there are such kinds, each of the
 * two windows may take half of the memory.
 *
 * The wall clock. The engine's clock is monotonic, but the wall clock is not. This thread compares
 * the two clocks in each of its steps, at least once a second. If their distance has changed by a
 * millisecond, the timeouts in the engine are set again. Each callback looks at the wall clock
 * itself, so no timer is early meanwhile. After a forward step beyond the bound
 * (`clock_step_max_ns`) no timer on the wall clock runs, until a caller accepts the step or the
 * clock is set back.
 */
#include "durable/window.h"

#include "durable/batch.h"
#include "durable/keep.h"
#include "durable/stage.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* The most rows that one step loads, in some milliseconds. */
	LOAD_MAX = 10000,
	READ_TRIES = 10,
};

#define REARM_NS INT64_C(1000000)

/*
 * Reads the clocks almost at one moment. A pause between the readings would look like a step of a
 * clock, and this thread would set all timeouts again. So if the thread was interrupted between the
 * readings, the function reads all clocks again.
 */
static void clocks_read(struct tw_durable *set)
{
	int64_t after_ns = tw_engine_now(set->engine);

	for (int i = 0; i < READ_TRIES; i++) {
		set->engine_ns = after_ns;
		set->axes[TWI_AXIS_WALL].now_ns = twi_durable_wall_ns(set);
		if (set->elapsed)
			set->axes[TWI_AXIS_ELAPSED].now_ns = twi_durable_elapsed_ns(set);
		after_ns = tw_engine_now(set->engine);
		if (after_ns - set->engine_ns < REARM_NS / 2)
			return;
	}
}

void twi_window_clock_init(struct tw_durable *set)
{
	struct twi_axis *wall = &set->axes[TWI_AXIS_WALL];

	clocks_read(set);
	for (int i = 0; i < TWI_AXES; i++)
		set->axes[i].offset_ns = set->axes[i].now_ns - set->engine_ns;
	set->accepted_ns = wall->offset_ns;
	set->accepted_now_ns = wall->now_ns;
}

/* Decides whether to accept the wall clock. RELAXED: only this thread changes the conditions. */
static void step_judge(struct tw_durable *set)
{
	const struct twi_axis *wall = &set->axes[TWI_AXIS_WALL];
	bool held = (twi_load_relaxed(&set->conditions) & TWI_CONDITION_STEPPED) != 0;
	bool beyond = wall->offset_ns - set->accepted_ns > (int64_t)set->options.clock_step_max_ns;

	if (beyond && !held)
		twi_set_condition(set, TWI_CONDITION_STEPPED, true);
	if (beyond)
		return;
	set->accepted_ns = wall->offset_ns;
	set->accepted_now_ns = wall->now_ns;
	if (!held)
		return;
	twi_set_condition(set, TWI_CONDITION_STEPPED, false);
	twi_keep_rearm_all(set);
	twi_keep_unhold(set);
}

/*
 * Returns whether a clock has stepped, compared with the engine's clock. Records the new distance
 * of the two.
 */
static bool stepped(struct tw_durable *set, struct twi_axis *axis)
{
	int64_t change_ns = axis->now_ns - set->engine_ns - axis->offset_ns;

	if (change_ns < REARM_NS && change_ns > -REARM_NS)
		return false;
	axis->offset_ns += change_ns;
	/* Timers that linger may be due now. */
	set->linger_cut = true;
	return true;
}

void twi_window_clock(struct tw_durable *set)
{
	bool wall, elapsed;

	clocks_read(set);
	/* RELAXED: only this thread changes the state. */
	if (twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED)
		return;
	wall = stepped(set, &set->axes[TWI_AXIS_WALL]);
	/* The engine's clock may stop while the machine is suspended. */
	elapsed = set->elapsed && stepped(set, &set->axes[TWI_AXIS_ELAPSED]);
	set->counters[TWI_SHOWN_CLOCK_STEPS] += wall;
	step_judge(set);
	/* RELAXED: only this thread changes the state. */
	if (elapsed || (wall && twi_load_relaxed(&set->state) != TW_DURABLE_STATE_CLOCK_STEPPED))
		twi_keep_rearm_all(set);
}

/*
 * Returns true if the axis is the wall clock and the wall clock is not accepted. No timers of that
 * axis are loaded then. RELAXED: only this thread changes the state.
 */
static bool blind(struct tw_durable *set, const struct twi_axis *axis)
{
	return axis == &set->axes[TWI_AXIS_WALL] &&
	       twi_load_relaxed(&set->state) == TW_DURABLE_STATE_CLOCK_STEPPED;
}

/*
 * Returns true if the window is loaded for less than half of its length ahead, or if the last load
 * reached its limit.
 */
static bool load_due(const struct tw_durable *set, const struct twi_axis *axis)
{
	return axis->cut ||
	       axis->cursor.due_ns < axis->now_ns + (int64_t)(set->options.near_ns / 2);
}

/* Returns how many more timers a window may take. Counts only timers, not their bytes. */
static uint64_t room(const struct tw_durable *set, const struct twi_axis *axis)
{
	uint64_t most = set->options.near_max / (set->elapsed ? TWI_AXES : 1);

	if (most == 0)
		most = 1;
	return axis->in_memory < most ? most - axis->in_memory : 0;
}

static bool bytes_full(const struct tw_durable *set, const struct twi_axis *axis)
{
	return axis->memory_bytes >= set->options.near_bytes_max / (set->elapsed ? TWI_AXES : 1);
}

struct load {
	struct tw_durable *set;
	struct twi_axis *axis;
};

/*
 * Loads a row. The walk ends after the row that fills the memory, so one row is loaded in any case.
 */
static int row_load(void *context, const struct tw_durable_row *row)
{
	const struct load *load = context;
	int error;

	load->axis->cursor_next =
		(struct twi_position){row->due_ns, (int64_t)row->id.place, row->id.serial};
	load->axis->loaded++;
	error = twi_keep_load(load->set, row);
	return error == 0 && bytes_full(load->set, load->axis) ? -EXFULL : error;
}

static int near(struct tw_durable *set, struct twi_axis *axis, int64_t until_ns, size_t most)
{
	const struct tw_durable_store *store = &set->options.store;
	struct tw_durable_row after = {.id = {(uint64_t)axis->cursor.place, axis->cursor.serial},
				       .due_ns = axis->cursor.due_ns};
	struct load load = {set, axis};

	return set->elapsed
		       ? store->ops->near_kinds(store->store, axis->kinds, &after, until_ns, most,
						row_load, &load)
		       : store->ops->near(store->store, &after, until_ns, most, row_load, &load);
}

static int axis_load(struct tw_durable *set, struct twi_axis *axis)
{
	int64_t until_ns = axis->now_ns + (int64_t)set->options.near_ns;
	size_t most = LOAD_MAX;
	int error;

	if (blind(set, axis) || !load_due(set, axis) || room(set, axis) == 0 ||
	    bytes_full(set, axis))
		return 0;
	if (room(set, axis) < most)
		most = (size_t)room(set, axis);
	if (until_ns < axis->cursor.due_ns)
		until_ns = axis->cursor.due_ns;
	axis->loaded = 0;
	error = near(set, axis, until_ns, most);
	if (error != 0 && error != -EXFULL)
		return error;
	axis->cut = axis->loaded >= most || error == -EXFULL;
	axis->cursor = axis->cut ? axis->cursor_next
				 : (struct twi_position){until_ns, INT64_MAX, UINT64_MAX};
	return axis->cut && !bytes_full(set, axis);
}

int twi_window_load(struct tw_durable *set)
{
	int more = axis_load(set, &set->axes[TWI_AXIS_WALL]), other;

	if (more < 0 || !set->elapsed)
		return more;
	other = axis_load(set, &set->axes[TWI_AXIS_ELAPSED]);
	return other < 0 ? other : more | other;
}

static int64_t axis_wait_ns(struct tw_durable *set, const struct twi_axis *axis)
{
	if (axis->cut || blind(set, axis))
		return INT64_MAX;
	return twi_durable_until_ns(axis->cursor.due_ns,
				    axis->now_ns + (int64_t)(set->options.near_ns / 2));
}

int64_t twi_window_wait_ns(struct tw_durable *set)
{
	int64_t wait_ns = axis_wait_ns(set, &set->axes[TWI_AXIS_WALL]), other_ns;

	if (!set->elapsed)
		return wait_ns;
	other_ns = axis_wait_ns(set, &set->axes[TWI_AXIS_ELAPSED]);
	return other_ns < wait_ns ? other_ns : wait_ns;
}

/*
 * RELAXED, all loads: only this thread changes the end, and an old `serial_next` only delays the
 * reservation.
 */
int twi_window_reserve(struct tw_durable *set)
{
	const struct tw_durable_store *store = &set->options.store;
	uint64_t end = twi_load_relaxed(&set->serial_end), first, last;
	int error;

	if (end - twi_load_relaxed(&set->serial_next) > TWI_DURABLE_RESERVE / 2)
		return 0;
	error = store->ops->reserve(store->store, TWI_DURABLE_RESERVE, &first);
	if (error != 0)
		return error;
	last = (first + TWI_DURABLE_RESERVE) / TWI_DURABLE_CHUNK * TWI_DURABLE_CHUNK;
	first = (first + TWI_DURABLE_CHUNK - 1) / TWI_DURABLE_CHUNK * TWI_DURABLE_CHUNK;
	if (first == 0)
		first = TWI_DURABLE_CHUNK;
	/* The remaining old serials are dropped, unless the new ones follow them. */
	twi_serial_give(set, first != end ? first : 0, last);
	return 0;
}
