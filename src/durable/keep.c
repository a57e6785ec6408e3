/* SPDX-License-Identifier: MIT */
/*
 * [io] Timers in memory.
 *
 * A timer may be freed, or armed again, only if the callback of its last timeout can no longer
 * begin or is over. A callback that finds the timer WAITING shows this by a step of the word. Any
 * other callback leaves no trace. So if the engine says that a callback is running, the timer goes
 * to the list `limbo`. It stays there until the engine says that the callback has ended.
 */
#include "durable/keep.h"

#include "durable/request.h"
#include "durable/run.h"
#include "durable/stage.h"
#include "thread/rcu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define SOON_NS INT64_C(5000000)

bool twi_keep_near(const struct tw_durable *set, const struct twi_durable_kind *kind,
		   struct tw_durable_id id, int64_t due_ns)
{
	const struct twi_position *cursor = &set->axes[kind->axis].cursor;

	if (set->shared)
		return twi_durable_until_ns(due_ns, set->axes[kind->axis].now_ns) <=
		       set->session.ahead_ns;
	if (due_ns != cursor->due_ns)
		return due_ns < cursor->due_ns;
	if ((int64_t)id.place != cursor->place)
		return (int64_t)id.place < cursor->place;
	return id.serial <= cursor->serial;
}

void twi_keep_add(struct tw_durable *set, struct twi_durable_timer *timer)
{
	/* A timer that has lingered is in the table already. */
	if (timer->hashed)
		return;
	twi_hash_add(set, timer);
	set->axes[timer->kind->axis].in_memory++;
	set->axes[timer->kind->axis].memory_bytes += twi_timer_bytes(timer);
}

void twi_keep_return(struct tw_durable *set, const struct twi_durable_kind *kind,
		     struct tw_durable_id id, int64_t due_ns)
{
	struct twi_axis *axis = &set->axes[kind->axis];

	/*
	 * In a shared store the timer stays claimed by this session, and the session's timers are
	 * read again after the next connection.
	 */
	if (set->shared || !twi_keep_near(set, kind, id, due_ns))
		return;
	/* Goes back to just before the timer. A serial is at least 1, so this cannot wrap. */
	axis->cursor = (struct twi_position){due_ns, (int64_t)id.place, id.serial - 1};
	axis->cut = true;
}

static void list_leave(struct tw_durable *set, struct twi_durable_timer *timer)
{
	switch ((enum twi_list)timer->on) {
	case TWI_LIST_PARKED:
		TAILQ_REMOVE(&timer->kind->parked, timer, list);
		break;
	case TWI_LIST_HELD:
		TAILQ_REMOVE(&set->held, timer, list);
		break;
	case TWI_LIST_LIMBO:
		set->limbo_count--;
		TAILQ_REMOVE(&set->limbo, timer, list);
		break;
	case TWI_LIST_NONE:
		break;
	}
	timer->on = TWI_LIST_NONE;
}

static void limbo_enter(struct tw_durable *set, struct twi_durable_timer *timer)
{
	list_leave(set, timer);
	timer->on = TWI_LIST_LIMBO;
	set->limbo_count++;
	TAILQ_INSERT_TAIL(&set->limbo, timer, list);
}

/*
 * Cancels the timeout of a timer. Returns true if the timeout's callback can no longer begin or is
 * over.
 */
static bool disarm(struct twi_durable_timer *timer)
{
	if (timer->armed && tw_cancel(timer->handle) == TW_CANCEL_RUNNING)
		return false;
	timer->armed = false;
	return true;
}

static void arm(struct tw_durable *set, struct twi_durable_timer *timer, int64_t delay_ns)
{
	/*
	 * RELAXED: a later step looks at the flag again. Timers that have not run at a close stay
	 * in the store.
	 */
	if (twi_load_relaxed(&set->closing) != 0)
		return;
	/*
	 * A parked timer may have been moved. If it stayed on the list, it would be armed again
	 * while it runs.
	 */
	list_leave(set, timer);
	/*
	 * The delay was computed with the clocks that this step has read, so it counts from
	 * engine_ns. A load may have taken long since then.
	 */
	if (!disarm(timer) ||
	    twi_run_arm(set, timer, twi_durable_shift(set->engine_ns, delay_ns)) != 0)
		limbo_enter(set, timer);
}

