/* SPDX-License-Identifier: MIT */
/*
 * Lanes that rest: far lanes in which nothing was pushed for some time. The worker does not look at
 * them, so a turn's cost does not grow with threads that are idle.
 *
 * Protocol. Before a sleep the worker collects the idle ones among the far lanes that it looks at.
 * If there are enough of them, it clears their bits, makes a barrier in all threads, and looks at
 * each of these lanes once more. If a lane is not idle any more, the worker sets its bit again. A
 * producer of a far lane pushes, then reads the lane's bit (twi_lane_far_pushed). If it is clear,
 * the producer sets it, before it checks whether the worker sleeps.
 *
 * Nothing is lost. The barrier falls into each producer between two instructions. If it falls after
 * the push, the worker's second look sees the push. If it falls before the push, the producer's read
 * of the bit comes after the worker's step, and sees it (E8). Without a barrier in the system each
 * push is sequentially consistent, and so are both steps on the bit. If the barrier fails, the worker
 * sets all bits again.
 *
 * One word decides. With a second one, such as a flag in the lane, a producer that joins for the
 * first time could set the flag after the worker has cleared flag and bit, and then find the flag
 * set.
 *
 * Near lanes never rest: their quick paths do not read the bit, and there are at most 64 of them.
 */
#ifndef TWI_INGRESS_REST_H
#define TWI_INGRESS_REST_H

#include "worker/worker.h"

enum {
/* Fewer idle lanes than this cost less than a barrier. Tests define it smaller. */
#ifndef TWI_REST_LEAST
	TWI_REST_LEAST = 16,
#endif
	/* The most lanes that one sleep lets rest. */
	TWI_REST_MOST = 64,
};

struct twi_resting {
	uint32_t count;
	uint32_t number[TWI_REST_MOST];
};

/* Lets idle lanes rest. If ret->count is not 0, a barrier and twi_lanes_rested() must follow. */
TWI_WORKER_ONLY void twi_lanes_rest(struct twi_worker *worker, struct twi_resting *ret);

/*
 * Looks at the lanes again, and no longer lets those rest that are not idle. `all`: the barrier has
 * failed, so none of them may rest.
 */
TWI_WORKER_ONLY void twi_lanes_rested(struct twi_worker *worker, const struct twi_resting *resting,
				      bool all);

#endif
