/* SPDX-License-Identifier: MIT */
/* The peer for Boost.Asio. asio_timer.cc has the calls of Boost.Asio itself. */
#include "peer/linked/asio_timer.h"

typedef struct asio_timer peer_timer;

#include "peer/shared.h"
#include "peer/table.h"

static inline void peer_timer_init(peer_timer *timer)
{
	asio_timer_init(timer);
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	asio_timer_start(timer, delay_ns);
	return 0;
}

static inline bool peer_timer_cancel(peer_timer *timer)
{
	return asio_timer_cancel(timer);
}

static void on_expire(struct asio_timer *timer)
{
	shared_expired(timer);
}

static int open_loop(const struct peer_task *task)
{
	(void)task;
	return asio_open(on_expire);
}

/* Waits until the handlers of cancelled timers have run, because they are part of the cost. */
static int thread_end(struct producer *unused)
{
	(void)unused;
	asio_flush();
	return 0;
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct shared_hooks hooks = {
		.version = asio_version,
		.open = open_loop,
		.close = asio_close,
		.thread_end = thread_end,
	};

	(void)self;
	return shared_run(&hooks, task, ret_sample);
}

const struct peer peer_asio = {
	.name = "asio",
	.workloads = WORKLOAD_KIND_SHARED,
	.run = run,
};