/*
 * Returns the delay until a timer should run. Timers that are overdue by a second or more are run
 * one after the other, catch_up_per_s of them each second. So they do not delay the timers that are
 * due now.
 */
static int64_t delay_of(struct tw_durable *set, const struct twi_durable_timer *timer)
{
	int64_t now_ns = set->axes[timer->kind->axis].now_ns;
	int64_t delay_ns = twi_durable_until_ns(timer->due_ns, now_ns);

	if (timer->due_ns > now_ns - SECOND_NS)
		return delay_ns;
	if (set->catch_up_ns < set->engine_ns)
		set->catch_up_ns = set->engine_ns;
	delay_ns = set->catch_up_ns - set->engine_ns;
	set->catch_up_ns += SECOND_NS / set->options.catch_up_per_s;
	return delay_ns;
}

void twi_keep_arm(struct tw_durable *set, struct twi_durable_timer *timer)
{
	arm(set, timer, delay_of(set, timer));
}

void twi_keep_arm_now(struct tw_durable *set, struct twi_durable_timer *timer)
{
	arm(set, timer, 0);
}

void twi_keep_arm_soon(struct tw_durable *set, struct twi_durable_timer *timer)
{
	int64_t delay_ns = delay_of(set, timer);

	arm(set, timer, delay_ns > SOON_NS ? delay_ns : SOON_NS);
}

static void garbage_add(struct tw_durable *set, struct twi_durable_timer *timer)
{
	timer->garbage = set->garbage;
	set->garbage = timer;
}

void twi_keep_release(struct tw_durable *set, struct twi_durable_timer *timer)
{
	if (!timer->gone) {
		timer->gone = true;
		if (timer->hashed) {
			set->axes[timer->kind->axis].in_memory--;
			set->axes[timer->kind->axis].memory_bytes -= twi_timer_bytes(timer);
		}
		twi_slot_clear(set, timer);
		twi_hash_remove(set, timer);
	}
	/*
	 * A queued timer is still in the staging queue. When this thread takes it from there, it
	 * calls this function again.
	 */
	if ((twi_durable_look(&timer->word) & TWI_DURABLE_QUEUED) != 0) /* E101 */
		return;
	list_leave(set, timer);
	if (disarm(timer))
		garbage_add(set, timer);
	else
		limbo_enter(set, timer);
}

void twi_keep_park(struct tw_durable *set, struct twi_durable_timer *timer, enum twi_list on)
{
	list_leave(set, timer);
	timer->on = (uint8_t)on;
	if (on == TWI_LIST_PARKED)
		TAILQ_INSERT_TAIL(&timer->kind->parked, timer, list);
	else
		TAILQ_INSERT_TAIL(&set->held, timer, list);
}

void twi_keep_unpark(struct tw_durable *set, struct twi_durable_kind *kind)
{
	uint32_t most = kind->user->running_max;
	struct twi_durable_timer *timer;
	/*
	 * RELAXED: only an estimate. If more timers are armed than may run, the rest is parked
	 * again.
	 */
	uint32_t running = twi_load_relaxed(&kind->running);

	/*
	 * RELAXED: if this thread handles a request to resume, it has acquired the store of
	 * `paused` with the request. Otherwise a later step reads the new value.
	 */
	if (twi_load_relaxed(&kind->paused) != 0)
		return;
	while ((timer = TAILQ_FIRST(&kind->parked)) != NULL && (most == 0 || running < most)) {
		list_leave(set, timer);
		running++;
		twi_keep_arm_now(set, timer);
	}
}

void twi_keep_unhold(struct tw_durable *set)
{
	struct twi_durable_timer *timer;

	while ((timer = TAILQ_FIRST(&set->held)) != NULL) {
		list_leave(set, timer);
		twi_keep_arm(set, timer);
	}
}

void twi_keep_limbo(struct tw_durable *set)
{
	struct twi_durable_timer *timer = TAILQ_FIRST(&set->limbo), *next;
	/* The length at the beginning: a timer that is put back on the list is not visited twice. */
	size_t count = set->limbo_count;

	for (; count > 0; count--, timer = next) {
		next = TAILQ_NEXT(timer, list);
		if (!disarm(timer))
			continue;
		list_leave(set, timer);
		if (timer->gone)
			garbage_add(set, timer);
		else if (twi_durable_state(twi_durable_look(&timer->word)) == /* E101 */
			 TWI_DURABLE_WAITING)
			twi_keep_arm(set, timer);
	}
}

