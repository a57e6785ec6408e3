/* SPDX-License-Identifier: MIT */
/*
 * Makes the worker's thread by pthread_create or by the user's hook, with all signals blocked.
 */
#include "turn/thread.h"
#include "engine/engine.h"
#include "thread/signals.h"
#include "worker/role.h"

#include <errno.h>
#include <sys/prctl.h>

static void body_abandoned(void *argument)
{
	twi_worker_died(argument);
}

/*
 * The thread's settings that the engine changes. They are restored at the end, because a thread
 * that the thread hook provides may continue after the engine has ended.
 */
struct habits {
	sigset_t signals;
	int slack_ns;
};

static void habits_take(struct habits *ret_before)
{
	sigset_t most;

	twi_signals_fill(&most);
	(void)pthread_sigmask(SIG_SETMASK, &most, &ret_before->signals);
	ret_before->slack_ns = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
	/* The default slack would add 50 us to every sleep. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

static void habits_give(const struct habits *before)
{
	if (before->slack_ns > 0)
		(void)prctl(PR_SET_TIMERSLACK, (unsigned long)before->slack_ns, 0UL, 0UL, 0UL);
	(void)pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}

static void *thread_body(void *argument)
{
	struct tw_engine *engine = argument;
	bool own = engine->thread_hook == NULL;
	struct habits before;

	habits_take(&before);
	if (own) {
		/*
		 * E12: the engine's end (STOPPED, or the death of the worker's thread) publishes
		 * both fields.
		 */
		engine->thread = pthread_self();
		engine->thread_made = true;
		if (engine->thread_name[0] != '\0')
			(void)pthread_setname_np(pthread_self(), engine->thread_name);
	}
	pthread_cleanup_push(body_abandoned, &engine->worker);
	twi_worker_run(&engine->worker);
	pthread_cleanup_pop(0);
	if (!own)
		habits_give(&before);
	return NULL;
}

/*
 * Sets the CPUs of the thread to be created. Fails on musl, which cannot create a thread on a CPU
 * set. A thread that set its CPUs itself would first run on another CPU.
 */
static int cpu_set_fill(pthread_attr_t *attributes, const struct tw_engine *engine)
{
#if defined(__GLIBC__)
	return pthread_attr_setaffinity_np(attributes, engine->cpu_set_bytes, &engine->cpu_set);
#else
	(void)attributes;
	(void)engine;
	return EINVAL;
#endif
}

static int attributes_fill(pthread_attr_t *attributes, const struct tw_engine *engine)
{
	struct sched_param param = {.sched_priority = engine->scheduling_priority};
	int error = 0;

	if (engine->cpu_set_bytes != 0)
		error = cpu_set_fill(attributes, engine);
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
	pthread_t thread;
	int error = pthread_attr_init(&attributes);

	if (error != 0)
		return error;
	error = attributes_fill(&attributes, engine);
	if (error == 0)
		error = pthread_create(&thread, &attributes, thread_body, engine);
	(void)pthread_attr_destroy(&attributes);
	return error;
}

/* Blocks all signals while the thread is created, because a thread inherits its creator's mask. */
static int with_signals_blocked(struct tw_engine *engine)
{
	sigset_t most, before;
	int error;

	twi_signals_fill(&most);
	(void)pthread_sigmask(SIG_SETMASK, &most, &before);
	if (engine->thread_hook != NULL)
		error = engine->thread_hook(engine->thread_context, thread_body, engine);
	else
		error = thread_create(engine);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

void twi_engine_thread_join(struct tw_engine *engine)
{
	int cancel_state;

	if (!engine->thread_made)
		return;
	/*
	 * If the caller were cancelled (pthread_cancel) here, it could not know whether the engine
	 * was freed.
	 */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	(void)pthread_join(engine->thread, NULL);
	(void)pthread_setcancelstate(cancel_state, NULL);
	engine->thread_made = false;
}

int twi_engine_thread_make(struct tw_engine *engine)
{
	int error;

	/* Joins the thread of an earlier start, which has ended. */
	twi_engine_thread_join(engine);
	error = with_signals_blocked(engine);

	if (error > 0)
		error = -error;
	/*
	 * From pthread_create, EAGAIN means that there is no memory, or that there are too many
	 * threads.
	 */
	return error == -EAGAIN ? -ENOMEM : error;
}
