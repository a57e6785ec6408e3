/* SPDX-License-Identifier: MIT */
/*
 * Schedules, cancels, reschedules and moves the clock, with the same call to engine and model.
 */
#include "play.h"

#include <errno.h>

enum { GENERATIONS = 3 };

static int64_t clamp(wide time_ns)
{
	if (time_ns > INT64_MAX)
		return INT64_MAX;
	return time_ns <= INT64_MIN ? INT64_MIN + 1 : (int64_t)time_ns;
}

/* Returns the time that the base stands for. */
static wide base_ns(const struct play *play, enum base base)
{
	const struct model *model = &play->model;

	switch (base) {
	case BASE_GRID:
		return model->now_ns - (wide)(model->now_ns - model->start_ns) % model->tick_ns;
	case BASE_SAME:
		return model->count > 0 ? model->timeout[model->count - 1].deadline_ns : 0;
	case BASE_START:
		return model->start_ns;
	case BASE_ZERO:
		return 0;
	default:
		return model->now_ns;
	}
}

/* Returns a distance in ns. The values are in the order turns (revolutions), ticks, ns. */
static wide distance_ns(const struct play *play, const int64_t *value)
{
	wide ticks = (wide)value[0] * play->model.slots + value[1];

	return ticks * play->model.tick_ns + value[2];
}

/* If an earlier timeout used this timeout's node, records that its handle is stale from now on. */
static void rebirth_note(struct play *play, int id)
{
	struct tw_handle handle = play->record[id].handle;

	for (int older = id - 1; older >= 0; older--) {
		struct record *record = &play->record[older];

		if (record->handle.node != handle.node)
			continue;
		if (record->handle.generation >= handle.generation)
			play_fail(play, "timeout %d has the handle of timeout %d", id, older);
		/*
		 * If the older handle was already seen to be stale, there are two possible reasons:
		 * this timeout, or a rejected schedule that used the node before it. So
		 * stale_unseen stays as it is.
		 */
		record->reborn = true;
		return;
	}
}

static int real_schedule(struct play *play, const struct scheduling *what, struct record *record,
			 struct tw_handle *ret_handle)
{
	if (what->by_delay)
		return tw_schedule(play->engine, what->time_ns, record->kind, record, ret_handle);
	return tw_schedule_at(play->engine, what->time_ns, record->kind, record, ret_handle);
}

int play_schedule_ask(struct play *play, const struct scheduling *what)
{
	int id = play->model.count;
	int64_t deadline_ns = what->time_ns;
	int code;

	if (what->by_delay && deadline_ns != INT64_MIN)
		deadline_ns = model_deadline(&play->model, what->time_ns);
	code = model_schedule_at(&play->model, deadline_ns, play_self.inside);
	play->record[id] = (struct record){
		.play = play,
		.id = id,
		.engine = play->engine,
		.kind = play_kind_of(what->final, play->owned),
		.script = what->script,
	};
	return code;
}

void play_scheduled(struct play *play, int id, int code, struct tw_handle handle)
{
	if (code == 0) {
		play->record[id].handle = handle;
		rebirth_note(play, id);
	} else {
		play->rejections += code != -ERANGE;
	}
}

void play_schedule_one(struct play *play, const struct scheduling *what)
{
	int id = play->model.count;
	struct record *record = &play->record[id];
	struct tw_handle handle = {.node = record, .generation = 5};
	int code;

	if (id == MODEL_TIMEOUTS_MAX)
		return;
	code = play_schedule_ask(play, what);
	play_expect(play, id, "schedule", real_schedule(play, what, record, &handle), code);
	play_scheduled(play, id, code, handle);
	if (code == 0)
		return;
	if (handle.node != record || handle.generation != 5)
		play_fail(play, "a schedule that failed has touched its output");
}

static void burst_schedule(struct play *play, const struct op *op)
{
	const int64_t *value = op->value;
	int64_t stride = value[SCHEDULE_STRIDE] < 0 ? play->model.slots : value[SCHEDULE_STRIDE];
	enum base base = (enum base)value[SCHEDULE_BASE];
	wide time_ns = distance_ns(play, &value[SCHEDULE_TURNS]);
	struct scheduling what = {
		.by_delay = base == BASE_NOW,
		.final = value[SCHEDULE_FINAL] != 0,
		.script = {.act = (enum act)value[SCHEDULE_ACT],
			   .argument = value[SCHEDULE_ARGUMENT],
			   .then = (enum act)value[SCHEDULE_THEN],
			   .again = value[SCHEDULE_AGAIN],
			   .generation = GENERATIONS,
			   .hold = value[SCHEDULE_HOLD] != 0},
	};

	if (!what.by_delay)
		time_ns += base_ns(play, base);
	play_many_begin(play);
	for (int64_t i = 0; i < value[SCHEDULE_COUNT] && i < BURST_MAX; i++) {
		what.time_ns = clamp(time_ns + i * stride * play->model.tick_ns);
		if (base == BASE_NEVER)
			what.time_ns = TW_NEVER;
		if (base == BASE_REJECTED)
			what.time_ns = INT64_MIN;
		if (value[SCHEDULE_MANY] != 0)
			play_many_add(play, &what);
		else
			play_schedule_one(play, &what);
	}
	play_many_schedule(play, what.by_delay);
}