void twi_timer_free(struct twi_durable_timer *timer)
{
	free(timer);
}

void twi_keep_collect(struct tw_durable *set)
{
	struct twi_durable_timer *timer = set->garbage, *next;

	if (timer == NULL)
		return;
	set->garbage = NULL;
	/* E105: waits until no caller that has found one of these timers still reads it. */
	twi_rcu_synchronize();
	for (; timer != NULL; timer = next) {
		next = timer->garbage;
		free(timer);
	}
}

typedef void visit(struct tw_durable *set, struct twi_durable_timer *timer, void *arg);

static void hash_visit(struct tw_durable *set, visit *function, void *arg)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	twi_rcu_enter(); /* E105: until we leave, no timer is freed. */
	cds_lfht_first(set->hash, &iter);
	while ((node = cds_lfht_iter_get_node(&iter)) != NULL) {
		cds_lfht_next(set->hash, &iter);
		function(set, TWI_CONTAINER_OF(node, struct twi_durable_timer, node), arg);
	}
	twi_rcu_leave(); /* E105: from here on, timers may be freed. */
}

/* RELAXED, the load of a slot: this thread has acquired all timers that it took. */
static void slots_visit(struct tw_durable *set, visit *function, void *arg)
{
	for (uint64_t i = 0; i <= set->slot_mask; i++) {
		struct twi_durable_timer *timer = twi_load_relaxed(&set->slots[i]);

		if (timer != NULL)
			function(set, timer, arg);
	}
}

static void disarm_one(struct tw_durable *set, struct twi_durable_timer *timer, void *arg)
{
	bool *clean = arg;

	(void)set;
	if (!disarm(timer))
		*clean = false;
}

bool twi_keep_disarm_all(struct tw_durable *set)
{
	bool clean = true;

	hash_visit(set, disarm_one, &clean);
	slots_visit(set, disarm_one, &clean);
	twi_keep_limbo(set);
	return clean && TAILQ_EMPTY(&set->limbo);
}

static void rearm_one(struct tw_durable *set, struct twi_durable_timer *timer, void *arg)
{
	(void)arg;
	/*
	 * If it is too late to move the timeout, its callback runs. The callback looks at the clock
	 * of the deadline, and gives the timer back to this thread if the timer is early.
	 */
	if (timer->armed)
		(void)tw_reschedule_at(timer->handle,
				       twi_durable_shift(set->engine_ns, delay_of(set, timer)));
}

void twi_keep_rearm_all(struct tw_durable *set)
{
	set->catch_up_ns = set->engine_ns;
	hash_visit(set, rearm_one, NULL);
}

/*
 * Releases a waiting timer that an earlier session has claimed. If a callback holds the timer now,
 * the callback runs the timer or leaves it to this thread, which then checks the session. RELAXED:
 * only this thread changes the session.
 */
static void drop_one(struct tw_durable *set, struct twi_durable_timer *timer, void *arg)
{
	(void)arg;
	if (twi_load_relaxed(&timer->session) != set->session.number &&
	    twi_durable_place(twi_durable_look(&timer->word)) == TWI_DURABLE_KEPT && /* E101 */
	    twi_durable_hold(&timer->word))
		twi_keep_release(set, timer);
}

void twi_keep_drop_stale(struct tw_durable *set)
{
	hash_visit(set, drop_one, NULL);
}

struct started {
	struct twi_durable_timer **timers;
	size_t count, max;
};

static void started_one(struct tw_durable *set, struct twi_durable_timer *timer, void *arg)
{
	struct started *started = arg;

	(void)set;
	if (!timer->started || started->count == started->max ||
	    twi_durable_state(twi_durable_look(&timer->word)) != TWI_DURABLE_WAITING) /* E101 */
		return;
	timer->started = false;
	started->timers[started->count++] = timer;
}

size_t twi_keep_started(struct tw_durable *set, struct twi_durable_timer **ret, size_t max)
{
	struct started started = {ret, 0, max};

	hash_visit(set, started_one, &started);
	return started.count;
}

static void free_one(struct tw_durable *set, struct twi_durable_timer *timer, void *arg)
{
	(void)arg;
	twi_slot_clear(set, timer);
	twi_hash_remove(set, timer);
	garbage_add(set, timer);
}

