/* SPDX-License-Identifier: MIT */
/* Boost.Asio's steady_timer, callable from C. */
#ifndef PERF_PEER_LINKED_ASIO_TIMER_H
#define PERF_PEER_LINKED_ASIO_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that suffice for the C++ object. */
enum { ASIO_TIMER_BYTES = 80 };

struct asio_timer {
	union {
		char bytes[ASIO_TIMER_BYTES];
		void *aligned;
	} object;
};

/*
 * Starts the thread that runs the handlers, which call `expired`. Returns 0 or a negative errno
 * value.
 */
int asio_open(void (*expired)(struct asio_timer *timer));
void asio_close(void);
/* Waits until the thread has run all handlers that were ready. */
void asio_flush(void);

void asio_timer_init(struct asio_timer *timer);
void asio_timer_start(struct asio_timer *timer, int64_t delay_ns);
bool asio_timer_cancel(struct asio_timer *timer);

const char *asio_version(void);

#ifdef __cplusplus
}
#endif

#endif
