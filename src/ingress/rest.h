/* SPDX-License-Identifier: MIT */
/*
 * Resting lanes: far lanes that the worker does not look at, because they were idle when the worker
 * went to sleep. So the cost of a turn does not grow with the number of idle threads.
 *
 * Protocol. A lane rests while its bit in its block's bitmap is clear. Before a sleep the worker
 * collects the far lanes that are idle and do not rest. If there are enough of them, the worker
 * clears their bits, makes a barrier in all threads, and looks at each of these lanes once more. If
 * a lane is not idle any more, the worker sets its bit again. The producer of a far lane pushes,
 * then reads the lane's bit (twi_lane_far_pushed). If the bit is clear, the producer sets it,
 * before it checks whether the worker sleeps.
 *
 * No push is lost. In each producer, the barrier takes effect between two instructions. If these
 * come after the push, the worker's second look sees the push. If they come before the push, the
 * producer reads the bit after the worker has cleared it, and finds it clear (E8). If the system
 * has no such barrier, each push is sequentially consistent, and so are all steps on the bit. If
 * the barrier fails, the worker sets all bits again.
 *
 * The bit alone must decide. Suppose that the lane also had a flag which says that the bit is set.
 * A producer that joins would set first the bit and then the flag. If the worker cleared both in
 * between, the flag would end up set and the bit clear. Later pushes would find the flag set, and
 * would not set the bit.
 *
 * Near lanes never rest, because their producers' quick paths do not read the bit. There are at
 * most 64 of them.
 */
#ifndef TWI_INGRESS_REST_H
#define TWI_INGRESS_REST_H

#include "worker/worker.h"

enum {
/*
 * If fewer lanes are idle, a look at them costs less than a barrier. Tests define a smaller number.
 */
#ifndef TWI_REST_LEAST
	TWI_REST_LEAST = 16,
#endif
	/* The most lanes that begin to rest before one sleep. */
	TWI_REST_MOST = 64,
};

struct twi_resting {
	uint32_t count;
	uint32_t number[TWI_REST_MOST];
};

/*
 * Lets idle lanes rest. If it sets ret->count to more than 0, a barrier and twi_lanes_rested() must
 * follow.
 */
TWI_WORKER_ONLY void twi_lanes_rest(struct twi_worker *worker, struct twi_resting *ret);

/*
 * Looks at the lanes again. If a lane is not idle any more, sets its bit again. `all`: the barrier
 * has failed, so sets all bits again.
 */
TWI_WORKER_ONLY void twi_lanes_rested(struct twi_worker *worker, const struct twi_resting *resting,
				      bool all);

#endif
