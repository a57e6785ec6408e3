/* SPDX-License-Identifier: MIT */
/* The steps of users: schedule, cancel, and a long transaction of another program. */
#include "checks.h"
#include "options.h"
#include "steps.h"

static void schedule_steps(struct steps *steps, int t)
{
	struct state *to;

	if (steps->from->notes[t].scheduled != 0)
		return;
	for (int p = 0; p < PROCESSES; p++) {
		to = steps_add(steps, STEP_SCHEDULE, p, t);
		to->notes[t].scheduled = 1;
		to->process[p].memory[t].state = MEMORY_STAGED;
	}
	to = steps_add(steps, STEP_THIRD_WRITES, 0, t);
	to->notes[t].scheduled = 1;
	to->row[t].state = ROW_HIDDEN;
}

/* Cancels a timer. If it runs or has ended, the answer comes at once and nothing changes. */
static void cancel(struct state *state, int p, int t)
{
	struct memory *memory = &state->process[p].memory[t];

	switch ((enum memory_state)memory->state) {
	case MEMORY_STAGED:
		memory->state = MEMORY_NONE;
		check_cancelled(state, t, false);
		break;
	case MEMORY_TAKEN:
	case MEMORY_KEPT:
	case MEMORY_STARTING:
	case MEMORY_CONFIRMED:
		memory->state = MEMORY_REVOKED;
		memory->cancel = WANTED;
		break;
	default:
		memory->cancel = WANTED;
		break;
	}
}

static bool cancel_changes(const struct state *state, int p, int t)
{
	const struct memory *memory = &state->process[p].memory[t];

	if (memory->cancel != WANTED_NOT)
		return false;
	switch ((enum memory_state)memory->state) {
	case MEMORY_NONE:
		return state->row[t].state != ROW_ABSENT;
	case MEMORY_STAGED:
	case MEMORY_TAKEN:
	case MEMORY_KEPT:
	case MEMORY_STARTING:
	case MEMORY_CONFIRMED:
		return true;
	default:
		return false;
	}
}

void user_steps(struct steps *steps)
{
	const struct state *from = steps->from;

	for (int t = 0; t < options.timers; t++) {
		schedule_steps(steps, t);
		for (int p = 0; p < PROCESSES && from->cancels_left > 0; p++) {
			struct state *to;

			if (from->notes[t].scheduled == 0 || !cancel_changes(from, p, t))
				continue;
			to = steps_add(steps, STEP_CANCEL, p, t);
			to->cancels_left--;
			cancel(to, p, t);
		}
	}
}
