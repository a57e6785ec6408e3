/* SPDX-License-Identifier: MIT */
/* What callers ask of the I/O thread: changes that it acknowledges, and questions that they wait for. */
#ifndef TWI_DURABLE_REQUEST_H
#define TWI_DURABLE_REQUEST_H

#include "durable/set.h"

struct twi_request *twi_request_make(enum twi_item_type type, struct tw_durable_id id,
				     const void *key, size_t key_bytes, size_t infos);
/* Pushes it. It belongs to the I/O thread afterwards. */
void twi_request_send(struct tw_durable *set, struct twi_request *request, bool urgent);
/*
 * Pushes it and waits. 0: it is answered, and the caller frees it. A negative code: it belongs to
 * the I/O thread, or is freed.
 */
int twi_request_ask(struct tw_durable *set, struct twi_request *request, int64_t timeout_ns);
/* For the I/O thread: gives a waited-for request back. */
void twi_request_answer(struct twi_request *request, int result);

void twi_request_free(struct twi_request *request);

static inline size_t twi_request_bytes(const struct twi_request *request)
{
	return sizeof *request + request->key_bytes;
}

#endif
