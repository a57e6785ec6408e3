/* SPDX-License-Identifier: MIT */
#include "checks.h"

#include "options.h"

static const char *const texts[] = {
	[PROPERTY_NONE] = "none",
	[PROPERTY_LOST] = "an acknowledged timer is lost",
	[PROPERTY_CANCELLED] =
		"a run begins after a cancel, or a cancel says DONE or ABSORBED after a run",
	[PROPERTY_TWICE] = "a timer runs twice, and no session ended during its run",
	[PROPERTY_EARLY] = "a timer runs before its deadline by the server's clock",
	[PROPERTY_FENCE] = "a later run has a smaller fence",
	[PROPERTY_STALE_END] = "a stale end changes a row",
	[PROPERTY_BATCH] = "a batch takes effect twice",
	[PROPERTY_EFFECT] = "an effect by finish_in is made twice",
	[PROPERTY_REST] = "nothing more happens, and a row or a timer in memory is left",
	[PROPERTY_LIVELOCK] = "steps go on for ever without an end of all timers",
};

const char *property_text(enum property property)
{
	return texts[property];
}

void check_break(struct state *state, enum property property)
{
	if (state->broken == PROPERTY_NONE)
		state->broken = (uint8_t)property;
}

void check_begin(struct state *state, int timer, uint8_t fence)
{
	struct notes *notes = &state->notes[timer];

	if (notes->never != 0)
		check_break(state, PROPERTY_CANCELLED);
	if (state->clock < due_of(timer))
		check_break(state, PROPERTY_EARLY);
	if (notes->runs_left == 0)
		check_break(state, PROPERTY_TWICE);
	else
		notes->runs_left--;
	if (fence < notes->fence)
		check_break(state, PROPERTY_FENCE);
	notes->fence = fence;
	notes->begun = 1;
}

void check_cancelled(struct state *state, int timer, bool attempted)
{
	struct notes *notes = &state->notes[timer];

	notes->cancelled = notes->never = 1;
	if (!attempted && notes->begun != 0)
		check_break(state, PROPERTY_CANCELLED);
}

void check_effect(struct state *state, int timer)
{
	struct notes *notes = &state->notes[timer];

	if (notes->effects != 0)
		check_break(state, PROPERTY_EFFECT);
	notes->effects = 1;
}

static bool request_has(const struct request *request, int timer)
{
	return request->phase != PHASE_NONE && request->ops[timer] != OP_NONE;
}

static bool in_memory(const struct state *state, int timer)
{
	for (int p = 0; p < PROCESSES; p++) {
		const struct process *process = &state->process[p];

		if (process->memory[timer].state != MEMORY_NONE ||
		    request_has(&process->request, timer) || request_has(&process->orphan, timer))
			return true;
	}
	return false;
}

void check_timers(struct state *state)
{
	for (int t = 0; t < options.timers; t++) {
		struct notes *notes = &state->notes[t];
		bool over = notes->ran != 0 || notes->cancelled != 0;

		if (over)
			notes->acknowledged = 1;
		if (notes->scheduled == 0 || state->row[t].state != ROW_ABSENT ||
		    in_memory(state, t))
			continue;
		if (notes->acknowledged != 0 && !over && notes->never == 0)
			check_break(state, PROPERTY_LOST);
		*notes = (struct notes){.scheduled = 1, .never = 1};
	}
}

enum property check_rest(const struct state *state)
{
	for (int t = 0; t < options.timers; t++) {
		if (state->row[t].state != ROW_ABSENT || in_memory(state, t))
			return PROPERTY_REST;
	}
	return PROPERTY_NONE;
}
