/* SPDX-License-Identifier: MIT */
/*
 * The functions that the engine calls: callbacks, finalisers, the dispatch hook and the hand-back
 * hook. Also: the operations that these functions make themselves.
 */
#include "play.h"

#include <errno.h>

/*
 * Returns true if a timeout may become due now: inside a callback, or while the worker is held. At
 * other times the worker could run it at any moment, and the player would have to flush at once.
 */
static bool may_make_due(const struct play *play)
{
	return !play_self.player || play_held(play);
}

/* Returns the delay. If the delay is below 1 ns, and no timeout may become due now, returns 1 ns. */
static int64_t quiet_delay(const struct play *play, int64_t delay_ns)
{
	return delay_ns > 0 || may_make_due(play) ? delay_ns : 1;
}

static void rearm(struct play *play, const struct record *record, int64_t argument)
{
	struct scheduling again = {
		.by_delay = true,
		.time_ns = quiet_delay(play, (argument / 4) * (int64_t)play->model.tick_ns +
						     argument % 4 - 1),
		.final = record->kind->finaliser != NULL,
		.script = record->script,
	};

	if (again.script.generation-- == 0)
		return;
	again.script.hold = false;
	play_schedule_one(play, &again);
}

static void late_schedule(struct play *play, int64_t argument)
{
	wide deadline_ns = play->model.now_ns - (argument + 1) * play->model.tick_ns;
	struct scheduling late = {.time_ns = deadline_ns < 0 ? -1 : (int64_t)deadline_ns};

	if (may_make_due(play))
		play_schedule_one(play, &late);
}

static void self_cancel(struct play *play, int id)
{
	play_compare_handle(play, id);
	play_cancel_one(play, id, false);
	play_cancel_one(play, id, true);
}

static void clock_move(struct play *play, int64_t argument)
{
	if (may_make_due(play))
		play_clock_to(play, play->model.now_ns + argument * play->model.tick_ns / 2);
}

/* Reschedules a timeout by a delay that does not make it due at once, or to a time that may have
 * passed. */
static void peer_move(struct play *play, int64_t argument)
{
	int64_t tick_ns = (int64_t)play->model.tick_ns;
	int64_t ticks = argument / 16;

	if (argument % 2 == 0)
		play_move_one(play, play_pick(play, argument / 2 % 8), true,
			      quiet_delay(play, ticks * tick_ns / 2));
	else if (may_make_due(play) && play->model.now_ns < INT64_MAX / 2)
		play_move_one(play, play_pick(play, argument / 2 % 8), false,
			      play->model.now_ns + (ticks - 4) * tick_ns);
}

/* Makes the calls that must fail in a callback, because they would wait for that callback. Start
 * must succeed. */
static void rejected_calls(struct play *play, int id)
{
	struct tw_engine *engine = play->engine;

	play_expect(play, id, "stop in a callback", tw_engine_stop(engine, NULL, NULL, TW_NEVER),
		    -EDEADLK);
	play_expect(play, id, "destroy in a callback", tw_engine_destroy(engine), -EDEADLK);
	play_expect(play, id, "detach in a callback", tw_thread_detach(), -EBUSY);
	play_expect(play, id, "start in a callback", tw_engine_start(engine),
		    play->model.life == MODEL_OPEN ? 0 : -ESHUTDOWN);
	if (!play_self.player)
		play_expect(play, id, "flush on the worker", tw_engine_flush(engine, TW_NEVER),
			    -EDEADLK);
}

static void act_do(struct record *record, enum act act, int64_t argument)
{
	struct play *play = record->play;

	switch (act) {
	case ACT_REARM:
		rearm(play, record, argument);
		break;
	case ACT_LATE:
		late_schedule(play, argument);
		break;
	case ACT_PEER:
		play_cancel_one(play, play_pick(play, argument), argument % 2 != 0);
		break;
	case ACT_PEERS:
		for (int64_t i = 0; i < argument; i++)
			play_cancel_one(play, play_pick(play, i), false);
		break;
	case ACT_SELF:
		self_cancel(play, record->id);
		break;
	case ACT_CLOCK:
		clock_move(play, argument);
		break;
	case ACT_CALLS:
		rejected_calls(play, record->id);
		break;
	case ACT_MOVE:
		peer_move(play, argument);
		break;
	default:
		break;
	}
}

static void script_do(struct record *record)
{
	act_do(record, record->script.act, record->script.argument);
	act_do(record, record->script.then, record->script.again);
}

/* Keeps the worker in this callback until the player releases it. */
static void hold(struct record *record)
{
	struct play *play = record->play;

	if (!record->script.hold || play->loop || play_self.player ||
	    play->model.life != MODEL_OPEN)
		return;
	play->holder = record->id;
	pthread_cond_broadcast(&play->changed);
	while (play->holder == record->id)
		pthread_cond_wait(&play->changed, &play->baton);
}

static void self_compare(struct record *record, struct tw_handle self)
{
	struct play *play = record->play;

	if (self.node != record->handle.node || self.generation != record->handle.generation)
		play_fail(play, "timeout %d is called with another handle", record->id);
	play_compare_handle(play, record->id);
	play_compare_counts(play);
}

static void on_run(struct tw_handle self, void *arg)
{
	struct record *record = arg;
	struct play *play = record->play;

	play_enter(play);
	if (play->dispatch_accepts < 0)
		play_judge(play, record->id, model_expire(&play->model, record->id));
	play_judge(play, record->id, model_run(&play->model, record->id));
	play_self.inside = record->id;
	self_compare(record, self);
	script_do(record);
	hold(record);
	play_self.inside = MODEL_NOBODY;
	if (record->kind->finaliser == NULL)
		play_judge(play, record->id, model_end(&play->model, record->id));
	play_leave(play);
}

