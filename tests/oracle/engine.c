/* SPDX-License-Identifier: MIT */
/*
 * Creates, starts, stops and destroys the engine. Runs the timeouts that the dispatch hook has
 * accepted.
 */
#include "play.h"
#include "variant.h"

#include <errno.h>
#include <limits.h>

static void options_fill(struct play *play, const struct op *op, struct tw_options *ret)
{
	const int64_t *value = op->value;

	tw_options_init(ret, sizeof(*ret));
	variants[value[CREATE_WHEEL]].choose(ret);
	ret->tick_ns = (uint64_t)value[CREATE_TICK];
	ret->slots = (uint32_t)value[CREATE_SLOTS];
	ret->transfer_batch = (uint32_t)value[CREATE_BATCH];
	ret->pending_limit = (uint64_t)value[CREATE_LIMIT];
	ret->check = (uint32_t)value[CREATE_CHECK];
	ret->clock = play->clock;
	ret->dispatch = value[CREATE_DISPATCH] != 0 ? play_dispatch : NULL;
	ret->dispatch_context = play;
}

static int create_expected(const struct play *play, const struct tw_options *options)
{
	int code = model_options_judge(options);

	if (code == 0 && play->poor)
		return -ENOMEM;
	return code == 0 && play->engine != NULL ? -EBUSY : code;
}

static void clock_release(struct play *play)
{
	play_expect(play, MODEL_NOBODY, "tw_clock_destroy", tw_clock_destroy(play->clock), 0);
	play->clock = NULL;
	play_expect(play, MODEL_NOBODY, "what the allocator has given out",
		    atomic_load(&play->memory.live_bytes), play->bytes_before);
}

static bool clock_make(struct play *play, int64_t start_ns)
{
	int expected = start_ns < 0 || start_ns == INT64_MAX ? -EINVAL : 0;

	if (play->poor && expected == 0)
		expected = -ENOMEM;
	play->bytes_before = atomic_load(&play->memory.live_bytes);
	play_expect(play, MODEL_NOBODY, "tw_clock_create_virtual",
		    tw_clock_create_virtual(start_ns, &play->clock), expected);
	return expected == 0;
}

static void memory_set(struct play *play, bool there)
{
	play->poor = !there;
	if (there) {
		fault_disarm(&play->memory);
		return;
	}
	/* From now on entries may wait for memory, so timeouts of different ticks may mix. */
	play->model.any_order = true;
	fault_arm(&play->memory, 1, LLONG_MAX);
}

static void engine_made(struct play *play, const struct op *op, const struct tw_options *options)
{
	model_create(&play->model, options, op->value[CREATE_START]);
	play->batch = options->transfer_batch;
	play->loop = options->flags != 0;
	play->owned = play->loop && op->value[CREATE_OWNED] != 0;
	play->polls = 0;
	play->flushes = 0;
	play->stats = (struct tw_stats){0};
	play->dispatch_accepts = op->value[CREATE_DISPATCH] - 1;
	play->accepted.at = play->accepted.count = 0;
	play->model.any_order = play->poor;
	if (play->loop && (play->owned || op->value[CREATE_OUTSIDE] == 0)) {
		play_expect(play, MODEL_NOBODY, "tw_loop_enter", tw_loop_enter(play->engine), 0);
		play->model.life = MODEL_OPEN;
	}
	if (op->value[CREATE_POOR] != 0)
		memory_set(play, false);
}

void play_create(struct play *play, const struct op *op)
{
	struct tw_options options;
	struct tw_engine *engine = NULL;
	bool second = play->engine != NULL;
	int expected;

	if (!second && !clock_make(play, op->value[CREATE_START]))
		return;
	options_fill(play, op, &options);
	expected = create_expected(play, &options);
	play_expect(play, MODEL_NOBODY, "tw_engine_create", tw_engine_create(&options, &engine),
		    expected);
	if (expected == 0) {
		play->engine = engine;
		engine_made(play, op, &options);
	} else if (!second) {
		clock_release(play);
	}
}

void play_memory(struct play *play, const struct op *op)
{
	memory_set(play, op->value[MEMORY_THERE] != 0);
}

void play_destroy(struct play *play, const struct op *op)
{
	enum model_life life = play->model.life;
	bool over = life == MODEL_NEW || life == MODEL_STOPPED;

	(void)op;
	play_expect(play, MODEL_NOBODY, "tw_clock_destroy of a clock in use",
		    tw_clock_destroy(play->clock), -EBUSY);
	play_expect(play, MODEL_NOBODY, "tw_engine_destroy", tw_engine_destroy(play->engine),
		    over ? 0 : -EBUSY);
	if (!over)
		return;
	play->engine = NULL;
	play->model.life = MODEL_NONE;
	clock_release(play);
}

