/* SPDX-License-Identifier: MIT */
/*
 * The player: makes one operation after the other. After each it waits until no timeout is due, and
 * compares engine and model. It also implements the baton.
 */
#include "play.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void (*play_failed)(const struct sequence *sequence, int at, const char *what);

_Thread_local struct play_self play_self = {.inside = MODEL_NOBODY};

static struct play the_play;

void play_fail(struct play *play, const char *format, ...)
{
	char what[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	play_failed(play->sequence, play->at, what);
	__builtin_unreachable();
}

void play_expect(struct play *play, int id, const char *what, long long actual, long long expected)
{
	if (actual != expected)
		play_fail(play, "%s is %lld, the model says %lld (timeout %d)", what, actual,
			  expected, id);
}

void play_judge(struct play *play, int id, const char *problem)
{
	if (problem != NULL)
		play_fail(play, "%s (timeout %d)", problem, id);
}

void play_enter(struct play *play)
{
	if (!play_self.player && play_self.depth++ == 0)
		pthread_mutex_lock(&play->baton);
}

void play_leave(struct play *play)
{
	pthread_cond_broadcast(&play->changed);
	if (!play_self.player && --play_self.depth == 0)
		pthread_mutex_unlock(&play->baton);
}

void play_wait(struct play *play, const char *what)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PLAY_PATIENCE_S;
	if (pthread_cond_timedwait(&play->changed, &play->baton, &until) == ETIMEDOUT)
		play_fail(play, "waited in vain for %s", what);
}

struct aside {
	struct play *play;
	const struct op *op;
	play_step *step;
};

static void *aside_body(void *argument)
{
	struct aside *aside = argument;

	play_self.player = true;
	aside->step(aside->play, aside->op);
	return NULL;
}

void play_aside(struct play *play, const struct op *op, play_step *step)
{
	struct aside aside = {play, op, step};
	pthread_t thread;

	if (pthread_create(&thread, NULL, aside_body, &aside) != 0)
		play_fail(play, "no thread");
	pthread_join(thread, NULL);
}

int play_pick(const struct play *play, int64_t back)
{
	int count = play->model.count;

	return count == 0 ? MODEL_NOBODY : count - 1 - (int)(back % count);
}

bool play_held(const struct play *play)
{
	return play->holder != MODEL_NOBODY;
}

static play_step *const steps[OP_CODES] = {
	[OP_CREATE] = play_create,         [OP_DESTROY] = play_destroy,
	[OP_START] = play_start,           [OP_STOP] = play_stop,
	[OP_SCHEDULE] = play_schedule,     [OP_CANCEL] = play_cancel,
	[OP_CLOCK] = play_clock,           [OP_FLUSH] = play_flush,
	[OP_RELEASE] = play_release,       [OP_DUE] = play_due,
	[OP_MEMORY] = play_memory,         [OP_MISUSE] = play_misuse,
	[OP_RESCHEDULE] = play_reschedule,
};

/* Makes one operation. If there is no engine, only create can have an effect. */
static void step_do(struct play *play, const struct op *op)
{
	if (play->engine == NULL && op->code != OP_CREATE)
		return;
	steps[op->code](play, op);
	play_quiet(play);
	play_compare(play);
}

void play_prepare(void)
{
	struct play *play = &the_play;

	fault_init(&play->memory);
	tw_memory_allocator_set(&play->memory.allocator);
	/* Allocates the slabs now. Then a lack of memory affects only engines and slot entries. */
	if (tw_memory_reserve(4 * (uint64_t)MODEL_TIMEOUTS_MAX) != 0)
		play_fail(play, "no memory to begin with");
	pthread_mutex_init(&play->baton, NULL);
	pthread_cond_init(&play->changed, NULL);
}

static void play_reset(struct play *play, const struct sequence *sequence)
{
	model_init(&play->model);
	play->sequence = sequence;
	play->holder = MODEL_NOBODY;
	play->flushing = false;
	play->rejections = play->stale_unseen = 0;
	play->dispatch_accepts = 0;
}

void play_run(const struct sequence *sequence)
{
	struct play *play = &the_play;

	play_self.player = true;
	pthread_mutex_lock(&play->baton);
	play_reset(play, sequence);
	for (play->at = 0; play->at < sequence->count; play->at++)
		step_do(play, &sequence->op[play->at]);
	play_finish(play);
	pthread_mutex_unlock(&play->baton);
}
