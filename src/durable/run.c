/* SPDX-License-Identifier: MIT */
/*
 * The engine's callback of a timer.
 *
 * The callback holds the timer (word.h), and checks whether the timer may run. If it may, the
 * callback runs it. A timer may not run in these cases: the set lets no run begin; the clock of its
 * deadline has not reached the deadline; its kind is paused or at its bound; its attempts are used
 * up; or its start must be stored first. Then the callback marks the timer as due, and leaves it to
 * the I/O thread.
 *
 * The callback's last step on the timer is a swap of the word. After that the timer may be freed,
 * unless the swap makes this thread push it. So the code that follows uses copies. `inside` counts
 * the callbacks that use the set. A callback's last access to the set takes the callback out of
 * this count.
 */
#include "durable/run.h"

#include "base/probe.h"
#include "durable/stage.h"

static const struct tw_kind timeout_kind;

int twi_run_arm(struct tw_durable *set, struct twi_durable_timer *timer, int64_t at_ns)
{
	int error;

	timer->armed = true;
	error = tw_schedule_at(set->engine, at_ns, &timeout_kind, timer, &timer->handle);
	if (error != 0)
		timer->armed = false;
	return error;
}

/*
 * Counts a run of a kind, or returns false if the kind is paused or at its bound. RELAXED, all
 * accesses: the count publishes nothing. The addition that counts a run also decides whether it may
 * begin.
 */
static bool kind_enter(struct twi_durable_kind *kind)
{
	if (twi_load_relaxed(&kind->paused) != 0)
		return false;
	if (kind->user->running_max == 0)
		return true;
	if (twi_fetch_add_relaxed(&kind->running, 1) < kind->user->running_max)
		return true;
	/* RELAXED, like the addition above, which this takes back. */
	(void)twi_fetch_sub_relaxed(&kind->running, 1);
	return false;
}

void twi_run_leave(struct twi_durable_kind *kind)
{
	/* RELAXED: the I/O thread reads the count after a push that follows, or in a later step. */
	if (kind->user->running_max != 0)
		(void)twi_fetch_sub_relaxed(&kind->running, 1);
}

/*
 * RELAXED: if this thread misses a change of the state, its run counts as begun before the change.
 */
static bool runs_allowed(struct tw_durable *set, const struct twi_durable_kind *kind)
{
	uint32_t state = twi_load_relaxed(&set->state);

	return (state == TW_DURABLE_STATE_CLOCK_STEPPED ? twi_durable_elapsed(kind)
							: state != TW_DURABLE_STATE_FAILED) &&
	       twi_load_relaxed(&set->closing) == 0;
}

/*
 * Returns whether the run may begin without another request to the store. If a shared store has
 * confirmed the start, the run must begin before until_ns, while the session is valid.
 */
static bool store_allows(struct tw_durable *set, const struct twi_durable_timer *timer,
			 uint64_t word)
{
	bool confirmed = (word & TWI_DURABLE_CONFIRMED) != 0;

	if (!set->shared || !confirmed)
		return !timer->confirm || confirmed;
	return set->hooks.boot_ns(set->hooks.context) < timer->until_ns;
}

/*
 * Returns whether the holder may run the timer. RELAXED: the holder has acquired the attempts with
 * the word.
 */
static bool may_run(struct tw_durable *set, struct twi_durable_timer *timer, uint64_t word)
{
	uint64_t attempt = twi_load_relaxed(&timer->attempt);
	uint64_t most = timer->kind->user->attempts_max;

	return runs_allowed(set, timer->kind) &&
	       twi_durable_now_ns(set, timer->kind) >= timer->due_ns &&
	       store_allows(set, timer, word) && (most == 0 || attempt < most) &&
	       kind_enter(timer->kind);
}

static enum twi_durable_result result_of(int result)
{
	switch (result) {
	case TW_RETRY_DONE:
		return TWI_RESULT_DONE;
	case TW_RETRY_AGAIN:
		return TWI_RESULT_AGAIN;
	case TW_RETRY_PENDING:
		return TWI_RESULT_NONE;
	case TW_DURABLE_NEXT:
		return TWI_RESULT_NEXT;
	default:
		return TWI_RESULT_GIVE_UP;
	}
}

/* Returns how late the run begins: 0 if the clock was set back since may_run(). */
static uint64_t lag_of(struct tw_durable *set, const struct twi_durable_timer *timer)
{
	int64_t now_ns = twi_durable_now_ns(set, timer->kind);

	return now_ns > timer->due_ns ? (uint64_t)now_ns - (uint64_t)timer->due_ns : 0;
}

/* RELAXED, all: only statistics. */
static void lag_note(struct tw_durable *set, uint64_t lag_ns)
{
	twi_store_relaxed(&set->lag_ns, lag_ns);
	twi_most_raise(&set->lag_max_ns, lag_ns);
	twi_measured_count(&set->measured[TW_DURABLE_MEASUREMENT_LATENESS], lag_ns);
	if (set->options.late_ns != 0 && lag_ns > set->options.late_ns)
		(void)twi_fetch_add_relaxed(&set->late, 1);
}

