/* SPDX-License-Identifier: MIT */
/* The public functions that read a timeout, and those for handles. */
#include "base/atomic.h"
#include "base/sized.h"
#include "engine/misuse.h"
#include "expiry/wall.h"
#include "thread/rcu.h"
#include "timeout/chain.h"
#include "timeout/recovery.h"
#include "worker/role.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <tickwheel/name.h>
#include <tickwheel/timeout.h>

static enum tw_state state_of(uint64_t word)
{
	switch (twi_word_state(word)) {
	case TWI_WORD_INIT:
	case TWI_WORD_LINKED:
	case TWI_WORD_WHEELED:
	case TWI_WORD_OWNED:
		return TW_STATE_INIT;
	case TWI_WORD_CANCELLED:
		return TW_STATE_CANCELLED;
	case TWI_WORD_DUE:
	case TWI_WORD_RUNNING:
		if ((word & TWI_WORD_CHAIN) == TWI_WORD_PERIODIC)
			return TW_STATE_INIT;
		break;
	case TWI_WORD_EXPIRED:
		break;
	}
	return twi_word_stopped(word) ? TW_STATE_CANCELLED : TW_STATE_EXPIRED;
}

static int handle_check(struct tw_handle handle)
{
	if (!twi_handle_sane(handle))
		return twi_misuse_handle(handle);
	return twi_handle_of_parent(handle) ? -ECHILD : 0;
}

int tw_timeout_state(struct tw_handle handle)
{
	int error = handle_check(handle);
	uint64_t word;

	if (error != 0)
		return error;
	/*
	 * E4: if the timeout was cancelled, acquires the canceller's earlier writes.
	 * TW_STATE_EXPIRED does not mean that the callback has ended.
	 */
	word = twi_load_acquire(&twi_node_of_handle(handle)->word);
	if (!twi_word_pending(word))
		twi_handle_acquire(handle);
	return twi_word_same(word, handle.generation) ? (int)state_of(word) : -ESTALE;
}

/*
 * Reads a deadline and a state word that belong to the same moment. If the state is the same before
 * and after the deadline was read, it did not change in between, because a timeout rarely enters a
 * state twice. There are two exceptions. A timeout that an executor rejected waits again, but with
 * the same deadline. A chain waits again after each run, so the state word that is returned may
 * belong to a later wait than the deadline.
 */
static uint64_t deadline_read(struct twi_node *node, int64_t *ret_deadline_ns)
{
	uint64_t before, word;

	/* E4: the deadline that is read next is not older than this state word. */
	word = twi_load_acquire(&node->word);
	do {
		before = word;
		*ret_deadline_ns = twi_node_deadline_ns(node);
		/*
		 * E4: as above. If the word still has the handle's generation, all fields that were
		 * read before belong to this timeout.
		 */
		word = twi_load_acquire(&node->word);
	} while (twi_word_state(word) != twi_word_state(before));
	return word;
}

static bool chain_alive(uint64_t word)
{
	return twi_word_pending(word) || twi_word_running(word);
}

/*
 * Replaces the chain's block in `*ret_arg` by the user's argument. Returns false if the chain has
 * ended since the state word was read, because the block may then belong to another chain.
 */
static bool chain_arg_read(struct twi_node *node, uint64_t word, void **ret_arg)
{
	struct twi_chain *chain = *ret_arg;
	uint64_t after;

	*ret_arg = NULL;
	if (!chain_alive(word))
		return true;
	*ret_arg = twi_chain_arg(chain);
	/* E4: this state word is not older than the argument. */
	after = twi_load_acquire(&node->word);
	return twi_word_same(word, after) && chain_alive(after);
}

/*
 * If the timeout waits for a date of the wall clock, sets `seen->deadline_ns` to the engine's time
 * at that date. Returns false if the timeout has ended meanwhile, because the date may then be
 * another chain's.
 */
static bool wall_deadline_read(struct tw_handle handle, struct tw_timeout *seen)
{
	struct twi_node *node = twi_node_of_handle(handle);
	const struct twi_worker *worker;
	struct twi_chain *chain;
	bool read = true;
	uint64_t word;

	twi_rcu_enter(); /* E10: stop does not let the engine of a pending timeout be freed. */
	/*
	 * E4: worker and chain must be read before the state word. If they belong to a later
	 * timeout, the word shows it.
	 */
	worker = twi_node_worker(node);
	chain = twi_node_arg(node);
	word = twi_load_acquire(&node->word); /* E4: as above. */
	if (twi_word_same(word, handle.generation) && twi_word_pending(word) &&
	    twi_wall_chain_is(chain, word)) {
		seen->deadline_ns = twi_wall_chain_ns(worker, chain);
		/* E4: this state word is not older than the date. */
		read = twi_load_acquire(&node->word) == word;
	}
	twi_rcu_leave();
	return read;
}

/* Reads all fields except the size. Returns the state word that belongs to them. */
static uint64_t node_read(struct twi_node *node, struct tw_timeout *seen)
{
	uint64_t word;

	seen->engine = twi_node_engine(node);
	seen->kind = twi_node_kind(node);
	seen->arg = twi_node_arg(node);
	word = deadline_read(node, &seen->deadline_ns);
	seen->state = state_of(word);
	return word;
}

