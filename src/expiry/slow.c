/* SPDX-License-Identifier: MIT */
/* Slow runs (protocol: slow.h). */
#include "expiry/slow.h"

#include "base/atomic.h"
#include "memory/memory.h"
#include "worker/role.h"

#include <pthread.h>
#include <string.h>

#define RUNNING UINT64_C(1)
#define REPORTED UINT64_C(2)
#define NUMBER UINT64_C(4)

struct twi_watch *twi_watch_create(const struct tw_allocator *allocator,
				   const struct tw_options *options)
{
	struct twi_watch *watch = twi_allocate_zeroed(allocator, sizeof *watch, TWI_CACHE_LINE);

	if (watch == NULL)
		return NULL;
	watch->slow_ns = (int64_t)options->slow_ns;
	watch->hook = options->on_slow;
	watch->context = options->slow_context;
	return watch;
}

void twi_watch_free(const struct tw_allocator *allocator, struct twi_watch *watch)
{
	if (watch != NULL)
		twi_release(allocator, watch, sizeof *watch, TWI_CACHE_LINE);
}

void twi_watch_renew(struct twi_watch *watch)
{
	if (watch == NULL)
		return;
	memset(watch->slot, 0, sizeof watch->slot);
	/* RELAXED: no other thread uses the engine yet. */
	twi_store_relaxed(&watch->count, 0);
}

/* Returns the slot of the run's thread, or NULL if it has none. */
static struct twi_watch_slot *slot_of(const struct twi_run *run)
{
	struct twi_watch *watch = run->worker->watch;

	if (run->thread->worker == run->worker)
		return &watch->slot[TWI_LANE_SHARED];
	if (run->thread->lane == TWI_LANE_SHARED)
		return NULL;
	return &watch->slot[run->thread->lane];
}

/*
 * Marks a slot as used. RELAXED, load and fetch-or: a watcher that does not see the bit yet will
 * look at the slot the next time.
 */
static void slot_use(struct twi_watch *watch, const struct twi_watch_slot *slot)
{
	uint64_t bit = UINT64_C(1) << (slot - watch->slot);

	if ((twi_load_relaxed(&watch->used) & bit) == 0)
		(void)twi_fetch_or_relaxed(&watch->used, bit);
}

/* Returns false if the thread's slot already holds a run of this engine. */
static bool slot_begin(struct twi_watch_slot *slot, const struct twi_run *run)
{
	/*
	 * RELAXED: only this thread writes the slot's state. If another thread had the lane before,
	 * its last state came with the lane (E7).
	 */
	uint64_t state = twi_load_relaxed(&slot->state);

	if ((state & RUNNING) != 0)
		return false;
	/* E65: a watcher that sees one of these fields also sees the idle state before it. */
	twi_store_release(&slot->begin_ns, run->begin_ns);
	twi_store_release(&slot->node, run->handle.node);             /* E65: as above */
	twi_store_release(&slot->generation, run->handle.generation); /* E65: as above */
	twi_store_release(&slot->callback, run->kind->callback);      /* E65: as above */
	twi_store_release(&slot->arg, run->arg);                      /* E65: as above */
	twi_store_release(&slot->state, state | RUNNING); /* E65: publishes all fields */
	return true;
}

void twi_watch_begin(struct twi_run *run, int64_t now_ns)
{
	struct twi_watch_slot *slot = slot_of(run);

	run->begin_ns = now_ns;
	if (slot != NULL) {
		slot_use(run->worker->watch, slot);
		if (!slot_begin(slot, run))
			return;
	}
	run->marks |= TWI_RUN_TIMED;
}

/* Returns true if the run was slow and no watcher has reported it. */
static bool slot_end(struct twi_watch_slot *slot, bool slow)
{
	/*
	 * RELAXED, all: the fields of the next run are stored later, by releases. A watcher's swap
	 * then fails, because the state has changed.
	 */
	uint64_t state = twi_load_relaxed(&slot->state);
	uint64_t idle = (state | RUNNING | REPORTED) + 1;

	/* RELAXED: if a watcher has reported the run meanwhile, the swap fails. */
	if (slow && twi_cas_relaxed(&slot->state, &state, idle))
		return (state & REPORTED) == 0;
	/* RELAXED: as above. */
	twi_store_relaxed(&slot->state, idle);
	return false;
}

static void watch_count(struct twi_watch *watch)
{
	/* RELAXED: a count, which publishes nothing. */
	(void)twi_fetch_add_relaxed(&watch->count, 1);
}

static void report_make(const struct twi_watch *watch, struct twi_report *ret)
{
	ret->hook = watch->hook;
	ret->context = watch->context;
	ret->slow.size = sizeof ret->slow;
	ret->slow.reserved = 0;
}

static TWI_COLD void run_found_slow(const struct twi_run *run, int64_t run_ns)
{
	struct twi_watch *watch = run->worker->watch;
	struct twi_report report;

	watch_count(watch);
	report_make(watch, &report);
	report.slow.handle = run->handle;
	report.slow.callback = run->kind->callback;
	report.slow.arg = run->arg;
	report.slow.run_ns = run_ns;
	report.slow.running = 0;
	twi_report_deliver(&report);
}

