/* SPDX-License-Identifier: MIT */
/*
 * Expiry. Due timeouts leave the wheel in small batches, and each one runs if its compare-and-swap
 * wins. If a reschedule has made a timeout later, it goes back into the wheel.
 *
 * The batch is kept in the worker while callbacks run. A callback may therefore cancel other
 * timeouts of the batch, stop the engine or end the thread. For a timeout that was cancelled, the
 * worker's compare-and-swap fails. If the thread ends, the rest of the batch is still there for the
 * thread that continues.
 */
#include "expiry/expire.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "expiry/due.h"
#include "expiry/periodic.h"
#include "expiry/run.h"
#include "expiry/slow.h"
#include "expiry/wall.h"
#include "ingress/push.h"
#include "worker/left.h"
#include "worker/role.h"

enum {
	/* How many runs ahead a chain's second block is prefetched. */
	CHAINS_AHEAD = 4,
};

/*
 * Changes the state word, if the deadline is still the one that was read. Returns false if a cancel
 * or a reschedule came first.
 */
static bool word_expire(struct twi_node *node, uint64_t word, int64_t deadline_ns,
			enum twi_word_state to)
{
	struct twi_pair seen = {{word, (uint64_t)deadline_ns}};
	struct twi_pair next = {{twi_word_to(word, to), (uint64_t)deadline_ns}};

	if (twi_word_state(word) == TWI_WORD_OWNED) {
		/* RELAXED: only the owner changes the state word of an owner-only timeout. */
		twi_store_relaxed(&node->word, twi_word_to(word, to));
		return true;
	}
	TWI_TEST_POINT("expire:seen");
	/*
	 * RELAXED: only one swap succeeds. If the timeout's first reschedule came meanwhile, it has
	 * changed the state word, so this swap fails.
	 */
	if (TWI_LIKELY((word & TWI_WORD_RESCHEDULED) == 0))
		return twi_cas_relaxed(&node->word, &word, twi_word_to(word, to));
	/* E4: acquires the writes that came before the reschedule. */
	return twi_cas_pair_acquire(&node->word, seen, next);
}

/*
 * Changes the state of a timeout in the wheel to `to` (the linearization point of an expiry).
 * Returns false if a cancel came first: the canceller pushes the node, and reclaim frees it. Also
 * returns false if a reschedule has made the timeout later: it is then back in the wheel.
 */
static TWI_ALWAYS_INLINE TWI_WORKER_ONLY bool node_expire(struct twi_worker *worker,
							  struct twi_node *node,
							  enum twi_word_state to,
							  uint64_t *ret_word)
{
	int64_t deadline_ns;
	uint64_t word;

	do {
		/*
		 * RELAXED: the swap decides. It fails if state word and deadline do not belong
		 * together.
		 */
		word = twi_load_relaxed(&node->word);
		/* RELAXED: as above. */
		deadline_ns = twi_load_relaxed(&node->deadline_ns);
		*ret_word = word;
		if (twi_word_state(word) != TWI_WORD_WHEELED &&
		    twi_word_state(word) != TWI_WORD_OWNED)
			return false;
		if (TWI_UNLIKELY(deadline_ns >= worker->due_before_ns)) {
			twi_wheel_insert(worker->wheel, node);
			return false;
		}
	} while (TWI_UNLIKELY(!word_expire(node, word, deadline_ns, to)));
	TWI_PROBE5(expire, worker, node, twi_word_generation(word), deadline_ns,
		   worker->run_from_ns);
	return true;
}

/*
 * Counts runs of chains, which do not end their timeouts. The poll's budget is a bound on
 * expired_count, so each of these runs lowers the bound by 1 instead.
 */
static TWI_WORKER_ONLY void chain_runs_count(struct twi_worker *worker, uint64_t count)
{
	twi_count_add(&worker->periodic_run_count, count);
	if (TWI_LIKELY(worker->expire_stop == UINT64_MAX))
		return;
	worker->expire_stop -= count < worker->expire_stop ? count : worker->expire_stop;
	if (worker->expire_end != UINT64_MAX)
		worker->expire_end -= count < worker->expire_end ? count : worker->expire_end;
}

