/* SPDX-License-Identifier: MIT */
/* [io] Answers requests. */
#ifndef TWI_DURABLE_ASK_H
#define TWI_DURABLE_ASK_H

#include "durable/set.h"

struct twi_request;

/*
 * Takes over a request. If `failed`, the set has failed, and the request ends with an error without
 * a call of the store. Returns false if a callback holds the timer or the server cannot be reached.
 * Then the caller keeps the request for the next step.
 */
bool twi_ask(struct tw_durable *set, struct twi_request *request, bool failed);
/* Wakes the callers that wait for a flush. Called after a commit. */
void twi_ask_flushed(struct tw_durable *set);

#endif
