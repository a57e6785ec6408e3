/* SPDX-License-Identifier: MIT */
/* Runs one callback, and ends its timeout afterwards, even if the callback ends its thread. */
#include "expiry/run.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "expiry/limit.h"
#include "expiry/measure.h"
#include "expiry/slow.h"
#include "thread/futex.h"
#include "worker/role.h"

#include <pthread.h>

/* Returns the half of a state word that holds the state. A futex can wait on 32 bits only. */
_Atomic uint32_t *twi_word_futex(_Atomic uint64_t *word)
{
	_Atomic uint32_t *half = (_Atomic uint32_t *)(void *)word;

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	half++;
#endif
	return half;
}

/*
 * Steps from RUNNING to EXPIRED, and wakes the threads that wait for the end. Returns true if the
 * caller must free the node, false if reclaim does.
 */
static TWI_ALWAYS_INLINE bool word_end(struct twi_node *node)
{
	/*
	 * RELAXED: a waiter or reclaim may change the state word meanwhile; then the
	 * compare-and-swap fails.
	 */
	uint64_t word = twi_load_relaxed(&node->word);

	TWI_TEST_POINT("run:ending");
	/*
	 * E4: pairs with cancel's load. Otherwise a waiter that sees EXPIRED could free memory that
	 * the callback still writes. E16: acquires from reclaim if reclaim is done with the node,
	 * otherwise releases to reclaim.
	 */
	while (!twi_cas_acq_rel(&node->word, &word,
				twi_word_to(word, TWI_WORD_EXPIRED) & ~TWI_WORD_WAITER))
		;
	TWI_TEST_POINT("run:ended");
	if (TWI_UNLIKELY(word & TWI_WORD_WAITER))
		twi_futex_wake(twi_word_futex(&node->word));
	return (word & TWI_WORD_QUEUED) == 0;
}

/*
 * Reads the clock once for all measurements. The reading also serves as the time at which the
 * worker's next run begins.
 */
static TWI_WORKER_UNCHECKED void time_end(struct twi_run *run)
{
	struct twi_worker *worker = run->worker;
	int64_t now_ns = twi_clock_now_ns(worker->clock);

	if ((run->marks & TWI_RUN_MEASURED) != 0)
		twi_measure_end(run, now_ns);
	if ((run->marks & TWI_RUN_TIMED) != 0)
		now_ns = twi_watch_end(run, now_ns);
	if (run->thread->worker == worker)
		worker->run_from_ns = now_ns;
}

/*
 * Reports the run's end to ThreadSanitizer as two releases: one for the threads that wait for this
 * run by its handle, one for stop, which waits for every run.
 */
static void run_report(void *argument)
{
	const struct twi_run *run = argument;

	twi_handle_release(run->handle);
	twi_tsan_release(&run->worker->in_flight);
}

void twi_run_marked_end(struct twi_run *run)
{
	if ((run->marks & (TWI_RUN_TIMED | TWI_RUN_MEASURED)) != 0)
		time_end(run);
	if ((run->marks & TWI_RUN_OWNS_SLOT) != 0)
		twi_limit_give(run->worker);
	if (TWI_UNLIKELY((run->marks & TWI_RUN_REPORTED) != 0))
		run_report(run);
}

static void run_end(void *argument)
{
	struct twi_run *run = argument;

	if (TWI_UNLIKELY(run->marks != 0))
		twi_run_marked_end(run);
	run->thread->run = run->outer;
	if (word_end(run->node))
		twi_pool_give(&run->thread->stock, run->node);
}

static void finaliser_run(void *argument)
{
	struct twi_run *run = argument;

	pthread_cleanup_push(run_end, run);
	if (run->kind->finaliser != NULL)
		run->kind->finaliser(run->arg, TW_END_EXPIRED);
	pthread_cleanup_pop(1);
}

const char twi_kind_own;

/* Returns true if the run began later than the bound allows, and there is a late hook. */
static bool late_check(struct twi_run *run, int64_t now_ns)
{
	struct twi_worker *worker = run->worker;

	if (worker->late_ns == 0 || (run->kind->flags & TWI_KIND_FLAG_OWN) != 0)
		return false;
	run->late_by_ns = now_ns - twi_node_deadline_ns(run->node);
	if (run->late_by_ns <= worker->late_ns)
		return false;
	/* RELAXED: a count, which publishes nothing. Executors count, too. */
	(void)twi_fetch_add_relaxed(&worker->late_count, 1);
	return worker->on_late != NULL;
}