/*
 * Prefetches the second block of a chain that will run soon, because otherwise its run would miss
 * the cache a second time. For a timeout that is no chain the prefetch is useless but harmless.
 */
static TWI_WORKER_ONLY void chain_ask(const struct twi_worker *worker)
{
	size_t at = worker->due_at + CHAINS_AHEAD;

	if (at < worker->due_count)
		/* RELAXED: only a hint. */
		TWI_PREFETCH_WRITE(twi_load_relaxed(&worker->due[at]->arg));
}

static TWI_NOINLINE TWI_WORKER_ONLY void chain_run(struct twi_worker *worker, struct twi_node *node,
						   uint64_t word)
{
	chain_runs_count(worker, 1);
	chain_ask(worker);
	twi_chain_run(worker, worker->self, node, word);
}

static TWI_WORKER_ONLY void node_run(struct twi_worker *worker, struct twi_node *node)
{
	struct twi_run run;
	uint64_t word;

	if (!node_expire(worker, node, TWI_WORD_RUNNING, &word))
		return;
	if (TWI_UNLIKELY((word & TWI_WORD_PERIODIC) != 0)) {
		chain_run(worker, node, word);
		return;
	}
	twi_count_add(&worker->expired_count, 1);
	run.worker = worker;
	run.thread = worker->self;
	run.node = node;
	run.handle = (struct tw_handle){.node = node, .generation = twi_word_generation(word)};
	run.kind = twi_node_kind(node);
	run.arg = twi_node_arg(node);
	twi_run(&run);
}

/*
 * Returns whether the bound on memory is reached. Expiry must stop there even in a backlog, so that
 * the worker takes entries from ingress in between.
 */
static bool units_full(const struct twi_worker *worker)
{
	/* RELAXED: only a hint, because the last look before a sleep reads it again. */
	return twi_load_relaxed(&worker->units_pending) >= TWI_UNITS_MAX;
}

/* Extends the poll by one timeout, if the poll is bounded in time and has time left. */
static TWI_COLD TWI_WORKER_ONLY bool budget_renew(struct twi_worker *worker)
{
	/* RELAXED: only the worker writes expired_count. */
	uint64_t expired = twi_load_relaxed(&worker->expired_count);

	if (expired >= worker->expire_end ||
	    twi_clock_now_ns(worker->clock) >= worker->expire_until_ns)
		return false;
	worker->expire_stop = expired + 1;
	return true;
}

static TWI_WORKER_ONLY bool budget_left(struct twi_worker *worker)
{
	/* RELAXED: only the worker writes expired_count. */
	return TWI_LIKELY(twi_load_relaxed(&worker->expired_count) < worker->expire_stop) ||
	       budget_renew(worker);
}

/*
 * Returns false if the engine was stopped, a callback has forked, or the bound on memory is
 * reached.
 */
static bool work_goes_on(const struct twi_worker *worker)
{
	return twi_worker_open(worker) && !units_full(worker);
}

static TWI_WORKER_ONLY bool go_on(struct twi_worker *worker)
{
	return budget_left(worker) && work_goes_on(worker);
}

/*
 * Returns how many timeouts a batch may hold. It is not much more than the poll's budget, because
 * the timeouts beyond the budget would have to go back into the wheel.
 */
static TWI_WORKER_ONLY size_t batch_capacity(const struct twi_worker *worker)
{
	/* RELAXED: only the worker writes expired_count. */
	uint64_t budget = worker->expire_end - twi_load_relaxed(&worker->expired_count);

	if (TWI_LIKELY(budget >= TWI_DUE_BATCH))
		return TWI_DUE_BATCH;
	return budget < TWI_CHUNK_ENTRIES ? TWI_CHUNK_ENTRIES : (size_t)budget;
}

static TWI_WORKER_ONLY void batch_run(struct twi_worker *worker)
{
	do
		node_run(worker, worker->due[worker->due_at++]);
	while (worker->due_at < worker->due_count && go_on(worker));
}

