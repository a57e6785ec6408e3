/* SPDX-License-Identifier: MIT */
/*
 * Steps that are faults. A connection breaks, before or after its request took effect. Or the
 * request is left over in the server, and takes effect later. A process dies. A process stands
 * still, or has no connection, for longer than the time of its session. The server restarts.
 */
#include "rules.h"
#include "server.h"
#include "steps.h"

#include <string.h>

static struct state *fault(struct steps *steps, enum step step, int p)
{
	struct state *to = steps_add(steps, step, p, 0);

	to->faults_left--;
	return to;
}

/*
 * Returns whether the server could still do the request later. It would refuse a request whose
 * number is already written.
 */
static bool can_be_left_over(const struct process *process)
{
	return (process->request.phase == PHASE_SENT || process->request.phase == PHASE_BEGUN) &&
	       process->orphan.phase == PHASE_NONE &&
	       (process->done == 0 || !rule_holds(RULE_BATCH_NUMBER));
}

/*
 * Keeps the request after a break. If the server has begun the request, the request's locks stay
 * until it ends.
 */
static void leave_over(struct process *process, enum phase phase)
{
	process->orphan = process->request;
	process->orphan.phase = (uint8_t)phase;
	process->orphan.resent = 0;
	process->orphan_session = process->session;
}

/* Breaks a connection. Between two requests that does no harm, so nothing changes. */
static void cut(struct process *process)
{
	if (process->request.phase == PHASE_NONE)
		return;
	process->cut = 1;
	process->request.phase = PHASE_UNRESOLVED;
	process->request.claimed = 0;
}

/* Ends a process, which loses its memory. Its successor on the same machine needs a new session. */
static void crash(struct state *state, int p)
{
	struct process *process = &state->process[p];
	struct request orphan = process->orphan;
	uint8_t orphan_session = process->orphan_session;

	if (state->session[process->session] == SESSION_ALIVE)
		state->session[process->session] = SESSION_SILENT;
	memset(process, 0, sizeof(*process));
	process->lost = 1;
	process->orphan = orphan;
	process->orphan_session = orphan_session;
}

static void pause_beyond(struct state *state, int p)
{
	struct process *process = &state->process[p];

	process->lease = 0;
	if (state->session[process->session] == SESSION_ALIVE)
		state->session[process->session] = SESSION_SILENT;
}

static void break_steps(struct steps *steps, int p)
{
	const struct process *process = &steps->from->process[p];
	struct state *to;

	if (process->cut != 0 || process->session == 0)
		return;
	if (process->request.phase == PHASE_NONE)
		return;
	cut(&fault(steps, STEP_BREAK, p)->process[p]);
	if (process->request.phase == PHASE_BEGUN) {
		to = fault(steps, STEP_BREAK_REPLY, p);
		server_commit(to, p, process->session, &to->process[p].request);
		cut(&to->process[p]);
	}
	for (int phase = PHASE_SENT; phase <= process->request.phase && can_be_left_over(process);
	     phase++) {
		to = fault(steps, STEP_BREAK_ORPHAN, p);
		leave_over(&to->process[p], (enum phase)phase);
		cut(&to->process[p]);
	}
}

static void crash_steps(struct steps *steps, int p)
{
	const struct process *process = &steps->from->process[p];
	struct state *to;

	if (process->session == 0)
		return;
	crash(fault(steps, STEP_CRASH, p), p);
	for (int phase = PHASE_SENT; phase <= process->request.phase && can_be_left_over(process);
	     phase++) {
		to = fault(steps, STEP_CRASH_ORPHAN, p);
		leave_over(&to->process[p], (enum phase)phase);
		crash(to, p);
	}
}

static void pause_steps(struct steps *steps, int p)
{
	const struct process *process = &steps->from->process[p];
	struct state *to;

	if (process->session == 0 || process->lost != 0)
		return;
	pause_beyond(fault(steps, STEP_PAUSE, p), p);
	/* While RULE_LEASE_FROM_SENDING holds, a late reply changes nothing, so it is no step. */
	if (process->lease != 0 && !rule_holds(RULE_LEASE_FROM_SENDING)) {
		to = fault(steps, STEP_PAUSE_REPLY, p);
		to->process[p].late_reply = 1;
		pause_beyond(to, p);
	}
}

static void restart(struct state *state)
{
	for (int p = 0; p < PROCESSES; p++) {
		struct process *process = &state->process[p];

		process->orphan = (struct request){.phase = PHASE_NONE};
		process->orphan_session = 0;
		cut(process);
	}
}

void fault_steps(struct steps *steps)
{
	for (int p = 0; p < PROCESSES; p++) {
		break_steps(steps, p);
		crash_steps(steps, p);
		pause_steps(steps, p);
	}
	restart(fault(steps, STEP_RESTART, 0));
}
