/* SPDX-License-Identifier: MIT */
/*
 * [io] The near window. All timers up to the cursor, in the order of (due, place, serial), are in
 * memory, so a new or moved timer before it stays there, and the loader need not look back. One
 * thread commits and loads, so none is skipped.
 *
 * The wall clock. The engine is monotonic, and deadlines are not. This thread compares both clocks
 * in each of its steps, at least once a second. If their distance has changed by a millisecond, the
 * timeouts in the engine are set anew. Each callback looks at the wall clock itself, so no timer is
 * early meanwhile. After a forward step beyond the bound no timer runs until a caller accepts it.
 */
#include "durable/window.h"

#include "durable/batch.h"
#include "durable/keep.h"
#include "durable/stage.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* Rows in one step: some milliseconds. */
	LOAD_MAX = 10000,
	READ_TRIES = 10,
};

#define REARM_NS INT64_C(1000000)

/*
 * Both clocks at one moment. A thread that is interrupted between the two would see a step that was
 * none, and set all timeouts anew.
 */
static void clocks_read(struct tw_durable *set)
{
	int64_t after_ns = tw_engine_now(set->engine);

	for (int i = 0; i < READ_TRIES; i++) {
		set->engine_ns = after_ns;
		set->now_ns = twi_durable_wall_ns(set);
		after_ns = tw_engine_now(set->engine);
		if (after_ns - set->engine_ns < REARM_NS / 2)
			return;
	}
}

void twi_window_clock_init(struct tw_durable *set)
{
	clocks_read(set);
	set->offset_ns = set->accepted_ns = set->now_ns - set->engine_ns;
	set->accepted_now_ns = set->now_ns;
}

/* RELAXED: this thread changes the state. */
static void step_judge(struct tw_durable *set)
{
	bool held = twi_load_relaxed(&set->state) == TW_DURABLE_STATE_CLOCK_STEPPED;
	bool beyond = set->offset_ns - set->accepted_ns > (int64_t)set->options.clock_step_max_ns;

	if (beyond && !held)
		twi_set_state(set, TW_DURABLE_STATE_CLOCK_STEPPED, 0);
	if (beyond)
		return;
	set->accepted_ns = set->offset_ns;
	set->accepted_now_ns = set->now_ns;
	if (!held)
		return;
	twi_set_state(set, TW_DURABLE_STATE_OPEN, 0);
	twi_keep_rearm_all(set);
	twi_keep_unhold(set);
}

void twi_window_clock(struct tw_durable *set)
{
	int64_t change_ns;

	clocks_read(set);
	/* RELAXED: this thread's. */
	if (twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED)
		return;
	change_ns = set->now_ns - set->engine_ns - set->offset_ns;
	if (change_ns >= REARM_NS || change_ns <= -REARM_NS) {
		set->offset_ns += change_ns;
		/* Some of them may be due now. */
		set->linger_cut = true;
		set->counters[TWI_SHOWN_CLOCK_STEPS]++;
		step_judge(set);
		/* RELAXED: this thread's. */
		if (twi_load_relaxed(&set->state) != TW_DURABLE_STATE_CLOCK_STEPPED)
			twi_keep_rearm_all(set);
		return;
	}
	step_judge(set);
}

/* Half of the window is loaded ahead. */
static bool load_due(const struct tw_durable *set)
{
	return set->cut || set->cursor.due_ns < set->now_ns + (int64_t)(set->options.near_ns / 2);
}

static bool bytes_full(const struct tw_durable *set)
{
	return set->counters[TWI_SHOWN_MEMORY_BYTES] >= set->options.near_bytes_max;
}

/* Ends the walk behind the row that fills the memory: one row is loaded in any case. */
static int row_load(void *context, const struct tw_durable_row *row)
{
	int error = twi_keep_load(context, row);

	return error == 0 && bytes_full(context) ? -EXFULL : error;
}

int twi_window_load(struct tw_durable *set)
{
	const struct tw_durable_store *store = &set->options.store;
	struct tw_durable_row after = {.id = {(uint64_t)set->cursor.place, set->cursor.serial},
				       .due_ns = set->cursor.due_ns};
	int64_t until_ns = set->now_ns + (int64_t)set->options.near_ns;
	uint64_t there = set->counters[TWI_SHOWN_IN_MEMORY];
	size_t most = LOAD_MAX;
	int error;

	if (!load_due(set) || there >= set->options.near_max || bytes_full(set))
		return 0;
	if (set->options.near_max - there < most)
		most = (size_t)(set->options.near_max - there);
	if (until_ns < set->cursor.due_ns)
		until_ns = set->cursor.due_ns;
	set->loaded = 0;
	error = store->ops->near(store->store, &after, until_ns, most, row_load, set);
	if (error != 0 && error != -EXFULL)
		return error;
	set->cut = set->loaded >= most || error == -EXFULL;
	set->cursor = set->cut ? set->cursor_next
			       : (struct twi_position){until_ns, INT64_MAX, UINT64_MAX};
	return set->cut && !bytes_full(set);
}

int64_t twi_window_wait_ns(const struct tw_durable *set)
{
	return twi_durable_until_ns(set->cursor.due_ns,
				    set->now_ns + (int64_t)(set->options.near_ns / 2));
}

/* RELAXED, all: serials are only numbers (stage.c). */
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
	/* The rest of the old ones is dropped, unless the new ones follow them. */
	twi_serial_give(set, first != end ? first : 0, last);
	return 0;
}