void twi_worker_due_put_back(struct twi_worker *worker)
{
	twi_wheel_put_back(worker->wheel, &worker->due[worker->due_at],
			   worker->due_count - worker->due_at);
	worker->due_at = worker->due_count;
}

TWI_COLD bool twi_due_remove(struct twi_worker *worker, const struct twi_node *node)
{
	struct twi_node **due = worker->due;
	size_t at = worker->due_at;

	while (at < worker->due_count && due[at] != node)
		at++;
	if (at == worker->due_count)
		return false;
	worker->due_count--;
	for (; at < worker->due_count; at++)
		due[at] = due[at + 1];
	return true;
}

/*
 * Returns the next free place in the batch. Timeouts for the hook fill it from the front, and
 * timeouts that the hook must not get fill it from the end.
 */
static TWI_WORKER_ONLY struct tw_due *due_place(struct twi_worker *worker,
						const struct tw_kind *kind)
{
	if (TWI_UNLIKELY((kind->flags & TW_KIND_FLAG_INLINE) != 0))
		return &worker->dispatched[TWI_DUE_BATCH - ++worker->inlined_count];
	return &worker->dispatched[worker->dispatched_count++];
}

static TWI_WORKER_ONLY void due_make(struct twi_worker *worker, struct twi_node *node,
				     uint64_t word)
{
	const struct tw_kind *kind = twi_node_kind(node);

	*due_place(worker, kind) = (struct tw_due){
		.handle = {.node = node, .generation = twi_word_generation(word)},
		.kind = kind,
		.arg = (word & TWI_WORD_PERIODIC) != 0 ? twi_chain_arg(twi_node_chain(node))
						       : twi_node_arg(node),
	};
}

/*
 * Builds the batch for the dispatch hook. Returns how many timeouts expired, including those that
 * the hook does not get.
 */
static TWI_WORKER_ONLY size_t batch_gather(struct twi_worker *worker)
{
	size_t chains = 0;
	size_t count;
	uint64_t word;

	worker->dispatched_at = worker->dispatched_count = 0;
	worker->inlined_at = worker->inlined_count = 0;
	worker->wheel->rejected_after = NULL;
	while (worker->due_at < worker->due_count) {
		struct twi_node *node = worker->due[worker->due_at++];

		if (!node_expire(worker, node, TWI_WORD_DUE, &word))
			continue;
		due_make(worker, node, word);
		chains += (word & TWI_WORD_PERIODIC) != 0;
	}
	count = worker->dispatched_count + worker->inlined_count;
	twi_count_add(&worker->expired_count, count - chains);
	if (TWI_UNLIKELY(chains > 0))
		chain_runs_count(worker, chains);
	return count;
}

/*
 * Offers the batch to the hook. If the hook ends the thread, all timeouts in `dispatched` count as
 * rejected, and the finisher continues with them.
 */
static TWI_WORKER_ONLY void batch_offer(struct twi_worker *worker)
{
	size_t count = worker->dispatched_count;
	size_t accepted = worker->dispatch(worker->dispatch_context, worker->dispatched, count);

	worker->dispatched_at = accepted < count ? accepted : count;
}

/*
 * Offers the due timeouts to the hook. A timeout that the hook does not accept either ends here or
 * becomes pending again, so none is lost. If a callback ends the thread here, the finisher
 * continues with the rest. If an executor has kept a timeout that the hook did not accept, only the
 * thread that claims it first runs it.
 */
static TWI_WORKER_ONLY void batch_dispatch(struct twi_worker *worker)
{
	size_t count = batch_gather(worker);

	if (count == 0)
		return;
	/*
	 * RELAXED: only the threads that run these timeouts subtract from the count. The hook
	 * passes the timeouts to them after this addition.
	 */
	(void)twi_fetch_add_relaxed(&worker->in_flight, (uint32_t)count);
	if (worker->dispatched_count > 0)
		batch_offer(worker);
	if (TWI_UNLIKELY(worker->watch != NULL))
		(void)twi_watch_look(worker);
	twi_worker_rejected_end(worker);
}