void play_start(struct play *play, const struct op *op)
{
	enum model_life life = play->model.life;
	bool open = life == MODEL_NEW || life == MODEL_OPEN;

	(void)op;
	play_expect(play, MODEL_NOBODY, "tw_engine_start", tw_engine_start(play->engine),
		    open ? 0 : -ESHUTDOWN);
	if (open)
		play->model.life = MODEL_OPEN;
}

static int in_flight(const struct play *play)
{
	return play->accepted.count - play->accepted.at;
}

static int stop_call(struct play *play, int64_t timeout_ns)
{
	return tw_engine_stop(play->engine, play->hooked ? play_hand_back : NULL, play, timeout_ns);
}

/* Begins a stop that cannot end yet, because the worker is held or accepted timeouts have not
 * run. */
static void stop_begin(struct play *play)
{
	play_expect(play, MODEL_NOBODY, "tw_engine_stop beside a callback", stop_call(play, 0),
		    -ETIMEDOUT);
}

static bool hand_back_outstanding(const struct play *play)
{
	for (int id = 0; id < play->model.count; id++) {
		if (play->model.timeout[id].state == MODEL_HANDED_BACK &&
		    play->record[id].kind->finaliser != NULL && !play->record[id].finalised)
			return true;
	}
	return play->model.first != MODEL_NOBODY;
}

void play_stop_complete(struct play *play)
{
	int code;

	play_work_begin(play);
	code = stop_call(play, PLAY_PATIENCE_NS);
	play_work_end(play);
	play_expect(play, MODEL_NOBODY, "tw_engine_stop", code, 0);
	if (!play->hooked)
		model_hand_back_all(&play->model);
	play_expect(play, MODEL_NOBODY, "what stop has left", play->model.first, MODEL_NOBODY);
	play->model.life = MODEL_STOPPED;
}

/* Stops an engine that is running. */
static void open_stop(struct play *play, bool hook)
{
	play->model.life = MODEL_STOPPING;
	play->hooked = hook || in_flight(play) > 0;
	if (play_held(play)) {
		stop_begin(play);
		play_flush_overtaken(play);
		return;
	}
	if (in_flight(play) == 0) {
		play_stop_complete(play);
		return;
	}
	stop_begin(play);
	while (hand_back_outstanding(play))
		play_wait(play, "hand-backs");
}

static void due_run(struct play *play);

static void any_stop(struct play *play, bool hook)
{
	/* A loop's stop waits for executors inside the call. The player is the executor, so it
	 * must run the accepted timeouts first. */
	while (play->loop && in_flight(play) > 0)
		due_run(play);
	/* With a dispatch hook, more callbacks of the same batch may hold the worker after this
	 * one. */
	while (play_held(play) && play->dispatch_accepts >= 0) {
		play_release(play, NULL);
		play_quiet(play);
	}
	if (play->model.life == MODEL_OPEN) {
		open_stop(play, hook);
	} else if (play->model.life == MODEL_STOPPING) {
		stop_begin(play);
	} else {
		play_expect(play, MODEL_NOBODY, "tw_engine_stop", stop_call(play, 0), 0);
		play->model.life = MODEL_STOPPED;
	}
}

void play_stop(struct play *play, const struct op *op)
{
	any_stop(play, op->value[STOP_HOOK] != 0);
}

static void due_run(struct play *play)
{
	struct tw_due due = play->accepted.due[play->accepted.at++];

	play_expect(play, MODEL_NOBODY, "tw_due_run", tw_due_run(&due), 0);
	play_expect(play, MODEL_NOBODY, "a second tw_due_run", tw_due_run(&due), -ESTALE);
}

void play_due(struct play *play, const struct op *op)
{
	if (play->dispatch_accepts >= 0)
		play->dispatch_accepts = op->value[DUE_ACCEPT];
	for (int64_t i = 0; i < op->value[DUE_RUNS] && in_flight(play) > 0; i++)
		due_run(play);
	if (play->model.life == MODEL_STOPPING && !play_held(play) && in_flight(play) == 0)
		play_stop_complete(play);
}

/* Ends what the sequence has left: releases the worker, runs accepted timeouts, stops and
 * destroys the engine. */
void play_finish(struct play *play)
{
	static const struct op run_all = {.code = OP_DUE, .value = {MODEL_TIMEOUTS_MAX, 0}};

	memory_set(play, true);
	if (play->engine == NULL)
		return;
	while (play_held(play)) {
		play_release(play, NULL);
		play_quiet(play);
	}
	while (in_flight(play) > 0)
		play_due(play, &run_all);
	if (play->model.life != MODEL_STOPPED)
		any_stop(play, true);
	play_compare(play);
	play_destroy(play, NULL);
	play_compare(play);
}
