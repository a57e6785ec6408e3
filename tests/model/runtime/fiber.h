/* SPDX-License-Identifier: MIT */
/*
 * Fibers: the threads of a run, all on one thread of the system, and which of them continues.
 */
#ifndef MODEL_FIBER_H
#define MODEL_FIBER_H

#include "runtime/clock.h"

#include <setjmp.h>
#include <stddef.h>

/* The runtime's state is in a section of its own, because it is not memory of the model. */
#define MODEL_STATE __attribute__((section("model_state")))

enum { FIBER_KEYS = 4 };

enum fiber_life { FIBER_NONE = 0, FIBER_ALIVE, FIBER_ENDED };

struct fiber {
	unsigned number;
	enum fiber_life life;
	jmp_buf place;
	jmp_buf base; /* where the fiber's stack begins */
	char *stack;
	void *(*body)(void *argument);
	void *argument;

	/* Memory. */
	uint32_t epoch;
	struct model_clock now;      /* before whatever this fiber does next */
	struct model_clock reads;    /* before its next reads: `now`, and what load fences add */
	struct model_clock pending;  /* read relaxed; an acquire fence makes it count */
	struct model_clock released; /* the writes that a relaxed store publishes: fences */
	struct model_clock flushed;  /* before its last compiler fence (barrier.h) */
	struct model_clock barriers; /* of others; counts from its next compiler fence on */

	/* Its wait: the fiber is ready when the function returns true. */
	bool (*ready)(struct fiber *fiber);
	const void *waits_for;
	const char *waits_text;
	bool woken;
	int64_t until_ns;

	unsigned section_depth; /* of RCU */
	uint64_t section;       /* which one, from 1 */
	uint64_t grace_sections[MODEL_FIBERS];

	const void *key_value[FIBER_KEYS];
	uint64_t priority;       /* of random runs */
	bool speculates;         /* the next ordinary read is: */
	const void *speculative; /* one that counts only if the next double swap succeeds */
};

struct fibers {
	struct fiber fiber[MODEL_FIBERS];
	struct fiber *current;
	unsigned count;   /* made so far in this run, main included */
	int64_t begin_ns; /* of each run */
	int64_t now_ns;
	unsigned preemptions;
	uint64_t steps;
	bool running; /* a run is on: else setup */
};

extern struct fibers fibers;

static inline struct fiber *fiber_self(void)
{
	return fibers.current;
}

/* Gives each fiber its stack. */
void fibers_init(void);

/* A run: `body` is main's. Returns when all fibers have ended. */
void fibers_run(void *(*body)(void *argument));

/* A new fiber, which inherits what its maker knows. */
struct fiber *fiber_make(void *(*body)(void *argument), void *argument);

/* Ends the calling fiber from any depth. */
void fiber_exit(void) __attribute__((noreturn));

/*
 * Called before an access that other fibers can see. If the memory is contended, another fiber may
 * go first.
 */
void fiber_point(bool contended);

/* Waits until `ready` says so, or `until_ns`. False: the time came. */
bool fiber_wait(bool (*ready)(struct fiber *fiber), const void *what, const char *text,
		int64_t until_ns);

/* Ends one epoch: clocks published so far do not cover later accesses. */
void fiber_tick(struct fiber *fiber);

/* `other` comes before all that this fiber does next. */
void fiber_acquire(struct fiber *fiber, const struct model_clock *other);

/* Whether the address is on the calling fiber's stack. */
bool fiber_on_stack(const void *address);

/* Whether only one fiber is alive. */
bool fiber_alone(void);

#endif
