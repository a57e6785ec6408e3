/* SPDX-License-Identifier: MIT */
/*
 * posix-timer: the peer that uses timer_settime. Each expiry is a queued signal, and a thread waits
 * for these signals.
 *
 * Each timer reserves a queued signal. The system limits their number, so a million timers are not
 * possible. A cancel counts as successful if the timer had time left (as in timerfd.c).
 */
#include <signal.h>
#include <time.h>

typedef struct posix_timer {
	timer_t id;
} peer_timer;

#include "peer/shared.h"
#include "peer/table.h"

#include <pthread.h>
#include <sys/resource.h>

enum { NS_PER_S = 1000000000 };

static struct {
	sigset_t signals;
	/* The first error of timer_create. */
	int error;
	pthread_t worker;
} timers;

static int signal_expired(void)
{
	return SIGRTMIN;
}

static int signal_stop(void)
{
	return SIGRTMIN + 1;
}

static inline void peer_timer_init(peer_timer *timer)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = signal_expired(),
		.sigev_value.sival_ptr = timer,
	};

	if (timer_create(CLOCK_MONOTONIC, &event, &timer->id) && !timers.error)
		timers.error = -errno;
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	const struct itimerspec value = {
		.it_value = {.tv_sec = delay_ns / NS_PER_S, .tv_nsec = delay_ns % NS_PER_S}};

	return timer_settime(timer->id, 0, &value, NULL) ? -errno : 0;
}

static inline bool peer_timer_cancel(peer_timer *timer)
{
	const struct itimerspec never = {{0, 0}, {0, 0}};
	struct itimerspec left;

	if (timer_settime(timer->id, 0, &never, &left))
		return false;
	return left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0;
}

static void *worker_main(void *unused)
{
	siginfo_t info;

	(void)unused;
	for (;;) {
		int number = sigwaitinfo(&timers.signals, &info);

		if (number == signal_stop())
			return NULL;
		if (number == signal_expired())
			shared_expired(info.si_value.sival_ptr);
	}
}

static int posix_timer_open(const struct peer_task *task)
{
	(void)task;
	return -pthread_create(&timers.worker, NULL, worker_main, NULL);
}

static void posix_timer_close(void)
{
	pthread_kill(timers.worker, signal_stop());
	pthread_join(timers.worker, NULL);
}

/* Reports an error of peer_timer_init, which has no return value. */
static int thread_begin(struct producer *unused)
{
	(void)unused;
	return timers.error;
}

static const char *posix_timer_version(void)
{
	return "the kernel's, sigwaitinfo";
}

static void allow_pending_signals(void)
{
	struct rlimit pending;

	if (getrlimit(RLIMIT_SIGPENDING, &pending) == 0) {
		pending.rlim_cur = pending.rlim_max;
		(void)setrlimit(RLIMIT_SIGPENDING, &pending);
	}
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct shared_hooks hooks = {
		.version = posix_timer_version,
		.open = posix_timer_open,
		.close = posix_timer_close,
		.thread_begin = thread_begin,
	};

	(void)self;
	allow_pending_signals();
	sigemptyset(&timers.signals);
	sigaddset(&timers.signals, signal_expired());
	sigaddset(&timers.signals, signal_stop());
	/*
	 * Blocks the signals in all threads, which inherit this mask. The worker takes the signals
	 * one by one.
	 */
	pthread_sigmask(SIG_BLOCK, &timers.signals, NULL);
	return shared_run(&hooks, task, ret_sample);
}

const struct peer peer_posix_timer = {
	.name = "posix-timer",
	.workloads = WORKLOAD_KIND_SCHEDULE_CANCEL | WORKLOAD_KIND_LIGHT,
	.run = run,
};
