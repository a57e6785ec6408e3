/* SPDX-License-Identifier: MIT */
/* A step from a state to another one, and the list of all steps that a state allows. */
#ifndef PROTOCOL_STEPS_H
#define PROTOCOL_STEPS_H

#include "state.h"

enum {
	STEPS_MOST = 96,
};

enum step {
	/* Steps of users. */
	STEP_SCHEDULE,
	STEP_CANCEL,
	STEP_THIRD_WRITES,
	/* Steps of a process. */
	STEP_SEND,
	STEP_CLAIM,
	STEP_LOOK_AGAIN,
	STEP_RECONNECT,
	STEP_READ_BACK,
	STEP_NEW_SESSION,
	STEP_DROP,
	STEP_HEARTBEAT,
	STEP_LATE_REPLY,
	STEP_RUN,
	STEP_NO_RUN,
	STEP_RUN_ENDS,
	STEP_FINISH_IN,
	/* Steps of the server. */
	STEP_BEGIN,
	STEP_COMMIT,
	STEP_ORPHAN_BEGIN,
	STEP_ORPHAN_COMMIT,
	STEP_ORPHAN_LOST,
	STEP_THIRD_COMMITS,
	STEP_TICK,
	STEP_EXPIRE,
	STEP_REAP,
	/* Faults. */
	STEP_BREAK,
	STEP_BREAK_REPLY,
	STEP_BREAK_ORPHAN,
	STEP_CRASH,
	STEP_CRASH_ORPHAN,
	STEP_PAUSE,
	STEP_PAUSE_REPLY,
	STEP_RESTART,
};

struct next {
	enum step step;
	/* The number of the process or session, and of the timer; 0 if the step has none. */
	int actor, timer;
	struct state state;
};

struct steps {
	const struct state *from;
	int count;
	struct next next[STEPS_MOST];
};

/* Adds a step. Returns the state that it leads to: a copy of `from`, which the caller changes. */
struct state *steps_add(struct steps *steps, enum step step, int actor, int timer);

/*
 * Lists all steps from a state. If a step breaks a property, the state after it names the property.
 */
void steps_of(const struct state *from, struct steps *steps);

static inline bool step_is_fault(enum step step)
{
	return step >= STEP_BREAK;
}

/* Returns whether the step happens by itself. Faults and the steps of users need not happen. */
static inline bool step_is_sure(enum step step)
{
	return step >= STEP_SEND && step < STEP_BREAK;
}

/* Each of these functions lists the steps of one part of the model. */
void user_steps(struct steps *steps);
void io_steps(struct steps *steps);
void session_steps(struct steps *steps);
void run_steps(struct steps *steps);
void server_steps(struct steps *steps);
void fault_steps(struct steps *steps);

#endif
