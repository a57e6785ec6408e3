/* SPDX-License-Identifier: MIT */
/* The steps of callbacks: a run begins and ends. */
#include "checks.h"
#include "options.h"
#include "rules.h"
#include "server.h"
#include "steps.h"

/* Returns the fence that the start of the run has, and that the callback receives. */
static uint8_t fence_of(const struct state *state, int p, int t)
{
	const struct process *process = &state->process[p];
	const struct memory *memory = &process->memory[t];
	bool staged = memory->state == MEMORY_STAGED;

	if (!rule_holds(RULE_ROW_FENCE))
		return staged ? process->session : memory->session;
	return staged ? 1 : state->row[t].fence;
}

static void begin(struct state *state, int p, int t)
{
	struct memory *memory = &state->process[p].memory[t];
	struct row *row = &state->row[t];

	check_begin(state, t, fence_of(state, p, t));
	if (memory->state == MEMORY_STAGED) {
		memory->state = MEMORY_STAGED_RUN;
		return;
	}
	if (row->session == memory->session)
		row->begun = 1;
	memory->state = MEMORY_RUNNING;
}

/*
 * Returns whether the process knows that the session under which it has claimed the timer has not
 * ended.
 */
static bool lease(const struct process *process, const struct memory *memory)
{
	if (!rule_holds(RULE_LEASE))
		return true;
	return process->lease != 0 &&
	       (memory->session == process->session || !rule_holds(RULE_LEASE_OF_SESSION));
}

static void begin_steps(struct steps *steps, int p, int t)
{
	const struct process *process = &steps->from->process[p];
	const struct memory *memory = &process->memory[t];
	bool due = steps->from->clock >= due_of(t);

	if (memory->state == MEMORY_STAGED && (due || !rule_holds(RULE_STAGED_CLOCK)))
		begin(steps_add(steps, STEP_RUN, p, t), p, t);
	if (memory->state == MEMORY_KEPT && due && !rule_holds(RULE_CONFIRM) &&
	    lease(process, memory))
		begin(steps_add(steps, STEP_RUN, p, t), p, t);
	if (memory->state != MEMORY_CONFIRMED)
		return;
	if (lease(process, memory))
		begin(steps_add(steps, STEP_RUN, p, t), p, t);
	else if (!rule_holds(RULE_LEASE_AGAIN))
		steps_add(steps, STEP_NO_RUN, p, t)->process[p].memory[t].state = MEMORY_NONE;
}

/*
 * Returns the state of a timer in memory after its run. A timer that ended before it was stored
 * leaves the memory.
 */
static enum memory_state ended(uint8_t state)
{
	switch ((enum memory_state)state) {
	case MEMORY_STAGED_RUN:
		return MEMORY_NONE;
	case MEMORY_TAKEN_RUN:
		return MEMORY_TAKEN_ENDED;
	default:
		return MEMORY_ENDED;
	}
}

static struct state *end_add(struct steps *steps, enum step step, int p, int t)
{
	struct state *to = steps_add(steps, step, p, t);
	struct memory *memory = &to->process[p].memory[t];

	memory->state = (uint8_t)ended(memory->state);
	to->notes[t].ran = 1;
	return to;
}

/*
 * Makes the run's own transaction: makes the run's effect, and deletes the timer's row if the
 * session still has the row.
 */
static void finish_in(struct state *state, int t, uint8_t session)
{
	bool there = state->row[t].state == ROW_PRESENT;
	bool own = there && state->row[t].session == session;

	if (own || !rule_holds(RULE_FINISH_IN) || (!there && !rule_holds(RULE_FINISH_IN_STORED)))
		check_effect(state, t);
	if (own && rule_holds(RULE_FINISH_IN))
		server_row_delete(state, t);
}

/*
 * Returns whether the run may end its timer in its own transaction. A row that is not stored yet
 * looks like a row that another run has deleted.
 */
static bool can_finish_in(uint8_t state)
{
	return state == MEMORY_RUNNING ||
	       (state == MEMORY_TAKEN_RUN && !rule_holds(RULE_FINISH_IN_STORED));
}

static void end_steps(struct steps *steps, int p, int t)
{
	const struct memory *memory = &steps->from->process[p].memory[t];

	if (memory->state == MEMORY_STAGED_RUN || memory->state == MEMORY_TAKEN_RUN ||
	    memory->state == MEMORY_RUNNING)
		end_add(steps, STEP_RUN_ENDS, p, t);
	if (can_finish_in(memory->state))
		finish_in(end_add(steps, STEP_FINISH_IN, p, t), t, memory->session);
}

void run_steps(struct steps *steps)
{
	for (int p = 0; p < PROCESSES; p++) {
		for (int t = 0; t < options.timers; t++) {
			begin_steps(steps, p, t);
			end_steps(steps, p, t);
		}
	}
}
