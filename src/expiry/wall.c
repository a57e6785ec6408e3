/* SPDX-License-Identifier: MIT */
#include "expiry/wall.h"

#include "base/tick.h"
#include "expiry/slack.h"
#include "memory/memory.h"
#include "timeout/id.h"
#include "worker/at_once.h"
#include "worker/role.h"

#include <string.h>

enum {
	/* The lowest bit of a deadline. If it is set, the timeout is in the list. */
	LISTED = 1,
	/*
	 * How many timeouts a turn files again. That takes about 0.1 ms; other due timeouts must
	 * not wait longer.
	 */
	SLICE = 1024,
	/*
	 * How many entries are checked for each one added, so that at most half of all have ended.
	 */
	SCAVENGED = 2,
	ROOM_MIN = 512,
	/*
	 * How often the clocks' difference is measured at most, if interruptions spoil the
	 * measurements.
	 */
	MEASURED_MOST = 16,
};

/* How often the worker checks a timeout that it could not list for lack of memory. */
#define UNLISTED_NS INT64_C(100000000)

/* A measurement of the clocks' difference is good enough if it took no longer than this. */
#define MEASURED_WELL_NS INT64_C(1000)

/*
 * Returns the entry of a timeout: its block's index and 32 bits of its generation. If an entry
 * matches another timeout by chance, that does no harm, because the worker reads the date from the
 * node.
 */
static uint64_t entry_of(struct twi_node *node, uint64_t word)
{
	return (uint64_t)twi_block_index(node) << 32 | (uint32_t)(word / TWI_WORD_GENERATION);
}

bool twi_wall_chain_is(struct twi_chain *chain, uint64_t word)
{
	return (word & (TWI_WORD_CHAIN | TWI_WORD_RESCHEDULED)) == TWI_WORD_PERIODIC &&
	       twi_rule_mode(twi_chain_rule(chain)) == TWI_RULE_WALL;
}

bool twi_wall_is(struct twi_node *node, uint64_t word)
{
	return twi_wall_chain_is(twi_node_chain(node), word);
}

/* Returns whether the timeout waits in the wheel for a date. */
static bool waits(struct twi_node *node, uint64_t word)
{
	return twi_word_state(word) == TWI_WORD_WHEELED && twi_wall_is(node, word);
}

int64_t twi_wall_first_ns(const struct twi_worker *worker)
{
	/*
	 * Even with the mark "listed" (LISTED), the deadline must lie before the beginning of the
	 * present tick.
	 */
	return (twi_at_once_ns(worker) - LISTED) & ~(int64_t)LISTED;
}

/*
 * Reads the engine's clock before and after the wall clock, which gives two differences. The true
 * one lies between them. Returns the smaller one, so that a deadline computed from it may be late
 * but is never early.
 */
int64_t twi_wall_ahead_ns(struct tw_clock *clock)
{
	int64_t best_ns = INT64_MAX;
	int64_t ahead_ns = 0;

	for (int i = 0; i < MEASURED_MOST && best_ns > MEASURED_WELL_NS; i++) {
		int64_t before_ns = twi_clock_now_ns(clock);
		int64_t wall_ns = twi_clock_wall_ns(clock);
		int64_t after_ns = twi_clock_now_ns(clock);

		if (after_ns - before_ns >= best_ns)
			continue;
		best_ns = after_ns - before_ns;
		ahead_ns = wall_ns - after_ns;
	}
	return ahead_ns;
}

int64_t twi_wall_deadline_ns(int64_t wall_ns, int64_t ahead_ns)
{
	int64_t deadline_ns;

	if (wall_ns == TW_NEVER)
		return TW_NEVER;
	if (__builtin_sub_overflow(wall_ns, ahead_ns, &deadline_ns))
		return wall_ns > 0 ? TW_NEVER : TWI_LONG_PAST_NS;
	return deadline_ns;
}

int64_t twi_wall_chain_ns(const struct twi_worker *worker, struct twi_chain *chain)
{
	return twi_wall_deadline_ns(twi_chain_period_ns(chain), twi_wall_ahead_ns(worker->clock));
}