static TWI_WORKER_ONLY void rejected_end(struct twi_worker *worker, const struct tw_due *due)
{
	twi_count_add(&worker->executor_rejected_count, 1);
	if (worker->rejection == TW_REJECTION_DROP)
		twi_due_drop(due);
	else if (worker->rejection != TW_REJECTION_REQUEUE || !twi_due_again(due))
		(void)twi_due_run(due);
}

void twi_worker_rejected_end(struct twi_worker *worker)
{
	while (worker->dispatched_at < worker->dispatched_count)
		rejected_end(worker, &worker->dispatched[worker->dispatched_at++]);
	while (worker->inlined_at < worker->inlined_count)
		(void)twi_due_run(&worker->dispatched[TWI_DUE_BATCH - ++worker->inlined_at]);
}

/* Handles a batch if the engine has a dispatch hook, or had a timeout with a date. */
static TWI_NOINLINE TWI_WORKER_ONLY void batch_marked(struct twi_worker *worker)
{
	struct twi_wall *wall = twi_wall_of(worker);

	if (wall != NULL && !twi_wall_look(worker, wall))
		return;
	if (worker->dispatch != NULL)
		batch_dispatch(worker);
	else
		batch_run(worker);
}

/*
 * Returns the last tick that was over in the present turn. If the wheel is open (wheel/fine.h), an
 * advance also reaches the present tick, which is not over.
 */
static TWI_WORKER_ONLY uint64_t tick_over(const struct twi_worker *worker)
{
	bool open = worker->wheel->open && worker->due_limit > 0;

	return worker->due_limit - open;
}

/*
 * Counts the ticks that were already over when the worker reached them: from the first tick with a
 * due timeout to this turn's tick. `before` is the last tick that was over in the turn before.
 * RELAXED: the worker is the only writer.
 */
static TWI_WORKER_ONLY void catch_up_note(struct twi_worker *worker, uint64_t before)
{
	uint64_t due_tick = twi_wheel_due_tick(worker->wheel, worker->due[0]);
	uint64_t over = tick_over(worker);

	/*
	 * If the timeout was scheduled for a past tick, only the ticks since the turn before count.
	 */
	if (due_tick <= before)
		due_tick = before + 1;
	if (due_tick < over)
		twi_count_add(&worker->catch_up_tick_count, over - due_tick);
}

/*
 * Measures lateness once per batch, by the first timeout, which belongs to the batch's first tick.
 * RELAXED: the worker is the only writer.
 */
static TWI_WORKER_ONLY void lateness_note(struct twi_worker *worker)
{
	int64_t now_ns = twi_clock_now_ns(worker->clock);
	int64_t late_by_ns = now_ns - twi_node_deadline_ns(worker->due[0]);

	worker->run_from_ns = now_ns;
	if (TWI_UNLIKELY(late_by_ns > twi_load_relaxed(&worker->latest_ns)))
		twi_store_relaxed(&worker->latest_ns, late_by_ns);
}

unsigned twi_worker_expire(struct twi_worker *worker, uint64_t limit)
{
	struct twi_due_batch batch = {.node = worker->due, .capacity = batch_capacity(worker)};
	uint64_t before = tick_over(worker);

	worker->due_before_ns = twi_wheel_due_before_ns(worker->wheel, limit);
	worker->due_limit = limit;
	for (;;) {
		if (TWI_UNLIKELY(!budget_left(worker)))
			return TWI_LEFT_BUDGET;
		twi_wheel_advance(worker->wheel, limit, &batch);
		worker->due_at = 0;
		worker->due_count = batch.count;
		if (batch.count == 0)
			return TWI_LEFT_NOTHING;
		lateness_note(worker);
		if (TWI_UNLIKELY(limit > before + 1))
			catch_up_note(worker, before);
		before = tick_over(worker);
		/* RELAXED: see mark.h. */
		if ((twi_load_relaxed(&worker->marks) & (TWI_MARK_DISPATCH | TWI_MARK_WALL)) != 0)
			batch_marked(worker);
		else
			batch_run(worker);
		if (TWI_UNLIKELY(!go_on(worker))) {
			twi_worker_due_put_back(worker);
			return work_goes_on(worker) ? TWI_LEFT_BUDGET : TWI_LEFT_MORE;
		}
	}
}
