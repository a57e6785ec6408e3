/* SPDX-License-Identifier: MIT */
/*
 * Selects the runs to make among the possible ones.
 *
 * A run is a sequence of choices: which fiber goes on, which value a load returns, where a store
 * falls. The exhaustive search is depth first: it replays a prefix of choices, and takes the first
 * alternative at each later one, until all are used up. There are two bounds: on preemptions (a
 * fiber is interrupted that could have continued), and on weak answers of memory. Random runs have
 * no such bound.
 *
 * Another fiber may go first only at an access to contended memory: two fibers touch it, and one of
 * them writes. The search learns from the runs which memory is contended. Each time that a run
 * shows more contended memory, the search begins again.
 */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include "runtime/fiber.h"

struct explore_bounds {
	unsigned preemptions;
	unsigned weak;
	uint64_t runs_max; /* of the exhaustive search; 0: no bound */
	uint64_t random_runs;
	uint64_t seed;
	const char *replay; /* one run with these choices, or NULL */
};

/* Makes all runs of a harness. Prints a summary. */
void explore(const struct model_harness *harness, const struct explore_bounds *bounds);

/* Which of `count` goes on; the first one is the current where `preempts`. */
unsigned explore_schedule(struct fiber **list, unsigned count, bool preempts);
/* Whether there is a choice at all here. */
bool explore_may_preempt(bool contended);

/* One of `count` answers of memory: 0 is the newest. */
unsigned explore_weak(unsigned count);
unsigned explore_choose(unsigned count);

/* The harness that is run. */
const struct model_harness *explore_harness(void);

void explore_fiber_made(struct fiber *fiber);

/* One more piece of memory is contended. */
void explore_grown(void);

/* The choices of this run, for --replay. */
void explore_print_choices(void);

#endif
