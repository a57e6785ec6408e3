/* SPDX-License-Identifier: MIT */
/*
 * Selects which of the possible runs to make.
 *
 * A run is a sequence of choices: which fiber continues, which value a load returns, where a store
 * is placed. The exhaustive search is depth first. It replays a prefix of choices and takes the
 * first alternative at each later one, until it has used all alternatives. There are two bounds: on
 * preemptions (a fiber that could have continued is interrupted), and on weak answers of memory.
 * Random runs have no such bound.
 *
 * Another fiber may go first only at an access to contended memory, that is, memory which two
 * fibers touch and at least one of them writes. The search learns from the runs which memory is
 * contended. Each time a run shows more contended memory, the search begins again.
 */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include "runtime/fiber.h"

struct explore_bounds {
	unsigned preemptions;
	unsigned weak;
	uint64_t runs_max; /* bound on the runs of the exhaustive search; 0: no bound */
	uint64_t random_runs;
	uint64_t seed;
	const char *replay; /* if not NULL, only one run is made, with these choices */
};

/* Makes all runs of a harness. Prints a summary. */
void explore(const struct model_harness *harness, const struct explore_bounds *bounds);

/*
 * Returns which of `count` fibers continues. If `preempts` is true, the first one in the list is
 * the current fiber.
 */
unsigned explore_schedule(struct fiber **list, unsigned count, bool preempts);
/* Returns whether there is a choice at all at this point. */
bool explore_may_preempt(bool contended);

/* Return which of `count` answers to give. For memory, 0 is the newest store. */
unsigned explore_weak(unsigned count);
unsigned explore_choose(unsigned count);

/* Returns the harness that is run. */
const struct model_harness *explore_harness(void);

void explore_fiber_made(struct fiber *fiber);

/* Records that one more piece of memory is contended. */
void explore_grown(void);

/* Prints the choices of this run, for --replay. */
void explore_print_choices(void);

#endif
