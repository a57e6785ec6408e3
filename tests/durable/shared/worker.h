/* SPDX-License-Identifier: MIT */
/* The functions that a worker needs from its kind of store. */
#ifndef TESTS_DURABLE_SHARED_WORKER_H
#define TESTS_DURABLE_SHARED_WORKER_H

#include <tickwheel/durable.h>

struct worker_place {
	const char *address, *place, *name;
	uint64_t session_ns;
	void (*notice)(void *context, const char *text);
};

int worker_store(const struct worker_place *place, struct tw_durable_store *ret_store);
/*
 * Makes the effect of a run and ends its timer, in one transaction. Returns 0 or a code. The
 * engine's thread calls it.
 */
int worker_effect(const struct worker_place *place, const struct tw_durable_self *self,
		  const char *id);
void worker_end(void);

#endif
