/* SPDX-License-Identifier: MIT */
/* Opens a set with other hooks than the system's, for tests. */
#ifndef TWI_DURABLE_OPEN_H
#define TWI_DURABLE_OPEN_H

#include "durable/set.h"

/* Opens a set as tw_durable_open does, but with these hooks. */
int twi_durable_open(struct tw_engine *engine, const struct tw_durable_kind *const *kinds,
		     size_t count, const struct tw_durable_options *options,
		     const struct twi_durable_hooks *hooks, struct tw_durable **ret);

#endif