/*
 * Returns when the run begins. On a worker without executors, callbacks run one after the other. If
 * every run is timed, the end of one run counts as the beginning of the next, and the clock is read
 * only once per run.
 */
static TWI_WORKER_UNCHECKED int64_t begin_ns(const struct twi_run *run)
{
	const struct twi_worker *worker = run->worker;

	if (worker->late_ns == 0 && worker->dispatch == NULL && run->thread->worker == worker &&
	    (worker->watch != NULL || !worker->measure->sampled))
		return worker->run_from_ns;
	return twi_clock_now_ns(worker->clock);
}

/* Checks a run if there are bounds or measurements. Returns true if the late hook must run. */
static TWI_ALWAYS_INLINE bool run_check(struct twi_run *run)
{
	struct twi_worker *worker = run->worker;
	bool measured = worker->measure != NULL && twi_measure_chosen(run);
	int64_t now_ns;

	if (!measured && worker->watch == NULL && worker->late_ns == 0)
		return false;
	/*
	 * A thread of an executor first checks the slots of the other threads (slow.h), which may
	 * be in slow runs. Calls that the slow hook makes count as coming from inside this run.
	 */
	if (worker->watch != NULL && run->thread->worker != worker)
		(void)twi_watch_look(worker);
	now_ns = begin_ns(run);
	if (worker->watch != NULL)
		twi_watch_begin(run, now_ns);
	if (measured)
		twi_measure_begin(run, now_ns);
	return late_check(run, now_ns);
}

static TWI_ALWAYS_INLINE void late_run(struct twi_run *run)
{
	tw_late_hook *late = run->worker->on_late;

	TWI_PROBE5(callback_begin, run->worker, run->handle.node, run->handle.generation, late,
		   run->arg);
	late(run->worker->late_context, run->handle, run->kind, run->arg, run->late_by_ns);
}

static TWI_ALWAYS_INLINE void kind_run(struct twi_run *run)
{
	tw_callback *callback = run->kind->callback;

	TWI_PROBE5(callback_begin, run->worker, run->handle.node, run->handle.generation, callback,
		   run->arg);
	callback(run->handle, run->arg);
}

void twi_run_mark_reported(struct twi_run *run)
{
	if (!twi_tsan_there())
		return;
	twi_handle_acquire(run->handle);
	run->marks |= TWI_RUN_REPORTED;
}

void twi_run_body(struct twi_run *run, void (*body)(struct twi_run *run))
{
	twi_run_mark_reported(run);
	pthread_cleanup_push(run_report, run);
	body(run);
	pthread_cleanup_pop(1);
}

static TWI_NOINLINE void checked_run(struct twi_run *run)
{
	bool late = run_check(run);

	if (twi_tsan_there())
		twi_run_body(run, late ? late_run : kind_run);
	else if (late)
		late_run(run);
	else
		kind_run(run);
}

static TWI_ALWAYS_INLINE void callback_run(struct twi_run *run)
{
	if (TWI_UNLIKELY(run->worker->runs_checked))
		checked_run(run);
	else
		kind_run(run);
	TWI_PROBE3(callback_end, run->worker, run->handle.node, run->handle.generation);
}

static void drop_finalise(void *argument)
{
	struct twi_run *run = argument;

	pthread_cleanup_push(run_end, run);
	if (run->kind->finaliser != NULL)
		run->kind->finaliser(run->arg, TW_END_DROPPED);
	pthread_cleanup_pop(1);
}

static void drop_hook(struct twi_run *run)
{
	run->worker->on_drop(run->worker->drop_context, run->handle, run->kind, run->arg);
}

void twi_run_drop(struct twi_run *run)
{
	struct twi_worker *worker = run->worker;

	run->outer = run->thread->run;
	run->marks = worker->pending_limit != 0; /* sets TWI_RUN_OWNS_SLOT or no mark */
	run->thread->run = run;
	pthread_cleanup_push(drop_finalise, run);
	twi_run_body(run, drop_hook);
	pthread_cleanup_pop(1);
}

bool twi_run_close(struct twi_node *node)
{
	return word_end(node);
}

void twi_run_callback(struct twi_run *run)
{
	callback_run(run);
}

void twi_run(struct twi_run *run)
{
	run->outer = run->thread->run;
	run->marks = run->worker->pending_limit != 0; /* sets TWI_RUN_OWNS_SLOT or no mark */
	run->thread->run = run;
	TWI_TEST_POINT("run:begin");
	pthread_cleanup_push(finaliser_run, run);
	callback_run(run);
	pthread_cleanup_pop(1);
}
