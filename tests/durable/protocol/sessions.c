/* SPDX-License-Identifier: MIT */
/*
 * The steps of a process for its session: heartbeats, and a new session, at which the process drops
 * timers.
 */
#include "options.h"
#include "rules.h"
#include "steps.h"

/*
 * Sends a heartbeat after a pause. A heartbeat that comes in time changes nothing, so it is no
 * step.
 */
static void heartbeat(struct state *state, int p)
{
	struct process *process = &state->process[p];

	bool revived = state->session[process->session] == SESSION_EXPIRED &&
		       !rule_holds(RULE_HEARTBEAT_REFUSED);

	if (session_lives(state, process->session) || revived) {
		state->session[process->session] = SESSION_ALIVE;
		process->lease = 1;
	} else {
		process->lost = 1;
	}
}

static void late_reply(struct process *process)
{
	if (!rule_holds(RULE_LEASE_FROM_SENDING))
		process->lease = 1;
	process->late_reply = 0;
}

static bool waits(uint8_t state)
{
	return state == MEMORY_KEPT || state == MEMORY_CONFIRMED;
}

/*
 * Drops all waiting timers at once. With RULE_LEASE_OF_SESSION it makes no difference when they
 * leave the memory.
 */
static void drop_all(struct process *process)
{
	for (int t = 0; t < TIMERS; t++) {
		if (waits(process->memory[t].state) && rule_holds(RULE_LEASE_OF_SESSION))
			process->memory[t].state = MEMORY_NONE;
	}
}

static void new_session(struct state *state, int p)
{
	struct process *process = &state->process[p];

	process->session = state->session_next;
	state->session[state->session_next++] = SESSION_ALIVE;
	process->lease = 1;
	process->lost = process->done = process->read_back = process->marked = 0;
	process->late_reply = 0;
	drop_all(process);
	for (int t = 0; t < TIMERS; t++) {
		process->outcomes[t] = OUTCOME_USUAL;
		process->memory[t].back = WANTED_NOT;
	}
}

void session_steps(struct steps *steps)
{
	for (int p = 0; p < PROCESSES; p++) {
		const struct process *process = &steps->from->process[p];

		if (process->lost == 0 && process->lease == 0)
			heartbeat(steps_add(steps, STEP_HEARTBEAT, p, 0), p);
		if (process->late_reply != 0)
			late_reply(&steps_add(steps, STEP_LATE_REPLY, p, 0)->process[p]);
		if (process->lost != 0 && process->cut == 0 && process->request.phase == PHASE_NONE)
			new_session(steps_add(steps, STEP_NEW_SESSION, p, 0), p);
		for (int t = 0; t < options.timers; t++) {
			const struct memory *memory = &process->memory[t];

			if (waits(memory->state) && memory->session != process->session)
				steps_add(steps, STEP_DROP, p, t)->process[p].memory[t].state =
					MEMORY_NONE;
		}
	}
}
