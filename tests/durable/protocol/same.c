/* SPDX-License-Identifier: MIT */
/*
 * Removes differences between states that cannot matter for later steps: sessions without rows, the
 * numbers of sessions, and the order of two processes that are alike. The numbers of sessions do
 * matter if they are the fences.
 */
#include "same.h"

#include "options.h"
#include "rules.h"
#include "server.h"

#include <string.h>

static bool session_has_row(const struct state *state, uint8_t session)
{
	for (int t = 0; t < options.timers; t++) {
		if (state->row[t].session == session)
			return true;
	}
	return false;
}

static bool session_has_process(const struct state *state, uint8_t session)
{
	for (int p = 0; p < PROCESSES; p++) {
		if (state->process[p].session == session ||
		    state->process[p].orphan_session == session)
			return true;
	}
	return false;
}

static bool session_has_orphan(const struct state *state, uint8_t session)
{
	return state->process[0].orphan_session == session ||
	       state->process[1].orphan_session == session;
}

static bool session_in_request(const struct state *state, uint8_t session)
{
	for (int p = 0; p < PROCESSES; p++) {
		if (state->process[p].session == session &&
		    state->process[p].request.phase != PHASE_NONE)
			return true;
	}
	return session_has_orphan(state, session);
}

/* Forgets a session that has expired, or that no process has, if it cannot have rows. */
static void sessions_end(struct state *state)
{
	for (uint8_t session = 1; session < SESSIONS; session++) {
		uint8_t is = state->session[session];

		if (is == SESSION_GONE || session_has_row(state, session))
			continue;
		if (is == SESSION_EXPIRED ? !session_in_request(state, session)
					  : !session_has_process(state, session))
			state->session[session] = SESSION_GONE;
	}
}

static void name_pass(const struct state *state, uint8_t *session)
{
	if (*session != 0 && state->session[*session] == SESSION_GONE &&
	    !session_has_row(state, *session) && !session_has_process(state, *session))
		*session = SESSION_PAST;
}

static void memory_names(const struct state *state, struct process *process, int t)
{
	struct memory *memory = &process->memory[t];

	if (memory->state == MEMORY_NONE || memory->state == MEMORY_STAGED ||
	    memory->state == MEMORY_STAGED_RUN)
		memory->session = 0;
	name_pass(state, &memory->session);
	name_pass(state, &process->request.named[t]);
	name_pass(state, &process->orphan.named[t]);
}

/*
 * Drops requests that a dead session has left over. The server refuses such requests, except those
 * that it has begun.
 */
static void orphans_end(struct state *state)
{
	for (int p = 0; p < PROCESSES; p++) {
		struct process *process = &state->process[p];

		if (process->orphan.phase == PHASE_SENT &&
		    !session_lives(state, process->orphan_session) &&
		    (process->orphan.kind == REQUEST_BATCH || rule_holds(RULE_CLAIM_NUMBER)))
			server_orphan_drop(process);
	}
}

/*
 * Lowers all fences of a timer by the same number, because they are compared only with each other.
 * The fence of a deleted row is not compared at all.
 */
static void fences_lower(struct state *state)
{
	for (int t = 0; t < options.timers; t++) {
		uint8_t by = state->notes[t].fence > 1 ? (uint8_t)(state->notes[t].fence - 1) : 0;
		bool present = state->row[t].state == ROW_PRESENT;

		if (present && state->row[t].fence < by)
			continue;
		state->notes[t].fence = (uint8_t)(state->notes[t].fence - by);
		if (present)
			state->row[t].fence = (uint8_t)(state->row[t].fence - by);
	}
}

struct names {
	uint8_t to[SESSIONS + 1];
	uint8_t next;
};

static void rename_one(struct names *names, uint8_t *session)
{
	if (*session == 0 || *session == SESSION_PAST)
		return;
	if (names->to[*session] == 0)
		names->to[*session] = names->next++;
	*session = names->to[*session];
}

static void rename_process(struct names *names, struct process *process)
{
	rename_one(names, &process->session);
	rename_one(names, &process->orphan_session);
	for (int t = 0; t < options.timers; t++) {
		rename_one(names, &process->memory[t].session);
		rename_one(names, &process->request.named[t]);
		rename_one(names, &process->orphan.named[t]);
	}
}

/* Numbers the sessions in the order in which the state mentions them. */
static void rename_sessions(struct state *state)
{
	struct names names = {.next = 1};
	uint8_t old[SESSIONS + 1];

	memcpy(old, state->session, sizeof(old));
	memset(state->session, 0, sizeof(state->session));
	for (int p = 0; p < PROCESSES; p++)
		rename_process(&names, &state->process[p]);
	for (int t = 0; t < options.timers; t++)
		rename_one(&names, &state->row[t].session);
	for (int session = 1; session < SESSIONS; session++) {
		if (names.to[session] != 0)
			state->session[names.to[session]] = old[session];
	}
	state->session_next = names.next;
}

static struct state swapped(const struct state *state)
{
	struct state ret = *state;

	ret.process[0] = state->process[1];
	ret.process[1] = state->process[0];
	return ret;
}

static void same_make(struct state *state)
{
	struct state other;

	orphans_end(state);
	sessions_end(state);
	for (int p = 0; p < PROCESSES; p++) {
		for (int t = 0; t < options.timers; t++)
			memory_names(state, &state->process[p], t);
	}
	fences_lower(state);
	other = swapped(state);
	rename_sessions(state);
	rename_sessions(&other);
	if (memcmp(&other, state, sizeof(other)) < 0)
		*state = other;
}

struct packed same_pack(const struct state *state)
{
	struct state same = *state;

	if (rule_holds(RULE_ROW_FENCE))
		same_make(&same);
	return state_pack(&same);
}
