/* SPDX-License-Identifier: MIT */
/* [io] Answers requests. */
#ifndef TWI_DURABLE_ASK_H
#define TWI_DURABLE_ASK_H

#include "durable/set.h"

struct twi_request;

/*
 * Takes a request over. `failed`: the store must not be called. False: a callback holds its timer, and the
 * request is the caller's, for the next step.
 */
bool twi_ask(struct tw_durable *set, struct twi_request *request, bool failed);
/* After a commit: wakes the callers that wait for it. */
void twi_ask_flushed(struct tw_durable *set);

#endif
