/* SPDX-License-Identifier: MIT */
/*
 * Fibers: the threads of a run. They all run on one thread of the system, and this part decides
 * which of them continues.
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

	/* Fields of the memory model. */
	uint32_t epoch;
	struct model_clock now; /* all accesses that come before what this fiber does next */
	/* all accesses that come before its next reads: `now`, and what load fences add */
	struct model_clock reads;
	/* what it has read relaxed; moved into `now` by an acquire fence */
	struct model_clock pending;
	/* what its relaxed stores publish because of release fences */
	struct model_clock released;
	struct model_clock flushed; /* what came before its last compiler fence (barrier.h) */
	/* barriers of other fibers; moved into `now` by its next compiler fence */
	struct model_clock barriers;

	/* How the fiber waits: it is ready when the function returns true. */
	bool (*ready)(struct fiber *fiber);
	const void *waits_for;
	const char *waits_text;
	bool woken;
	int64_t until_ns;

	unsigned section_depth; /* how many RCU sections it is in */
	uint64_t section;       /* the number of the current section, from 1 */
	uint64_t grace_sections[MODEL_FIBERS];

	const void *key_value[FIBER_KEYS];
	uint64_t priority; /* used in random runs */
	bool speculates;   /* its next ordinary read is speculative */
	/* what that read has read; it counts if the next double swap succeeds */
	const void *speculative;
};

struct fibers {
	struct fiber fiber[MODEL_FIBERS];
	struct fiber *current;
	unsigned count;   /* fibers created so far in this run, including main */
	int64_t begin_ns; /* the time at which each run begins */
	int64_t now_ns;
	unsigned preemptions;
	uint64_t steps;
	bool running; /* true during a run, false during setup */
};

extern struct fibers fibers;

static inline struct fiber *fiber_self(void)
{
	return fibers.current;
}

/* Gives each fiber its stack. */
void fibers_init(void);

/* Makes a run. `body` is the main fiber's function. Returns when all fibers have ended. */
void fibers_run(void *(*body)(void *argument));

/* Creates a fiber, which inherits everything that its creator knows. */
struct fiber *fiber_make(void *(*body)(void *argument), void *argument);

/* Ends the calling fiber, from any depth of calls. */
void fiber_exit(void) __attribute__((noreturn));

/*
 * Called before an access that other fibers can see. If the memory is contended, another fiber may
 * go first.
 */
void fiber_point(bool contended);

/* Waits until `ready` returns true, or until `until_ns`. Returns false if the time came first. */
bool fiber_wait(bool (*ready)(struct fiber *fiber), const void *what, const char *text,
		int64_t until_ns);

/* Begins a new epoch: clocks published so far do not cover later accesses. */
void fiber_tick(struct fiber *fiber);

/* Orders `other` before everything that this fiber does next. */
void fiber_acquire(struct fiber *fiber, const struct model_clock *other);

/* Returns whether the address is on the calling fiber's stack. */
bool fiber_on_stack(const void *address);

/* Returns whether only one fiber is alive. */
bool fiber_alone(void);

#endif