/* Returns the end that the model expects for the finaliser. */
static enum tw_end end_of(struct play *play, int id)
{
	switch (play->model.timeout[id].state) {
	case MODEL_CANCELLED:
		return TW_END_CANCELLED;
	case MODEL_HANDED_BACK:
		return TW_END_UNEXPIRED;
	default:
		play_judge(play, id, model_end(&play->model, id));
		return TW_END_EXPIRED;
	}
}

static void on_end(void *arg, enum tw_end end)
{
	struct record *record = arg;
	struct play *play = record->play;

	play_enter(play);
	if (play->model.life == MODEL_STOPPING && !play->hooked && end == TW_END_UNEXPIRED)
		play_judge(play, record->id, model_hand_back(&play->model, record->id));
	play_expect(play, record->id, "runs of the finaliser", ++record->finalised, 1);
	play_expect(play, record->id, "the finaliser's end", end, end_of(play, record->id));
	play_leave(play);
}

const struct tw_kind play_kind = TW_KIND(on_run, NULL);

const struct tw_kind *play_kind_of(bool final, bool owned)
{
	static const struct tw_kind final_kind = TW_KIND(on_run, on_end);
	static const struct tw_kind owned_kinds[] = {TW_KIND_OWNER_ONLY(on_run, NULL),
						     TW_KIND_OWNER_ONLY(on_run, on_end)};

	if (owned)
		return &owned_kinds[final];
	return final ? &final_kind : &play_kind;
}

static void due_compare(struct play *play, const struct tw_due *due)
{
	struct record *record = due->arg;

	if (due->kind != record->kind || due->handle.node != record->handle.node ||
	    due->handle.generation != record->handle.generation)
		play_fail(play, "timeout %d is dispatched as another one", record->id);
	play_judge(play, record->id, model_expire(&play->model, record->id));
}

size_t play_dispatch(void *context, const struct tw_due *due, size_t count)
{
	struct play *play = context;
	size_t accepts;

	play_enter(play);
	for (size_t i = 0; i < count; i++)
		due_compare(play, &due[i]);
	play_compare_counts(play);
	accepts = (size_t)play->dispatch_accepts < count ? (size_t)play->dispatch_accepts : count;
	for (size_t i = 0; i < accepts; i++)
		play->accepted.due[play->accepted.count++] = due[i];
	play_leave(play);
	return accepts;
}

static int64_t remaining_expected(const struct play *play, int id)
{
	int64_t deadline_ns = play->model.timeout[id].deadline_ns;

	return deadline_ns == TW_NEVER ? TW_NEVER : deadline_ns - play->model.now_ns;
}

void play_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		    int64_t remaining_ns)
{
	struct record *record = arg;
	struct play *play = context;

	play_enter(play);
	play_judge(play, record->id, model_hand_back(&play->model, record->id));
	play_expect(play, record->id, "the remaining time", remaining_ns,
		    remaining_expected(play, record->id));
	if (kind != record->kind)
		play_fail(play, "timeout %d is handed back with another kind", record->id);
	self_compare(record, handle);
	script_do(record);
	play_leave(play);
}

static void handles_misuse(struct play *play)
{
	struct tw_handle zeros = {0};
	struct tw_timeout small = {.size = sizeof(size_t)};
	int any = play_pick(play, 0);

	play_expect(play, MODEL_NOBODY, "cancel of zeros", tw_cancel(zeros), -EINVAL);
	play_expect(play, MODEL_NOBODY, "cancel_wait of zeros", tw_cancel_wait(zeros, TW_NEVER),
		    -EINVAL);
	play_expect(play, MODEL_NOBODY, "state of zeros", tw_timeout_state(zeros), -EINVAL);
	play_expect(play, MODEL_NOBODY, "get of zeros", tw_timeout_get(zeros, &small), -EINVAL);
	play_expect(play, MODEL_NOBODY, "due_run of NULL", tw_due_run(NULL), -EINVAL);
	if (any == MODEL_NOBODY)
		return;
	play_expect(play, any, "get into NULL", tw_timeout_get(play->record[any].handle, NULL),
		    -EINVAL);
	play_expect(play, any, "get into little", tw_timeout_get(play->record[any].handle, &small),
		    -EINVAL);
}

static void engine_misuse(struct play *play)
{
	static const struct tw_kind empty = TW_KIND(NULL, NULL);
	struct tw_engine *engine = play->engine;

	play_expect(play, MODEL_NOBODY, "schedule with no engine",
		    tw_schedule(NULL, 0, &play_kind, NULL, NULL), -EINVAL);
	play_expect(play, MODEL_NOBODY, "schedule with no kind",
		    tw_schedule(engine, 0, NULL, NULL, NULL), -EINVAL);
	play_expect(play, MODEL_NOBODY, "schedule with no callback",
		    tw_schedule_at(engine, 0, &empty, NULL, NULL), -EINVAL);
	play_expect(play, MODEL_NOBODY, "clock at its end", tw_clock_set(play->clock, INT64_MAX),
		    -EINVAL);
	play_expect(play, MODEL_NOBODY, "clock back",
		    tw_clock_set(play->clock, play->model.now_ns - 1), -EINVAL);
	play_expect(play, MODEL_NOBODY, "stats into NULL", tw_stats_get(engine, NULL), -EINVAL);
	play_expect(play, MODEL_NOBODY, "detach", tw_thread_detach(), 0);
}

void play_misuse(struct play *play, const struct op *op)
{
	(void)op;
	handles_misuse(play);
	engine_misuse(play);
}