/* Returns the deadline by which a timeout with a date is filed. */
static TWI_WORKER_ONLY int64_t filed_ns(const struct twi_worker *worker, struct twi_node *node)
{
	struct twi_chain *chain = twi_node_chain(node);
	int64_t deadline_ns =
		twi_wall_deadline_ns(twi_chain_period_ns(chain), twi_wall_of(worker)->ahead_ns);
	/*
	 * Not read from the kind: another thread may cancel the timeout meanwhile, and then the
	 * program may free the kind.
	 */
	uint64_t slack_ns = twi_rule_slack_ns(twi_chain_rule(chain));

	if (deadline_ns <= twi_clock_now_ns(worker->clock))
		return twi_wall_first_ns(worker);
	return slack_ns != 0 ? twi_slacken(worker, deadline_ns, slack_ns) : deadline_ns;
}

/*
 * Sets the deadline by which the timeout is filed (the linearization point of a filing). Returns
 * false if another thread has changed the timeout.
 */
static bool deadline_set(struct twi_node *node, uint64_t word, int64_t seen_ns, int64_t deadline_ns)
{
	struct twi_pair seen = {{word, (uint64_t)seen_ns}};
	struct twi_pair next = {{word, (uint64_t)deadline_ns}};

	TWI_TEST_POINT("wall:seen");
	/*
	 * E4: releases the deadline to threads that read it with this state word; acquires the
	 * writes of a thread that made the swap fail.
	 */
	return twi_cas_pair_acq_rel(&node->word, seen, next);
}

/* Makes the list longer. Returns false if there is no memory. */
static TWI_WORKER_ONLY bool list_grow(struct twi_wall *wall)
{
	const struct tw_allocator *allocator = wall->allocator;
	size_t room = wall->listed_room == 0 ? ROOM_MIN : 2 * wall->listed_room;
	uint64_t *listed = twi_allocate(allocator, room * sizeof *listed, TWI_CACHE_LINE);

	if (listed == NULL)
		return false;
	if (wall->listed != NULL) {
		memcpy(listed, wall->listed, wall->listed_count * sizeof *listed);
		twi_release(allocator, wall->listed, wall->listed_room * sizeof *listed,
			    TWI_CACHE_LINE);
	}
	wall->listed = listed;
	wall->listed_room = room;
	return true;
}

/*
 * Returns whether an entry can be dropped: its timeout has ended, or was rescheduled and no longer
 * depends on the wall clock.
 */
static bool entry_over(const struct twi_worker *worker, uint64_t entry)
{
	struct twi_node *node = twi_block_at((uint32_t)(entry >> 32));
	/* RELAXED: an end is final. If it is not visible yet, the entry is dropped later. */
	uint64_t word = twi_load_relaxed(&node->word);
	enum twi_word_state state = twi_word_state(word);

	return entry_of(node, word) != entry || state == TWI_WORD_CANCELLED ||
	       state == TWI_WORD_EXPIRED || (word & TWI_WORD_RESCHEDULED) != 0 ||
	       twi_node_worker(node) != worker;
}

/*
 * Checks a few entries, and drops those that are over. Does nothing during a sweep of the list
 * (step_take), because a sweep relies on the order of the entries.
 */
static TWI_WORKER_ONLY void list_scavenge(const struct twi_worker *worker, struct twi_wall *wall)
{
	if (wall->sweep_at < wall->listed_count)
		return;
	for (int i = 0; i < SCAVENGED && wall->listed_count > 0; i++) {
		if (wall->scavenge_at >= wall->listed_count)
			wall->scavenge_at = 0;
		if (entry_over(worker, wall->listed[wall->scavenge_at]))
			wall->listed[wall->scavenge_at] = wall->listed[--wall->listed_count];
		else
			wall->scavenge_at++;
	}
	wall->sweep_at = wall->listed_count;
}

/* Adds the entry of a timeout. A sweep in progress will reach it, too. */
static TWI_WORKER_ONLY void list_add(struct twi_wall *wall, uint64_t entry)
{
	bool swept = wall->sweep_at == wall->listed_count;

	wall->listed[wall->listed_count++] = entry;
	if (swept)
		wall->sweep_at = wall->listed_count;
}

/* Makes space for one more entry. Returns false if there is no memory. */
static TWI_WORKER_ONLY bool list_reserve(const struct twi_worker *worker, struct twi_wall *wall)
{
	list_scavenge(worker, wall);
	return wall->listed_count < wall->listed_room || list_grow(wall);
}

/*
 * Returns the next deadline, with the mark "listed" or without, of a timeout that left the wheel
 * before its date.
 */
static TWI_WORKER_ONLY int64_t again_ns(struct twi_worker *worker, struct twi_wall *wall,
					struct twi_node *node, bool listed)
{
	int64_t deadline_ns = filed_ns(worker, node);
	int64_t soon_ns;