void twi_keep_free_all(struct tw_durable *set)
{
	hash_visit(set, free_one, NULL);
	slots_visit(set, free_one, NULL);
	twi_keep_collect(set);
}

/* RELAXED, all stores: the timer is not shared before it is in the table. */
static struct twi_durable_timer *timer_of(struct tw_durable *set, const struct tw_durable_row *row)
{
	struct twi_durable_timer *timer =
		calloc(1, sizeof *timer + row->payload_bytes + row->key_bytes);

	if (timer == NULL)
		return NULL;
	timer->item.type = TWI_ITEM_TIMER;
	timer->id = row->id;
	timer->kind = &set->kinds[row->kind];
	timer->due_ns = row->due_ns;
	timer->version = row->version;
	timer->payload_bytes = row->payload_bytes;
	timer->key_bytes = (uint8_t)row->key_bytes;
	twi_store_relaxed(&timer->attempt, row->attempt);
	twi_store_relaxed(&timer->word, TWI_DURABLE_KEPT);
	twi_store_relaxed(&timer->session, row->session);
	timer->confirm = (timer->kind->user->flags & TW_DURABLE_KIND_AT_MOST_ONCE) != 0 ||
			 row->started != 0 ||
			 row->due_ns <= set->axes[timer->kind->axis].confirm_until_ns;
	if (row->payload_bytes != 0)
		memcpy(timer->bytes, row->payload, row->payload_bytes);
	if (row->key_bytes != 0)
		memcpy(timer->bytes + row->payload_bytes, row->key, row->key_bytes);
	return timer;
}

/*
 * Returns whether a timer must not run again: a run of an at-most-once kind began and did not end,
 * or its attempts are used up.
 */
static bool spent(const struct twi_durable_timer *timer, const struct tw_durable_row *row)
{
	const struct tw_durable_kind *kind = timer->kind->user;

	return (row->started != 0 && (kind->flags & TW_DURABLE_KIND_AT_MOST_ONCE) != 0) ||
	       (kind->attempts_max != 0 && row->attempt >= kind->attempts_max);
}

int twi_keep_load(void *context, const struct tw_durable_row *row)
{
	struct tw_durable *set = context;
	struct twi_durable_timer *timer;

	twi_rcu_enter(); /* E105: until we leave, no timer is freed. */
	timer = twi_timer_find(set, row->id);
	twi_rcu_leave(); /* E105: from here on, timers may be freed. */
	if (set->shared && row->session != set->session.number)
		return 1;
	/*
	 * If the timer in memory has the claim of an earlier session, it still runs, and the set
	 * does not need the new row. RELAXED: only this thread changes the session.
	 */
	if (set->shared && timer != NULL)
		return twi_load_relaxed(&timer->session) != row->session;
	if (timer != NULL || row->dead != 0 || row->kind >= set->kind_count)
		return set->shared;
	timer = timer_of(set, row);
	if (timer == NULL)
		return -ENOMEM;
	twi_keep_add(set, timer);
	if (!spent(timer, row)) {
		twi_keep_arm(set, timer);
		return 0;
	}
	timer->spent = true;
	(void)twi_durable_hold(&timer->word);
	if (twi_durable_let_go(&timer->word, TWI_DURABLE_WAITING, TWI_DURABLE_DUE, true))
		twi_stage(set, &timer->item, TWI_DURABLE_CALL_BYTES, false);
	return 0;
}

/*
 * Makes a request. Any thread may call it. The I/O thread frees the request, or the caller does if
 * it has waited for the answer.
 */
struct twi_request *twi_request_make(enum twi_item_type type, struct tw_durable_id id,
				     const void *key, size_t key_bytes, size_t infos)
{
	struct twi_request *request = calloc(1, sizeof *request + key_bytes);

	if (request == NULL)
		return NULL;
	if (infos != 0) {
		request->infos = calloc(infos, sizeof *request->infos);
		if (request->infos == NULL) {
			free(request);
			return NULL;
		}
	}
	request->item.type = (uint32_t)type;
	request->id = id;
	request->max = infos;
	request->key_bytes = (uint32_t)key_bytes;
	if (key_bytes != 0)
		memcpy(request->key, key, key_bytes);
	return request;
}

void twi_request_free(struct twi_request *request)
{
	free(request->infos);
	free(request);
}
