/* SPDX-License-Identifier: MIT */
/*
 * Waits until the worker has run the due timeouts.
 *
 * A flush does not return while a callback holds the worker. So if a pending timeout may hold it,
 * another thread makes the flush. The player then waits until that flush ends or the worker is
 * held.
 */
#include "play.h"

#include <errno.h>

static int code_expected(const struct play *play)
{
	return play->model.life == MODEL_NEW || play->model.life == MODEL_OPEN ? 0 : -ESHUTDOWN;
}

static void flush_begin(struct play *play)
{
	model_flush(&play->model);
}

static void flush_end(struct play *play, int code)
{
	play_expect(play, MODEL_NOBODY, "tw_engine_flush", code, code_expected(play));
	if (play->model.life != MODEL_OPEN)
		return;
	play->flushes++;
	play_judge(play, MODEL_NOBODY, model_flushed(&play->model));
}

void play_work_begin(struct play *play)
{
	play_self.player = !play->loop;
	pthread_mutex_unlock(&play->baton);
}

void play_work_end(struct play *play)
{
	pthread_mutex_lock(&play->baton);
	play_self.player = true;
}

/* More polls than any sequence needs. If a loop needs more, it never comes to rest. */
enum { POLLS_MAX = 100000 };

static void poll_once(struct play *play)
{
	static const uint64_t budgets[] = {0, 1, 0, 7, 100};
	uint64_t budget = budgets[play->polls++ % (sizeof(budgets) / sizeof(budgets[0]))];
	uint64_t before = play->model.counts.expired;
	int64_t expired;

	play_work_begin(play);
	expired = tw_engine_poll(play->engine, budget);
	play_work_end(play);
	play_expect(play, MODEL_NOBODY, "tw_engine_poll", expired,
		    (long long)(play->model.counts.expired - before));
	/* If a budget leaves due timeouts for the next poll, they mix with overdue ones. */
	play->model.any_order |= budget != 0 && (uint64_t)expired >= budget;
	if (budget != 0 && play->dispatch_accepts < 0 && (uint64_t)expired > budget)
		play_fail(play, "a poll runs %lld with a budget of %lld", (long long)expired,
			  (long long)budget);
}

/* Polls as often as the engine asks for it. The engine must not ask for a time later than the
 * first due time. */
static int polls_take(struct play *play)
{
	const struct model *model = &play->model;
	int64_t next_ns;
	int polls = 0;

	do {
		poll_once(play);
		next_ns = tw_engine_next_due(play->engine);
		if (model->first != MODEL_NOBODY && next_ns > model_poll_ns(model))
			play_fail(play, "the next poll is needed at %lld, after timeout %d is due",
				  (long long)next_ns, model->first);
	} while (next_ns <= model->now_ns && ++polls < POLLS_MAX);
	play_expect(play, MODEL_NOBODY, "a loop that does not come to rest", polls == POLLS_MAX,
		    false);
	return 0;
}

/* Flushes. The baton is free meanwhile, because the worker needs it for callbacks. */
static int engine_flush(struct play *play)
{
	int code;

	play_work_begin(play);
	code = tw_engine_flush(play->engine, PLAY_PATIENCE_NS);
	play_work_end(play);
	return code;
}

static void flush_here(struct play *play)
{
	int code;

	flush_begin(play);
	code = play->loop && play->model.life == MODEL_OPEN ? polls_take(play) : engine_flush(play);
	flush_end(play, code);
}

static void *flusher_body(void *argument)
{
	struct play *play = argument;
	int code = tw_engine_flush(play->engine, PLAY_PATIENCE_NS);

	play_enter(play);
	play->flush_code = code;
	play->flushed = true;
	play_leave(play);
	return NULL;
}

static void flusher_join(struct play *play)
{
	pthread_mutex_unlock(&play->baton);
	pthread_join(play->flusher, NULL);
	pthread_mutex_lock(&play->baton);
	play->flushing = false;
}

static void flusher_await(struct play *play)
{
	while (play->flushing && !play->flushed && !play_held(play))
		play_wait(play, "a flush");
	if (!play->flushing || !play->flushed)
		return;
	flusher_join(play);
	flush_end(play, play->flush_code);
}

static void flush_aside(struct play *play)
{
	flush_begin(play);
	play->flushing = true;
	play->flushed = false;
	if (pthread_create(&play->flusher, NULL, flusher_body, play) != 0)
		play_fail(play, "no thread");
	flusher_await(play);
}

/* Returns true if the timeout's callback may still begin and would hold the worker. */
static bool may_hold(const struct play *play, int id)
{
	enum model_state state = play->model.timeout[id].state;

	return play->record[id].script.hold && (state == MODEL_PENDING || state == MODEL_DUE);
}

static bool any_holder(const struct play *play)
{
	for (int id = 0; id < play->model.count; id++) {
		if (may_hold(play, id))
			return true;
	}
	return false;
}

static void flush_once(struct play *play)
{
	if (play->model.life == MODEL_OPEN && !play->loop && any_holder(play))
		flush_aside(play);
	else
		flush_here(play);
}

/*
 * Returns whether another flush is needed. If a callback makes a timeout due, the worker may need
 * one turn more than the flush waits for, and a run of that turn may not have ended yet.
 */
static bool worker_busy(const struct play *play)
{
	return model_any_due(&play->model) || play->model.overshoot;
}

void play_quiet(struct play *play)
{
	while (play->engine != NULL && play->model.life == MODEL_OPEN && !play_held(play) &&
	       worker_busy(play))
		flush_once(play);
}

void play_flush(struct play *play, const struct op *op)
{
	int code;

	(void)op;
	if (!play_held(play)) {
		flush_once(play);
		return;
	}
	code = code_expected(play);
	play_expect(play, MODEL_NOBODY, "tw_engine_flush beside a callback",
		    tw_engine_flush(play->engine, 0), code == 0 ? -ETIMEDOUT : code);
}

void play_flush_overtaken(struct play *play)
{
	if (!play->flushing)
		return;
	while (!play->flushed)
		play_wait(play, "a flush that stop has overtaken");
	flusher_join(play);
	if (play->flush_code != 0)
		flush_end(play, play->flush_code);
}

void play_release(struct play *play, const struct op *op)
{
	(void)op;
	if (!play_held(play))
		return;
	play->holder = MODEL_NOBODY;
	pthread_cond_broadcast(&play->changed);
	if (play->model.life == MODEL_STOPPING) {
		play_stop_complete(play);
		return;
	}
	flusher_await(play);
	/* The flush that has ended may have been served by an earlier turn than the one in which
	 * the worker was held. So another flush is needed. */
	if (!play_held(play))
		flush_once(play);
}
