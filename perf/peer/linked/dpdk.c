/* SPDX-License-Identifier: MIT */
/*
 * The peer for DPDK's rte_timer, which keeps timers in skip lists, each with a spinlock.
 *
 * Each producer puts its timers on a list of its own. Each millisecond, one thread runs the due
 * timers of all lists. All threads are registered with DPDK's EAL, because rte_timer requires that.
 * The EAL uses no huge pages, no devices and no files.
 */
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_timer.h>
#include <rte_version.h>

typedef struct rte_timer peer_timer;

#include "peer/shared.h"
#include "peer/table.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#define PERIOD_NS INT64_C(1000000)

static struct {
	double cycles_per_ns;
	uint32_t data;
	/* The numbers of the lists. Each list has the number of its producer's lcore. */
	_Atomic unsigned list_count;
	unsigned lists[RTE_MAX_LCORE];
	pthread_mutex_t lists_lock;
	sem_t registered;
	_Atomic bool ended;
	int error;
	pthread_t thread;
} worker = {.lists_lock = PTHREAD_MUTEX_INITIALIZER};

static void on_expire(struct rte_timer *timer)
{
	shared_expired(timer);
}

static inline void peer_timer_init(peer_timer *timer)
{
	rte_timer_init(timer);
}

/* Starts a timer. Rounds the cycles up, so that the timer is not early. */
static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	uint64_t cycles = (uint64_t)((double)delay_ns * worker.cycles_per_ns) + 1;

	return rte_timer_alt_reset(worker.data, timer, cycles, SINGLE, rte_lcore_id(), NULL, NULL)
		       ? -EBUSY
		       : 0;
}

/* Stops a timer. The timer must be pending, because no timer is due for 30 s. */
static inline bool peer_timer_cancel(peer_timer *timer)
{
	return rte_timer_pending(timer) && rte_timer_alt_stop(worker.data, timer) == 0;
}

static int producer_begin(struct producer *unused)
{
	unsigned count;

	(void)unused;
	if (rte_thread_register())
		return -rte_errno;
	pthread_mutex_lock(&worker.lists_lock);
	count = atomic_load_explicit(&worker.list_count, memory_order_relaxed);
	worker.lists[count] = rte_lcore_id();
	atomic_store_explicit(&worker.list_count, count + 1, memory_order_release);
	pthread_mutex_unlock(&worker.lists_lock);
	return 0;
}

static void run_due(void)
{
	unsigned count = atomic_load_explicit(&worker.list_count, memory_order_acquire);

	if (count > 0)
		(void)rte_timer_alt_manage(worker.data, worker.lists, (int)count, on_expire);
}

static void *worker_main(void *unused)
{
	int64_t next_ns = measure_now_ns();

	(void)unused;
	worker.error = rte_thread_register() ? -rte_errno : 0;
	sem_post(&worker.registered);
	while (!worker.error && !atomic_load_explicit(&worker.ended, memory_order_relaxed)) {
		run_due();
		next_ns += PERIOD_NS;
		if (next_ns < measure_now_ns())
			next_ns = measure_now_ns();
		measure_sleep_until_ns(next_ns);
	}
	rte_thread_unregister();
	return NULL;
}

/*
 * Initialises the EAL on the processor on which this thread runs. The EAL binds the thread to that
 * processor. The end of this function removes the binding, because threads that are created later
 * would inherit it.
 */
static int eal_open(void)
{
	char lcores[32];
	const char *words[] = {
		"tickwheel-perf",      "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=*:error", "-m",        "64",          lcores,
	};
	cpu_set_t allowed;
	int error = sched_getaffinity(0, sizeof(allowed), &allowed) ? -errno : 0;

	snprintf(lcores, sizeof(lcores), "--lcores=0@%d", sched_getcpu());
	/* The cast is safe, because rte_eal_init only changes the order of the words. */
	if (!error && rte_eal_init(sizeof(words) / sizeof(*words), (char **)(uintptr_t)words) < 0)
		error = -rte_errno;
	if (!error)
		error = rte_timer_subsystem_init();
	if (!error)
		error = rte_timer_data_alloc(&worker.data);
	if (!error && sched_setaffinity(0, sizeof(allowed), &allowed))
		error = -errno;
	return error;
}

static int dpdk_open(const struct peer_task *task)
{
	int error = eal_open();

	(void)task;
	if (error)
		return error;
	worker.cycles_per_ns = (double)rte_get_timer_hz() / 1e9;
	sem_init(&worker.registered, 0, 0);
	error = -pthread_create(&worker.thread, NULL, worker_main, NULL);
	if (error)
		return error;
	while (sem_wait(&worker.registered) && errno == EINTR)
		;
	return worker.error;
}

static void dpdk_close(void)
{
	atomic_store_explicit(&worker.ended, true, memory_order_relaxed);
	pthread_join(worker.thread, NULL);
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct shared_hooks hooks = {
		.version = rte_version,
		.open = dpdk_open,
		.close = dpdk_close,
		.thread_begin = producer_begin,
	};

	(void)self;
	return shared_run(&hooks, task, ret_sample);
}

const struct peer peer_dpdk = {
	.name = "dpdk",
	.workloads = WORKLOAD_KIND_SHARED,
	.run = run,
};
