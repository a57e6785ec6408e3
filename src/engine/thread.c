/* SPDX-License-Identifier: MIT */
/*
 * The worker's thread: made by pthread_create or by the user's hook, with all signals blocked.
 */
#include "engine/engine.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>

static void body_abandoned(void *argument)
{
	twi_worker_died(argument);
}

static void *thread_body(void *argument)
{
	struct tw_engine *engine = argument;

	if (engine->thread_hook == NULL && engine->thread_name[0] != '\0')
		(void)pthread_setname_np(pthread_self(), engine->thread_name);
	/* The default slack would add 50 µs to every sleep. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	pthread_cleanup_push(body_abandoned, &engine->worker);
	twi_worker_run(&engine->worker);
	pthread_cleanup_pop(0);
	return NULL;
}

static int attributes_fill(pthread_attr_t *attributes, const struct tw_engine *engine)
{
	struct sched_param param = {.sched_priority = engine->scheduling_priority};
	int error = 0;

	if (engine->cpu_set_bytes != 0)
		error = pthread_attr_setaffinity_np(attributes, engine->cpu_set_bytes,
						    &engine->cpu_set);
	if (error != 0 || engine->scheduling_policy == -1)
		return error;
	error = pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
	if (error == 0)
		error = pthread_attr_setschedpolicy(attributes, engine->scheduling_policy);
	if (error == 0)
		error = pthread_attr_setschedparam(attributes, &param);
	return error;
}

static int thread_create(struct tw_engine *engine)
{
	pthread_attr_t attributes;
	int error = pthread_attr_init(&attributes);

	if (error != 0)
		return error;
	error = attributes_fill(&attributes, engine);
	if (error == 0)
		error = pthread_create(&engine->thread, &attributes, thread_body, engine);
	if (error == 0)
		engine->thread_made = true;
	(void)pthread_attr_destroy(&attributes);
	return error;
}

/* A thread inherits the mask of its maker. */
static int with_signals_blocked(struct tw_engine *engine)
{
	sigset_t all, before;
	int error;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (engine->thread_hook != NULL)
		error = engine->thread_hook(engine->thread_context, thread_body, engine);
	else
		error = thread_create(engine);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

void twi_engine_thread_join(struct tw_engine *engine)
{
	if (engine->thread_made)
		(void)pthread_join(engine->thread, NULL);
	engine->thread_made = false;
}

int twi_engine_thread_make(struct tw_engine *engine)
{
	int error;

	/* One that died before. */
	twi_engine_thread_join(engine);
	error = with_signals_blocked(engine);

	if (error > 0)
		error = -error;
	/* For a thread, the system says EAGAIN where it means: no memory, or too many. */
	return error == -EAGAIN ? -ENOMEM : error;
}