int64_t twi_watch_end(const struct twi_run *run, int64_t now_ns)
{
	const struct twi_worker *worker = run->worker;
	struct twi_watch_slot *slot = slot_of(run);
	int64_t run_ns = now_ns - run->begin_ns;
	bool slow = run_ns > worker->watch->slow_ns;

	if (slot != NULL)
		slow = slot_end(slot, slow);
	if (TWI_LIKELY(!slow))
		return now_ns;
	run_found_slow(run, run_ns);
	/* The clock is read again, because the hook's time must not count as part of a run. */
	return twi_clock_now_ns(worker->clock);
}

void twi_report_deliver(const struct twi_report *report)
{
	int cancel_state;

	if (report->hook == NULL)
		return;
	/* The thread is inside a call that must not be a cancellation point. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	twi_handle_acquire(report->slow.handle);
	report->hook(report->context, &report->slow);
	(void)pthread_setcancelstate(cancel_state, NULL);
}

/*
 * Returns the time for a check of running callbacks. Reads the clock at most once, and only if a
 * callback runs.
 */
static int64_t now_once(const struct twi_worker *worker, int64_t *now_ns)
{
	if (*now_ns == INT64_MIN)
		*now_ns = twi_clock_now_ns(worker->clock);
	return *now_ns;
}

/*
 * Returns whether the run of a slot takes too long. `state`: the state of the slot. Stores the
 * run's duration in *ret_run_ns.
 */
static bool slot_slow(const struct twi_worker *worker, const struct twi_watch_slot *slot,
		      uint64_t state, int64_t *now_ns, int64_t *ret_run_ns)
{
	if ((state & RUNNING) == 0)
		return false;
	/* E65: if this is the beginning of a later run, the swap will fail. */
	*ret_run_ns = now_once(worker, now_ns) - twi_load_acquire(&slot->begin_ns);
	return *ret_run_ns > worker->watch->slow_ns;
}

/* Returns true if this thread must report the run. The run is then counted. */
static bool slot_claim(struct twi_watch *watch, struct twi_watch_slot *slot, uint64_t state,
		       struct twi_report *ret)
{
	report_make(watch, ret);
	ret->slow.running = 1;
	/* E65, all: if one of these is a field of a later run, the swap fails. */
	ret->slow.handle.node = twi_load_acquire(&slot->node);
	ret->slow.handle.generation = twi_load_acquire(&slot->generation); /* E65: as above */
	ret->slow.callback = twi_load_acquire(&slot->callback);            /* E65: as above */
	ret->slow.arg = twi_load_acquire(&slot->arg);                      /* E65: as above */
	/* RELAXED: the loads before the swap acquire, and only one swap succeeds. */
	if ((state & REPORTED) != 0 || !twi_cas_relaxed(&slot->state, &state, state | REPORTED))
		return false;
	watch_count(watch);
	return true;
}

/*
 * Returns whether the slot still holds the run that was checked, reported or not. If it does not,
 * the run must not count as slow.
 */
static bool slot_still(const struct twi_watch_slot *slot, uint64_t state)
{
	/* RELAXED: the loads before this one acquire. */
	return (twi_load_relaxed(&slot->state) | REPORTED) == (state | REPORTED);
}

/* Takes the lowest bit out of `used`. Returns the slot of that bit, which is in use. */
static struct twi_watch_slot *slot_next(struct twi_watch *watch, uint64_t *used)
{
	struct twi_watch_slot *slot = &watch->slot[__builtin_ctzll(*used)];

	*used &= *used - 1;
	return slot;
}

int twi_watch_look(struct twi_worker *worker)
{
	struct twi_watch *watch = worker->watch;
	/* RELAXED: a slot that was never used before is seen the next time. */
	uint64_t used = twi_load_relaxed(&watch->used);
	int64_t now_ns = INT64_MIN;
	struct twi_report report;
	int count = 0;

	while (used != 0) {
		struct twi_watch_slot *slot = slot_next(watch, &used);
		uint64_t state = twi_load_acquire(&slot->state); /* E65: pairs with slot_begin */

		if (!slot_slow(worker, slot, state, &now_ns, &report.slow.run_ns))
			continue;
		if (slot_claim(watch, slot, state, &report))
			twi_report_deliver(&report);
		else if (!slot_still(slot, state))
			continue;
		count++;
	}
	return count;
}

TWI_COLD bool twi_watch_claim(struct twi_worker *worker, struct twi_report *ret)
{
	struct twi_watch *watch = worker->watch;
	/* RELAXED: as above. */
	uint64_t used = twi_load_relaxed(&watch->used);
	int64_t now_ns = INT64_MIN;

	while (used != 0) {
		struct twi_watch_slot *slot = slot_next(watch, &used);
		uint64_t state = twi_load_acquire(&slot->state); /* E65: pairs with slot_begin */

		if (slot_slow(worker, slot, state, &now_ns, &ret->slow.run_ns) &&
		    slot_claim(watch, slot, state, ret))
			return true;
	}
	return false;
}

uint64_t twi_watch_count(const struct twi_worker *worker)
{
	/* RELAXED: a count, which publishes nothing. */
	return worker->watch != NULL ? twi_load_relaxed(&worker->watch->count) : 0;
}
