/* SPDX-License-Identifier: MIT */
/*
 * The steps of the server: requests that it receives, time, and sessions.
 *
 * The server does a request in two steps: the first statement, and the commit. The locks of the
 * session and of the rows decide what may happen in between.
 */
#include "checks.h"
#include "options.h"
#include "rules.h"
#include "server.h"
#include "steps.h"

/*
 * Adds the first statement of a request that had to wait, because a request that was left over had
 * locked the session.
 */
static void begin_steps(struct steps *steps, int p)
{
	const struct process *process = &steps->from->process[p];

	if (process->request.phase == PHASE_SENT && !server_locked(steps->from, process->session))
		server_receive(steps_add(steps, STEP_BEGIN, p, 0), p);
}

static void orphan_begins(struct steps *steps, int p)
{
	const struct process *process = &steps->from->process[p];

	if (server_locked(steps->from, process->orphan_session) ||
	    !server_begins(steps->from, p, process->orphan_session, &process->orphan))
		return;
	steps_add(steps, STEP_ORPHAN_BEGIN, p, 0)->process[p].orphan.phase = PHASE_BEGUN;
}

static void orphan_steps(struct steps *steps, int p)
{
	const struct request *orphan = &steps->from->process[p].orphan;
	struct state *to;

	if (orphan->phase == PHASE_NONE)
		return;
	if (orphan->phase == PHASE_SENT)
		orphan_begins(steps, p);
	if (orphan->phase == PHASE_BEGUN) {
		to = steps_add(steps, STEP_ORPHAN_COMMIT, p, 0);
		server_commit(to, p, to->process[p].orphan_session, &to->process[p].orphan);
		server_orphan_drop(&to->process[p]);
	}
	to = steps_add(steps, STEP_ORPHAN_LOST, p, 0);
	server_orphan_drop(&to->process[p]);
}

static void session_end_steps(struct steps *steps, uint8_t session)
{
	const struct state *from = steps->from;

	if (from->session[session] == SESSION_SILENT)
		steps_add(steps, STEP_EXPIRE, session, 0)->session[session] = SESSION_EXPIRED;
	if (from->session[session] == SESSION_EXPIRED &&
	    !(server_locked(from, session) && rule_holds(RULE_REAPER_LOCK)))
		server_reap(steps_add(steps, STEP_REAP, session, 0), session);
}

static void third_commits(struct steps *steps, int t)
{
	struct state *to;

	if (steps->from->row[t].state != ROW_HIDDEN)
		return;
	to = steps_add(steps, STEP_THIRD_COMMITS, 0, t);
	server_row_insert(to, t, 0, false);
	to->notes[t].acknowledged = 1;
}

void server_steps(struct steps *steps)
{
	for (int p = 0; p < PROCESSES; p++) {
		begin_steps(steps, p);
		orphan_steps(steps, p);
	}
	for (int session = 1; session < SESSIONS; session++)
		session_end_steps(steps, (uint8_t)session);
	for (int t = 0; t < options.timers; t++)
		third_commits(steps, t);
	if (steps->from->clock == 0)
		steps_add(steps, STEP_TICK, 0, 0)->clock = 1;
}