static int run_or_report(struct tw_durable *set, const struct twi_durable_timer *timer,
			 const struct tw_durable_self *self)
{
	const struct tw_durable_options *options = &set->options;
	const struct tw_durable_kind *kind = timer->kind->user;
	uint64_t lag_ns = lag_of(set, timer);

	lag_note(set, lag_ns);
	TWI_PROBE5(durable_run, set, self->id.place, self->id.serial, self->attempt, lag_ns);
	if (kind->overdue_max_ns == 0 || lag_ns <= kind->overdue_max_ns)
		return kind->run(self, timer->bytes, timer->payload_bytes);
	/* RELAXED: only a count. */
	(void)twi_fetch_add_relaxed(&set->overdue, 1);
	return options->overdue == NULL ? TW_RETRY_DONE
					: options->overdue(options->context, self, timer->bytes,
							   timer->payload_bytes);
}

static enum twi_durable_result run(struct tw_durable *set, struct twi_durable_timer *timer)
{
	struct tw_durable *before = twi_durable_within;
	struct tw_durable_self self = {
		.durable = set,
		.id = timer->id,
		/* RELAXED, also for the fence: the holder has acquired both with the word. */
		.attempt = twi_load_relaxed(&timer->attempt) + 1,
		.due_ns = twi_durable_to_wall(set, timer->kind, timer->due_ns),
		.next_due_ns = &timer->next_ns,
		.version = timer->version,
		.key_bytes = timer->key_bytes,
		.key = timer->key_bytes == 0 ? NULL : timer->bytes + timer->payload_bytes,
		.fence = twi_load_relaxed(&timer->fence),
	};
	int result;

	timer->next_ns = self.due_ns;
	/* RELAXED: only a count. */
	(void)twi_fetch_add_relaxed(&set->runs, 1);
	twi_durable_within = set;
	result = run_or_report(set, timer, &self);
	twi_durable_within = before;
	timer->next_ns = twi_durable_from_wall(set, timer->kind, timer->next_ns);
	return result_of(result);
}

/*
 * Leaves a due timer to the I/O thread. In a shared set the push is urgent: the run must wait until
 * the store confirms its start, and should not also wait for the commit window.
 */
static void leave_due(struct tw_durable *set, struct twi_durable_timer *timer)
{
	if (twi_durable_let_go(&timer->word, TWI_DURABLE_WAITING, TWI_DURABLE_DUE, true))
		twi_stage(set, &timer->item, TWI_DURABLE_CALL_BYTES, set->shared);
}

/* Makes the timer RUNNING, after may_run(). Returns false if a shared store must be asked first. */
static bool begin(struct tw_durable *set, struct twi_durable_timer *timer, uint64_t word)
{
	if (set->shared) {
		if (twi_durable_begin(&timer->word, (word & TWI_DURABLE_CONFIRMED) != 0))
			return true;
		twi_run_leave(timer->kind);
		return false;
	}
	/*
	 * A confirmed start is in the store already. The start of any other run is stored only if
	 * the run has not ended when the I/O thread takes this push, at the end of the commit
	 * window.
	 */
	if (twi_durable_let_go(&timer->word, TWI_DURABLE_RUNNING, 0, !timer->confirm))
		twi_stage(set, &timer->item, TWI_DURABLE_CALL_BYTES, false);
	return true;
}

static void run_held(struct tw_durable *set, struct twi_durable_timer *timer)
{
	struct twi_durable_kind *kind = timer->kind;
	uint64_t word = twi_durable_look(&timer->word); /* E101: acquires its last step */
	bool ended, push;

	if (!may_run(set, timer, word) || !begin(set, timer, word)) {
		leave_due(set, timer);
		return;
	}
	push = twi_durable_finish(&timer->word, run(set, timer), &ended);
	if (ended)
		twi_run_leave(kind);
	if (push)
		twi_stage(set, &timer->item, TWI_DURABLE_CALL_BYTES, kind->user->running_max != 0);
}

static void timeout_callback(struct tw_handle self, void *arg)
{
	struct twi_durable_timer *timer = arg;
	struct tw_durable *set = timer->kind->set;

	(void)self;
	twi_run_enter(set);
	if (twi_durable_hold(&timer->word))
		run_held(set, timer);
	twi_run_exit(set);
}

/* Lets the I/O thread arm the timer again, if an executor has dropped its timeout. */
static void timeout_ended(void *arg, enum tw_end end)
{
	struct twi_durable_timer *timer = arg;
	struct tw_durable *set;

	if (end != TW_END_DROPPED)
		return;
	set = timer->kind->set;
	twi_run_enter(set);
	if (twi_durable_hold(&timer->word))
		leave_due(set, timer);
	twi_run_exit(set);
}

static const struct tw_kind timeout_kind = TW_KIND(timeout_callback, timeout_ended);
