/* SPDX-License-Identifier: MIT */
/*
 * A state of the model: the server, two processes, and for each timer the facts that the checks
 * need.
 *
 * Every field is one byte with a small value. So a state packs into a few 64-bit words (state.c),
 * and two equal states are equal in every byte.
 */
#ifndef PROTOCOL_STATE_H
#define PROTOCOL_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PROCESSES = 2,
	TIMERS = 2,
	/* Session numbers are 1 to SESSIONS - 1. Each fault ends at most one session. */
	SESSIONS = 7,
	FAULTS_MOST = SESSIONS - 1 - PROCESSES - 1,
	/*
	 * Stands for any session that has ended and has no row, if nothing else about it matters.
	 */
	SESSION_PAST = SESSIONS,
	STATE_WORDS = 4,
};

enum session_state {
	SESSION_GONE = 0, /* it never began, or its rows were freed */
	SESSION_ALIVE = 1,
	SESSION_SILENT = 2, /* its time may end at any moment */
	SESSION_EXPIRED = 3,
};

enum row_state {
	ROW_ABSENT = 0,
	ROW_HIDDEN = 1, /* it was written by a transaction that has not committed */
	ROW_PRESENT = 2,
};

enum op {
	OP_NONE = 0,
	OP_PUT = 1,
	OP_PUT_STARTED = 2,
	OP_START = 3,
	OP_END = 4,
	OP_BACK = 5,       /* give a claimed row back */
	OP_CANCEL = 6,     /* cancel a timer that is not in the memory of the canceller's process */
	OP_CANCEL_OWN = 7, /* cancel one that was in that memory, and will not run there */
};

/*
 * Outcomes of operations. If the session's row has no other outcome, the process assumes
 * OUTCOME_USUAL.
 */
enum outcome {
	OUTCOME_USUAL = 0,
	OUTCOME_NOT_FOUND = 1,
	OUTCOME_NOT_DUE = 2,
	OUTCOME_RUNNING = 3,
	OUTCOME_ATTEMPTED = 4,
};

enum request_kind {
	REQUEST_NONE = 0,
	REQUEST_BATCH = 1,
	REQUEST_CLAIM = 2,
};

enum phase {
	PHASE_NONE = 0,
	PHASE_SENT = 1,
	PHASE_BEGUN = 2, /* the server has read the session's row for it */
	PHASE_REFUSED = 3,
	PHASE_UNRESOLVED = 4, /* the connection broke, and the process does not know the outcome */
};

/* The state of a timer in the memory of a process. */
enum memory_state {
	MEMORY_NONE = 0,
	MEMORY_STAGED = 1,
	MEMORY_STAGED_RUN = 2,
	MEMORY_TAKEN = 3, /* its PUT is in the batch that is being sent */
	MEMORY_TAKEN_RUN = 4,
	MEMORY_TAKEN_ENDED = 5,
	MEMORY_KEPT = 6,
	MEMORY_STARTING = 7, /* its START is in the batch that is being sent */
	MEMORY_CONFIRMED = 8,
	MEMORY_RUNNING = 9,
	MEMORY_ENDED = 10,
	MEMORY_ENDING = 11,
	MEMORY_REVOKED = 12, /* cancelled by this process, but its row must still be deleted */
};

/*
 * The progress of something that the process must ask the server for: a cancel, or to give a row
 * back.
 */
enum wanted {
	WANTED_NOT = 0,
	WANTED = 1,
	WANTED_SENT = 2,
};

struct request {
	uint8_t kind, phase;
	uint8_t resent;
	uint8_t ops[TIMERS];
	/* For OP_END and OP_CANCEL_OWN: the session under which the row must be claimed. */
	uint8_t named[TIMERS];
	/* Bit mask of the rows that the claim took. */
	uint8_t claimed;
};

struct memory {
	uint8_t state;
	/* The session under which the timer was claimed or put. */
	uint8_t session;
	uint8_t back, cancel;
};

struct process {
	uint8_t session; /* the number of its session; 0: none */
	uint8_t cut;     /* whether the connection is broken */
	/* whether runs may begin, because the last accepted heartbeat was sent recently */
	uint8_t lease;
	uint8_t lost; /* whether it knows that it needs a new session */
	/* whether a heartbeat was sent a whole session's time ago and its reply is still missing */
	uint8_t late_reply;
	uint8_t read_back; /* whether it must read the rows of its session */
	uint8_t marked;    /* whether its quick claims begin after all rows that are due soon */
	uint8_t done;      /* kept by the server: whether the present request is written */
	uint8_t outcomes[TIMERS]; /* kept by the server: the outcomes in the session's row */
	struct request request;
	/* A request of a broken connection, which the server may still do. */
	struct request orphan;
	uint8_t orphan_session;
	struct memory memory[TIMERS];
};

struct row {
	uint8_t state;
	uint8_t session; /* the session that has claimed the row; 0: it is free */
	uint8_t started;
	uint8_t attempted; /* whether an attempt is counted */
	uint8_t begun;     /* for the checks: whether a run after this start has begun */
	uint8_t fence;
};

/* Facts about a timer that the checks need. */
struct notes {
	uint8_t scheduled;
	uint8_t acknowledged;
	uint8_t ran;   /* whether a run has ended */
	uint8_t never; /* whether no run may begin any more */
	uint8_t cancelled;
	/*
	 * how many runs may still begin: 1, plus 1 for each run that lost its row after it had
	 * begun
	 */
	uint8_t runs_left;
	uint8_t begun;
	uint8_t fence; /* the fence of the last run */
	uint8_t effects;
};

struct state {
	struct process process[PROCESSES];
	struct row row[TIMERS];
	struct notes notes[TIMERS];
	uint8_t session[SESSIONS + 1];
	uint8_t session_next;
	uint8_t clock; /* the server's time */
	uint8_t faults_left, cancels_left;
	/* The property (enum property) that the last step broke. It is not packed. */
	uint8_t broken;
};

struct packed {
	uint64_t word[STATE_WORDS];
};

struct state state_first(uint8_t faults, uint8_t cancels);
struct packed state_pack(const struct state *state);
struct state state_unpack(const struct packed *packed);

/* Returns the server's time at which a timer is due. Timer 0 is due later, timer 1 at once. */
static inline uint8_t due_of(int timer)
{
	return timer == 0 ? 1 : 0;
}

static inline bool session_lives(const struct state *state, uint8_t session)
{
	return state->session[session] == SESSION_ALIVE ||
	       state->session[session] == SESSION_SILENT;
}

#endif