	/* With an earlier deadline, this turn would take the timeout out of the wheel again. */
	if (deadline_ns < worker->due_before_ns)
		deadline_ns = worker->due_before_ns;

	/*
	 * A timeout that never expires need not be listed, because no step of the wall clock makes
	 * it due.
	 */
	if (listed || deadline_ns == TW_NEVER || list_reserve(worker, wall))
		return deadline_ns | LISTED;
	soon_ns = twi_clock_now_ns(worker->clock) + UNLISTED_NS;
	deadline_ns = deadline_ns < soon_ns ? deadline_ns : soon_ns;
	/* Rounds up, because this turn must not take the timeout out of the wheel again. */
	return (deadline_ns + LISTED) & ~(int64_t)LISTED;
}

/*
 * Puts a due node back into the wheel if its date has not come. Returns false if the date has come,
 * or the node has no date.
 */
static TWI_WORKER_ONLY bool node_early(struct twi_worker *worker, struct twi_wall *wall,
				       struct twi_node *node, int64_t wall_now_ns)
{
	int64_t seen_ns, deadline_ns;
	uint64_t word;

	do {
		/* E4: the fields below are not older than this state word. */
		word = twi_load_acquire(&node->word);
		/* RELAXED: the swap decides whether the state word and the deadline belong together. */
		seen_ns = twi_load_relaxed(&node->deadline_ns);
		if (!waits(node, word) || twi_chain_period_ns(twi_node_chain(node)) <= wall_now_ns)
			return false;
		deadline_ns = again_ns(worker, wall, node, (seen_ns & LISTED) != 0);
	} while (!deadline_set(node, word, seen_ns, deadline_ns));
	if ((seen_ns & LISTED) == 0 && (deadline_ns & LISTED) != 0 && deadline_ns != TW_NEVER)
		list_add(wall, entry_of(node, word));
	twi_wheel_insert(worker->wheel, node);
	return true;
}

bool twi_wall_look(struct twi_worker *worker, struct twi_wall *wall)
{
	int64_t wall_now_ns = twi_clock_wall_ns(worker->clock);
	size_t kept = 0;

	for (size_t at = 0; at < worker->due_count; at++) {
		struct twi_node *node = worker->due[at];

		if (!node_early(worker, wall, node, wall_now_ns))
			worker->due[kept++] = node;
	}
	worker->due_count = kept;
	return kept > 0;
}

/* Files a listed timeout again if the step of the wall clock has made its deadline earlier. */
static TWI_WORKER_ONLY void entry_refile(struct twi_worker *worker, uint64_t entry)
{
	struct twi_node *node = twi_block_at((uint32_t)(entry >> 32));
	int64_t seen_ns, deadline_ns;
	uint64_t word;

	do {
		/* E4: as in node_early. */
		word = twi_load_acquire(&node->word);
		/* RELAXED: as in node_early. */
		seen_ns = twi_load_relaxed(&node->deadline_ns);
		if (entry_of(node, word) != entry || twi_node_worker(node) != worker ||
		    !waits(node, word))
			return;
		deadline_ns = filed_ns(worker, node) | LISTED;
		if (deadline_ns >= seen_ns)
			return;
	} while (!deadline_set(node, word, seen_ns, deadline_ns));
	twi_wheel_remove(worker->wheel, node);
	twi_wheel_insert(worker->wheel, node);
}

/*
 * Checks whether the wall clock was stepped. A step forward begins a sweep, or restarts a sweep
 * that is under way. A step back needs no sweep, because twi_wall_look puts back the timeouts that
 * are then early.
 */
static TWI_WORKER_ONLY void step_take(struct twi_worker *worker, struct twi_wall *wall)
{
	int64_t before_ns = wall->ahead_ns;
	/* E8: the clock that is read below shows all steps of this count. */
	uint32_t steps = twi_load_acquire(wall->steps);

	if (steps == wall->steps_seen)
		return;
	wall->steps_seen = steps;
	wall->ahead_ns = twi_wall_ahead_ns(worker->clock);
	if (wall->ahead_ns > before_ns)
		wall->sweep_at = 0;
}

bool twi_wall_turn(struct twi_worker *worker, struct twi_wall *wall)
{
	size_t end;

	step_take(worker, wall);
	if (wall->sweep_at == wall->listed_count)
		return false;
	end = wall->listed_count - wall->sweep_at > SLICE ? wall->sweep_at + SLICE
							  : wall->listed_count;
	while (wall->sweep_at < end)
		entry_refile(worker, wall->listed[wall->sweep_at++]);
	return true;
}
