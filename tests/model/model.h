/* SPDX-License-Identifier: MIT */
/*
 * The parts of a harness of the model checks: docs/internals/methods.md, "How model checks work".
 *
 * A harness is run many times, each time with other decisions of the scheduler and of the weak
 * memory. Its threads are fibers of one thread of the system, so nothing else happens meanwhile.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* The main one, a harness's own, and those that the library makes. */
	MODEL_FIBERS = 8,
	MODEL_THREADS = 5,
};

struct model_harness {
	const char *name;
	const char *file; /* its stem names all its harnesses */
	const char *proves;
	/*
	 * Runs once, before all runs, and unseen. Each run begins with the memory that it leaves.
	 */
	void (*setup)(void);
	/* The threads of a run, up to the first NULL. */
	void (*thread[MODEL_THREADS])(void);
	/* One more thread. The run does not wait for its end. Or NULL. */
	void (*worker)(void);
	/*
	 * Each run, when the threads have ended; main goes on here and may use the library. Or
	 * NULL.
	 */
	void (*finish)(void);
	/* Whether a thread gives back its blocks at its end, which costs steps. */
	bool threads_end;
	/* How often at most a thread is interrupted that could have gone on. */
	unsigned preemptions;
	/* How often at most memory answers otherwise than by the newest store. */
	unsigned weak;
	/*
	 * Sequentially consistent accesses come in any order that C11 allows. Otherwise they come
	 * in the run's order, which shows as much unless a thread must learn by an acquire that
	 * such an access was made.
	 */
	bool any_order;
	/* Random runs after the exhaustive ones: without these two bounds. */
	unsigned random_runs;
};

/* Registers a harness: MODEL_HARNESS(name, .setup = ..., .preemptions = 2, ...). */
#define MODEL_HARNESS(id, ...)                                                                     \
	static const struct model_harness harness_##id = {                                         \
		.name = #id, .file = __FILE__, __VA_ARGS__};                                       \
	static const struct model_harness *const entry_##id                                        \
		__attribute__((section("model_harness"), used)) = &harness_##id

/* Ends the search: prints what happened and how to see it again. */
#define MODEL_CHECK(condition)                                                                     \
	do {                                                                                       \
		if (!(condition))                                                                  \
			model_fail("%s:%d: does not hold: %s", __FILE__, __LINE__, #condition);    \
	} while (0)
void model_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* In setup: `step` as the n-th thread (from 0) would do it. */
void model_as(unsigned thread, void (*step)(void));

/* One of 0 .. count - 1, each of them in some run. */
unsigned model_choose(unsigned count);

/*
 * The calling fiber waits until all others have ended or wait for something; what they did is
 * visible then, as after a long time.
 */
void model_wait_idle(void);

/* Until the descriptor of a loop is readable (runtime/timer.c). */
void model_timer_wait(void);

/* How many barriers of all threads this run has called for. */
unsigned model_barriers(void);

/* The number of the calling fiber: main is 0, a harness's threads follow. */
unsigned model_self(void);

/* While it is set, no thread can be made: EAGAIN. A setup sets it, or clears it. */
extern bool model_no_threads;

/*
 * CLOCK_MONOTONIC of the model. It moves only when all threads wait and one of them waits for the
 * time.
 */
int64_t model_now_ns(void);
/* In setup: so much time passes. */
void model_pass_ns(int64_t ns);

#endif
