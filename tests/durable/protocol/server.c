/* SPDX-License-Identifier: MIT */
#include "server.h"

#include "checks.h"
#include "options.h"
#include "rules.h"

void server_row_delete(struct state *state, int timer)
{
	state->row[timer] = (struct row){.state = ROW_ABSENT};
}

void server_row_insert(struct state *state, int timer, uint8_t session, bool started)
{
	state->row[timer] = (struct row){
		.state = ROW_PRESENT,
		.session = session,
		.started = started,
		.attempted = started,
		.begun = started,
		.fence = started,
	};
}

/*
 * Returns whether the request has a number. If RULE_CLAIM_NUMBER is left out, claims have no
 * number, and do not lock the session either.
 */
static bool numbered(const struct request *request)
{
	return request->kind == REQUEST_BATCH || rule_holds(RULE_CLAIM_NUMBER);
}

static bool locks(const struct request *request)
{
	return request->phase == PHASE_BEGUN && numbered(request);
}

bool server_locked(const struct state *state, uint8_t session)
{
	for (int p = 0; p < PROCESSES; p++) {
		const struct process *process = &state->process[p];

		if (process->session == session && locks(&process->request))
			return true;
		if (process->orphan_session == session && locks(&process->orphan))
			return true;
	}
	return false;
}

bool server_begins(const struct state *state, int p, uint8_t session, const struct request *request)
{
	const struct process *process = &state->process[p];

	if (!numbered(request))
		return true;
	if (!session_lives(state, session))
		return false;
	return process->session != session || process->done == 0 || !rule_holds(RULE_BATCH_NUMBER);
}

void server_receive(struct state *state, int p)
{
	struct process *process = &state->process[p];
	struct request *request = &process->request;

	if (server_locked(state, process->session) && numbered(request))
		request->phase = PHASE_SENT;
	else
		request->phase = server_begins(state, p, process->session, request) ? PHASE_BEGUN
										    : PHASE_REFUSED;
}

static bool present(const struct row *row)
{
	return row->state == ROW_PRESENT;
}

static enum outcome put(struct state *state, int t, uint8_t session, bool started)
{
	if (!present(&state->row[t]))
		server_row_insert(state, t, session, started);
	return OUTCOME_USUAL;
}

static enum outcome start(struct state *state, int t, uint8_t session)
{
	struct row *row = &state->row[t];

	if (!present(row) || row->session != session)
		return OUTCOME_NOT_FOUND;
	if (state->clock < due_of(t) && rule_holds(RULE_SERVER_CLOCK))
		return OUTCOME_NOT_DUE;
	row->started = row->attempted = 1;
	row->begun = 0;
	row->fence++;
	return OUTCOME_USUAL;
}

static enum outcome end(struct state *state, int t, uint8_t named)
{
	struct row *row = &state->row[t];

	if (!present(row) || (row->session != named && rule_holds(RULE_FENCE)))
		return OUTCOME_NOT_FOUND;
	if (row->session != named)
		check_break(state, PROPERTY_STALE_END);
	server_row_delete(state, t);
	return OUTCOME_USUAL;
}

static enum outcome back(struct state *state, int t, uint8_t session)
{
	struct row *row = &state->row[t];

	if (!present(row) || row->session != session || row->started != 0)
		return OUTCOME_NOT_FOUND;
	row->session = 0;
	return OUTCOME_USUAL;
}

static enum outcome cancel(struct state *state, int t, uint8_t named)
{
	struct row *row = &state->row[t];
	bool own = named != 0 && row->session == named && rule_holds(RULE_CANCEL_OWN);
	bool attempted;

	if (!present(row))
		return OUTCOME_NOT_FOUND;
	if (row->started != 0 && session_lives(state, row->session) && !own &&
	    rule_holds(RULE_CANCEL_RUNNING))
		return OUTCOME_RUNNING;
	attempted = row->attempted != 0;
	if (row->started != 0 && session_lives(state, row->session) && !own)
		attempted = false; /* reached only if RULE_CANCEL_RUNNING is left out */
	server_row_delete(state, t);
	check_cancelled(state, t, attempted);
	return attempted ? OUTCOME_ATTEMPTED : OUTCOME_USUAL;
}

static enum outcome operate(struct state *state, int t, uint8_t session,
			    const struct request *request)
{
	switch ((enum op)request->ops[t]) {
	case OP_PUT:
		return put(state, t, session, false);
	case OP_PUT_STARTED:
		return put(state, t, session, true);
	case OP_START:
		return start(state, t, session);
	case OP_END:
		return end(state, t, request->named[t]);
	case OP_BACK:
		return back(state, t, session);
	case OP_CANCEL:
		return cancel(state, t, 0);
	case OP_CANCEL_OWN:
		return cancel(state, t, request->named[t]);
	default:
		return OUTCOME_USUAL;
	}
}

static bool claim_finds(const struct row *row)
{
	return present(row) && (row->session == 0 || !rule_holds(RULE_CLAIM_FREE));
}

static void claim(struct state *state, uint8_t session, struct request *request)
{
	for (int t = 0; t < options.timers; t++) {
		struct row *row = &state->row[t];

		if (!claim_finds(row))
			continue;
		row->session = session;
		if (rule_holds(RULE_STARTED_BY))
			row->started = 0;
		request->claimed |= (uint8_t)(1U << t);
	}
}

bool server_claimable(const struct state *state)
{
	for (int t = 0; t < options.timers; t++) {
		if (claim_finds(&state->row[t]))
			return true;
	}
	return false;
}

void server_orphan_drop(struct process *process)
{
	process->orphan = (struct request){.phase = PHASE_NONE};
	process->orphan_session = 0;
}

/*
 * Records in the session's row that the request is written, and its outcomes. From then on the
 * server refuses a request that the same session has left over.
 */
static void note_done(struct state *state, int p, const uint8_t *outcomes)
{
	struct process *process = &state->process[p];

	process->done = 1;
	if (process->orphan_session == process->session && rule_holds(RULE_BATCH_NUMBER) &&
	    numbered(&process->orphan))
		server_orphan_drop(process);
	for (int t = 0; t < TIMERS; t++)
		process->outcomes[t] = outcomes[t];
}

void server_commit(struct state *state, int p, uint8_t session, struct request *request)
{
	bool current = state->process[p].session == session;
	uint8_t outcomes[TIMERS] = {0};

	if (request->kind == REQUEST_BATCH && current && state->process[p].done != 0)
		check_break(state, PROPERTY_BATCH);
	if (request->kind == REQUEST_CLAIM)
		claim(state, session, request);
	for (int t = 0; t < options.timers; t++)
		outcomes[t] = (uint8_t)operate(state, t, session, request);
	if (current && numbered(request))
		note_done(state, p, outcomes);
}

void server_reap(struct state *state, uint8_t session)
{
	state->session[session] = SESSION_GONE;
	for (int t = 0; t < options.timers; t++) {
		struct row *row = &state->row[t];

		if (!present(row) || row->session != session)
			continue;
		if (row->begun != 0 && state->notes[t].runs_left < 3)
			state->notes[t].runs_left++;
		row->session = row->begun = 0;
		if (rule_holds(RULE_STARTED_BY))
			row->started = 0;
	}
}
