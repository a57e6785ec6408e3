/* SPDX-License-Identifier: MIT */
/*
 * Requests. A caller makes a request and pushes it. Then the request belongs to the I/O thread,
 * which acknowledges and frees it. If the caller waits, a swap of `answered` decides which thread
 * frees the request. If the answer comes first, the caller frees it. If the caller leaves first,
 * the I/O thread frees it (E104).
 */
#include "durable/request.h"

#include "durable/stage.h"
#include "thread/futex.h"

#include <errno.h>

void twi_request_send(struct tw_durable *set, struct twi_request *request, bool urgent)
{
	twi_stage(set, &request->item, (int64_t)twi_request_bytes(request), urgent);
}

int twi_request_ask(struct tw_durable *set, struct twi_request *request, int64_t timeout_ns)
{
	int64_t until_ns = twi_until_ns(timeout_ns);

	twi_request_send(set, request, true);
	/* E104: pairs with the answer, whose results the caller reads. */
	while (twi_load_acquire(&request->answered) == TWI_ANSWER_WAITED) {
		uint32_t waited = TWI_ANSWER_WAITED;

		if (twi_futex_wait(&request->answered, TWI_ANSWER_WAITED, until_ns) != -ETIMEDOUT)
			continue;
		/*
		 * E104: tells the I/O thread that the caller has left and no longer reads the
		 * request.
		 */
		if (twi_cas_acq_rel(&request->answered, &waited, TWI_ANSWER_LEFT))
			return -ETIMEDOUT;
	}
	return 0;
}

void twi_request_answer(struct twi_request *request, int result)
{
	uint32_t waited = TWI_ANSWER_WAITED;

	request->result = result;
	/*
	 * E104: publishes the results. If the caller waits, the request belongs to it from here on.
	 */
	if (twi_cas_acq_rel(&request->answered, &waited, TWI_ANSWER_GIVEN))
		twi_futex_wake(&request->answered);
	else
		twi_request_free(request);
}
