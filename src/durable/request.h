/* SPDX-License-Identifier: MIT */
/*
 * Requests of callers to the I/O thread: changes, which it acknowledges, and questions, for whose
 * answers the callers wait.
 */
#ifndef TWI_DURABLE_REQUEST_H
#define TWI_DURABLE_REQUEST_H

#include "durable/set.h"

struct twi_request *twi_request_make(enum twi_item_type type, struct tw_durable_id id,
				     const void *key, size_t key_bytes, size_t infos);
/* Pushes a request, which then belongs to the I/O thread. `urgent`: as for twi_stage(). */
void twi_request_send(struct tw_durable *set, struct twi_request *request, bool urgent);
/*
 * Pushes a request and waits for the answer. Returns 0 if the request was answered; then the caller
 * frees it. Returns -ETIMEDOUT if the time is over; then the I/O thread frees it.
 */
int twi_request_ask(struct tw_durable *set, struct twi_request *request, int64_t timeout_ns);
/*
 * For the I/O thread: answers a request. If the caller still waits, the request belongs to the
 * caller again. Otherwise this function frees the request.
 */
void twi_request_answer(struct twi_request *request, int result);

void twi_request_free(struct twi_request *request);

static inline size_t twi_request_bytes(const struct twi_request *request)
{
	return sizeof *request + request->key_bytes;
}

#endif