/*
 * Returns the engine that users know instead of `engine` (twi_engine_front). The engine of an ended
 * timeout may be freed, so this function reads the engine only while the timeout is alive.
 */
static struct tw_engine *front_read(struct tw_handle handle, struct tw_engine *engine)
{
	struct twi_node *node = twi_node_of_handle(handle);
	uint64_t word;

	twi_rcu_enter(); /* E10: stop does not let the engine of a pending timeout be freed. */
	/*
	 * E4: `engine` was read before this state word. So if the word belongs to the timeout,
	 * `engine` does, too.
	 */
	word = twi_load_acquire(&node->word);
	if (twi_word_same(word, handle.generation) && chain_alive(word))
		engine = twi_engine_front(engine);
	twi_rcu_leave();
	return engine;
}

int tw_timeout_get(struct tw_handle handle, struct tw_timeout *ret_timeout)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct tw_timeout seen = {.size = sizeof seen};
	int error = handle_check(handle);
	uint64_t word;

	if (error != 0)
		return error;
	if (ret_timeout == NULL || ret_timeout->size < sizeof seen ||
	    ret_timeout->size > TWI_STRUCT_BYTES_MAX)
		return -EINVAL;
	do {
		word = node_read(node, &seen);
		if (!twi_word_same(word, handle.generation))
			return -ESTALE;
	} while ((word & TWI_WORD_CHAIN) != 0 &&
		 !(wall_deadline_read(handle, &seen) && chain_arg_read(node, word, &seen.arg)));
	seen.engine = front_read(handle, seen.engine);
	seen.size = ret_timeout->size;
	twi_copy_out(ret_timeout, seen.size, &seen, sizeof seen);
	return 0;
}

/* Returns the text for a timeout that cannot be read. */
static const char *unreadable(int error)
{
	switch (error) {
	case -ECHILD:
		return "the parent's";
	case -ESTALE:
		return "ended";
	default:
		return "none";
	}
}

static int deadline_text(const struct tw_timeout *seen, char *deadline, size_t bytes)
{
	if (seen->deadline_ns == TW_NEVER)
		return snprintf(deadline, bytes, "never");
	return snprintf(deadline, bytes, "%" PRId64 ".%09" PRId64 " s", seen->deadline_ns / TW_S(1),
			seen->deadline_ns % TW_S(1));
}

int tw_timeout_text(struct tw_handle handle, char *buffer, size_t bytes)
{
	struct tw_timeout seen = {.size = sizeof seen};
	uint64_t generation = handle.generation / TWI_WORD_GENERATION;
	char deadline[32];
	int error;

	if (buffer == NULL && bytes != 0)
		return -EINVAL;
	error = tw_handle_is_set(handle) ? tw_timeout_get(handle, &seen) : -EINVAL;
	if (error != 0)
		return snprintf(buffer, bytes, "timeout %p.%" PRIu64 ": %s", handle.node,
				generation, unreadable(error));
	(void)deadline_text(&seen, deadline, sizeof deadline);
	return snprintf(buffer, bytes, "timeout %p.%" PRIu64 ": %s, deadline %s, kind %p, arg %p",
			handle.node, generation, tw_state_name((int)seen.state), deadline,
			(const void *)seen.kind, seen.arg);
}

/*
 * Returns whether this is a callback's run. A hand-back has a run too, but its node is NULL or, in
 * stop, the node of an ended timeout.
 */
static bool callback_runs(const struct twi_run *run)
{
	/* RELAXED: the run is this thread's own, so no other thread changes the state. */
	return run != NULL && run->node != NULL &&
	       twi_word_state(twi_load_relaxed(&run->node->word)) == TWI_WORD_RUNNING;
}

int tw_run_get(struct tw_run *ret_run)
{
	const struct twi_run *run = twi_thread_self.run;
	struct tw_run seen;

	if (ret_run == NULL || ret_run->size < sizeof seen || ret_run->size > TWI_STRUCT_BYTES_MAX)
		return -EINVAL;
	if (!callback_runs(run))
		return -EPERM;
	seen = (struct tw_run){
		.size = ret_run->size,
		.engine = twi_engine_front(twi_node_engine(run->node)),
		.kind = run->kind,
		.context = run->kind->context,
		.handle = run->handle,
		.arg = run->arg,
		.deadline_ns = twi_node_deadline_ns(run->node),
	};
	if (twi_wall_is(run->node, twi_load_relaxed(&run->node->word))) /* RELAXED: as above. */
		seen.deadline_ns = twi_wall_chain_ns(run->worker, twi_node_chain(run->node));
	seen.late_ns = twi_clock_now_ns(run->worker->clock) - seen.deadline_ns;
	twi_copy_out(ret_run, seen.size, &seen, sizeof seen);
	return 0;
}

int tw_handle_is_set(struct tw_handle handle)
{
	return handle.node != NULL || handle.generation != 0;
}

int tw_handle_equal(struct tw_handle left, struct tw_handle right)
{
	return left.node == right.node && left.generation == right.generation;
}
