/* SPDX-License-Identifier: MIT */
/* One turn by the owner of a loop. */
#ifndef TWI_TURN_POLL_H
#define TWI_TURN_POLL_H

#include "worker/worker.h"

/*
 * Takes one turn, for the owner of a loop. The turn ends after `budget` callbacks (0: no bound), or
 * after the first callback that ends at `until_ns` or later (INT64_MAX: no bound). Returns how many
 * timeouts expired, each run of a periodic timeout included, or a negative errno value.
 */
TWI_WORKER_ONLY int64_t twi_worker_poll(struct twi_worker *worker, int64_t now_ns, uint64_t budget,
					int64_t until_ns);

/* Makes the descriptor and sets it. Returns 0 or -ENOMEM. */
TWI_WORKER_ONLY int twi_poll_fd_make(struct twi_worker *worker);

#endif
