/* SPDX-License-Identifier: MIT */
/* Opens a set, also with the substitutes of tests. */
#ifndef TWI_DURABLE_OPEN_H
#define TWI_DURABLE_OPEN_H

#include "durable/set.h"

/* As tw_durable_open. */
int twi_durable_open(struct tw_engine *engine, const struct tw_durable_kind *const *kinds,
		     size_t count, const struct tw_durable_options *options,
		     const struct twi_durable_hooks *hooks, struct tw_durable **ret);

#endif
