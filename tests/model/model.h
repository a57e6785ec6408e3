/* SPDX-License-Identifier: MIT */
/*
 * The parts of a harness of the model checks: docs/internals/methods.md, "How model checks work".
 *
 * A harness is run many times, each time with other decisions of the scheduler and of the weak
 * memory. Its threads are fibers of one system thread, so nothing else happens meanwhile.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* the main fiber, a harness's own threads, and those that the library creates */
	MODEL_FIBERS = 8,
	MODEL_THREADS = 5,
};

struct model_harness {
	const char *name;
	const char *file; /* its name without the extension selects all harnesses of the file */
	const char *proves;
	/*
	 * Called once, before all runs, without the scheduler. Each run begins with the memory that
	 * this function leaves.
	 */
	void (*setup)(void);
	/* The threads of a run, up to the first NULL. */
	void (*thread[MODEL_THREADS])(void);
	/* One more thread, or NULL. The run does not wait for its end. */
	void (*worker)(void);
	/*
	 * Called in each run after the threads have ended; may be NULL. The main fiber calls it,
	 * and it may use the library.
	 */
	void (*finish)(void);
	/* Whether a thread gives back its blocks at its end, which costs steps. */
	bool threads_end;
	/*
	 * The bound on preemptions. A preemption is an interruption of a thread that could have
	 * continued.
	 */
	unsigned preemptions;
	/*
	 * The bound on weak answers. A weak answer is a load that returns an older store than the
	 * newest.
	 */
	unsigned weak;
	/*
	 * Whether sequentially consistent accesses may come in any order that C11 allows. If not,
	 * they come in the order of the run. Both settings find the same defects, with one
	 * exception: code in which a thread must learn by an acquire that such an access was made.
	 */
	bool any_order;
	/*
	 * The number of random runs after the exhaustive ones. `preemptions` and `weak` do not
	 * apply to them.
	 */
	unsigned random_runs;
};

/* Registers a harness: MODEL_HARNESS(name, .setup = ..., .preemptions = 2, ...). */
#define MODEL_HARNESS(id, ...)                                                                     \
	static const struct model_harness harness_##id = {                                         \
		.name = #id, .file = __FILE__, __VA_ARGS__};                                       \
	static const struct model_harness *const entry_##id                                        \
		__attribute__((section("model_harness"), used)) = &harness_##id

/*
 * Checks the condition. If it is false, ends the search and prints what happened and how to replay
 * it.
 */
#define MODEL_CHECK(condition)                                                                     \
	do {                                                                                       \
		if (!(condition))                                                                  \
			model_fail("%s:%d: does not hold: %s", __FILE__, __LINE__, #condition);    \
	} while (0)
void model_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* In setup: calls `step` as the n-th thread (from 0). */
void model_as(unsigned thread, void (*step)(void));

/* Returns one of 0 .. count - 1; the search tries each of them. */
unsigned model_choose(unsigned count);

/*
 * Waits until all other fibers have ended or wait for something. The calling fiber then sees
 * everything that they did, as after a long time.
 */
void model_wait_idle(void);

/* Waits until the descriptor of a loop is readable (runtime/timer.c). */
void model_timer_wait(void);

/* Returns how many barriers (membarrier) this run has called for. */
unsigned model_barriers(void);

/* Returns the number of the calling fiber: 0 is main, then come the harness's threads. */
unsigned model_self(void);

/* While this is set, no thread can be created (EAGAIN). A setup sets or clears it. */
extern bool model_no_threads;

/*
 * Reads the model's CLOCK_MONOTONIC. This clock moves only when all threads wait and one of them
 * waits for a time.
 */
int64_t model_now_ns(void);
/* In setup: lets this much time pass. */
void model_pass_ns(int64_t ns);

#endif