void play_schedule(struct play *play, const struct op *op)
{
	if (op->value[SCHEDULE_ASIDE] != 0 && !play->owned)
		play_aside(play, op, burst_schedule);
	else
		burst_schedule(play, op);
}

/*
 * Returns the expected outcome of a cancel that waits. The player's wait for a running callback
 * ends with -ETIMEDOUT. On the worker, or in the callback itself, a wait must not block, so it
 * returns RUNNING.
 */
static int waited_outcome(int id, int outcome)
{
	if (outcome != TW_CANCEL_RUNNING || !play_self.player || id == play_self.inside)
		return outcome;
	return -ETIMEDOUT;
}

void play_cancel_one(struct play *play, int id, bool wait)
{
	struct tw_handle handle;
	int expected;
	int outcome;

	if (id == MODEL_NOBODY)
		return;
	handle = play->record[id].handle;
	expected = model_cancel(&play->model, id);
	if (wait)
		expected = waited_outcome(id, expected);
	outcome = wait ? tw_cancel_wait(handle, 0) : tw_cancel(handle);
	play_expect(play, id, "cancel", outcome,
		    play_expected(play, id, outcome, TW_CANCEL_STALE, expected));
}

static void burst_cancel(struct play *play, const struct op *op)
{
	const int64_t *value = op->value;

	play_many_begin(play);
	for (int64_t i = 0; i < value[CANCEL_COUNT] && i < BURST_MAX; i++) {
		int id = play_pick(play, value[CANCEL_WHICH] + i * value[CANCEL_STEP]);

		if (value[CANCEL_MANY] != 0)
			play_many_add_handle(play, id);
		else
			play_cancel_one(play, id, value[CANCEL_WAIT] != 0);
	}
	play_many_cancel(play);
}

void play_cancel(struct play *play, const struct op *op)
{
	if (op->value[CANCEL_ASIDE] != 0 && !play->owned)
		play_aside(play, op, burst_cancel);
	else
		burst_cancel(play, op);
}

static int move_expected(struct play *play, int id, bool by_delay, int64_t time_ns)
{
	int64_t deadline_ns = time_ns;

	if (time_ns == INT64_MIN)
		return -ERANGE;
	if (by_delay)
		deadline_ns = model_deadline(&play->model, time_ns);
	return model_reschedule_at(&play->model, id, deadline_ns);
}

void play_move_one(struct play *play, int id, bool by_delay, int64_t time_ns)
{
	struct tw_handle handle;
	int expected, outcome;

	if (id == MODEL_NOBODY)
		return;
	handle = play->record[id].handle;
	expected = move_expected(play, id, by_delay, time_ns);
	outcome = by_delay ? tw_reschedule(handle, time_ns) : tw_reschedule_at(handle, time_ns);
	if (expected != -ERANGE)
		expected = play_expected(play, id, outcome, -ESTALE, expected);
	play_expect(play, id, "reschedule", outcome, expected);
}

/* Reschedules timeouts one by one. Stops when one is due: it may run at once, so the next
 * outcome would be random. */
static void burst_reschedule(struct play *play, const struct op *op)
{
	const int64_t *value = op->value;
	enum base base = (enum base)value[RESCHEDULE_BASE];
	wide time_ns = distance_ns(play, &value[RESCHEDULE_TURNS]);
	int64_t held_ns;

	if (base != BASE_NOW)
		time_ns += base_ns(play, base);
	held_ns = base == BASE_NEVER      ? TW_NEVER
		  : base == BASE_REJECTED ? INT64_MIN
					  : clamp(time_ns);
	for (int64_t i = 0; i < value[RESCHEDULE_COUNT] && i < BURST_MAX; i++) {
		play_move_one(play,
			      play_pick(play, value[RESCHEDULE_WHICH] + i * value[RESCHEDULE_STEP]),
			      base == BASE_NOW, held_ns);
		if (model_any_due(&play->model) && !play_held(play))
			break;
	}
}

void play_reschedule(struct play *play, const struct op *op)
{
	if (op->value[RESCHEDULE_ASIDE] != 0 && !play->owned)
		play_aside(play, op, burst_reschedule);
	else
		burst_reschedule(play, op);
}

void play_clock_to(struct play *play, wide now_ns)
{
	int64_t held_ns = now_ns >= INT64_MAX ? INT64_MAX - 1 : clamp(now_ns);
	int code = model_clock_set(&play->model, held_ns);

	play_expect(play, MODEL_NOBODY, "tw_clock_set", tw_clock_set(play->clock, held_ns), code);
}

void play_clock(struct play *play, const struct op *op)
{
	enum base base = (enum base)op->value[CLOCK_BASE];

	play_clock_to(play, base_ns(play, base) + distance_ns(play, &op->value[CLOCK_TURNS]));
	if (op->value[CLOCK_FLUSH] != 0 && !play_held(play))
		play_flush(play, op);
}
