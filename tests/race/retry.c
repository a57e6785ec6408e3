/* SPDX-License-Identifier: MIT */
/*
 * Retries. usage: race_retry [operations] [seed] [seconds]. Ends after this many operations or
 * seconds (0: no bound).
 *
 * A round has an engine and a queue of any policy, with few places or many. Two threads submit more
 * than the queue holds, and so do hooks of tasks, which also cancel. Two threads complete attempts
 * by their handles. They complete some attempts a second time, which must fail. A fifth thread
 * cancels. Attempts run on the worker or in two executors. Meanwhile the engine is stopped.
 *
 * Allowed outcomes: each accepted task ends exactly once, and nothing of it runs after its hook.
 * Attempts of one task never overlap, and none begins after a cancel has returned. An attempt is
 * completed once. If a cancel returns "done", the task has ended and the hook has run; the same
 * holds for "ended". The ends match the results: attempts and completions account for all tasks
 * done and given up, and at least as many tasks are cancelled as cancels returned "done". When stop
 * has returned and the threads are joined, no task is pending, and the queue can be destroyed.
 *
 * An attempt writes ordinary memory in its task's argument. The next attempt, on any thread, and
 * the hook read it, so ThreadSanitizer checks the order between them too.
 *
 * Seen to fail with these defects, in the build with delays:
 * - a hand-back ends a task that another thread owns;
 * - a task is freed although its timer can still expire or be handed back;
 * - `stop`, or `gone`, is not checked;
 * - a completion does not check the attempt in its handle, or is forgotten;
 * - twi_task_swap() is a load and a store;
 * - twi_task_swap() or twi_task_look() is relaxed (found by ThreadSanitizer);
 * - the stack of free tasks (twi_stack) has no counter;
 * - the timer gets its deadline before its task is in the state WAITING;
 * - the place of a dropped task is given back twice;
 * - a task is dropped during its attempt.
 */
#include "dues.h"
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	LIVES = 600, /* how many tasks a round has */
	PLACES_FEW = 24,
	PLACES_MANY = 400,
	RECENT = 48, /* how many of the last tasks completers and cancellers choose from */
	TICK_NS = 2000,
	EXECUTORS = 2,
	ENDS = 5,
	INSIDE_MAX = 3, /* how deep hooks may call hooks, when a submit drops a task */
};

struct life {
	struct tw_retry_handle handle; /* written by submit; valid if `known` is set */
	_Atomic bool known;
	struct tw_retry_handle self; /* the handle of the attempt that is `open` */
	_Atomic bool open;
	_Atomic bool inside;    /* whether an attempt is running */
	_Atomic uint64_t begun; /* how many attempts have begun */
	/* the number of the last attempt that may begin after a cancel; 0: no bound */
	_Atomic uint64_t last;
	_Atomic uint32_t ends;
	_Atomic uint32_t end;
	uint64_t attempts; /* ordinary memory that the attempts write */
	uint64_t random;   /* ordinary memory too */
};

static struct tw_engine *engine;
static struct tw_retry *queue;
static struct life lives[LIVES];
static _Atomic uint64_t issued; /* how many tasks other threads may read */
/* the number of results "done", from attempts and from accepted completions */
static _Atomic uint64_t done_said;
static _Atomic uint64_t give_up_said;
static _Atomic uint64_t cancel_done;
static _Atomic uint64_t ended[ENDS];
static _Atomic uint64_t accepted, operations;
static _Atomic bool over;
static uint32_t policy;
static uint64_t total[ENDS];
static _Atomic uint64_t stale, completed, cancel_running, rejected, from_hooks;

static void said(int result)
{
	if (result == TW_RETRY_DONE)
		atomic_fetch_add(&done_said, 1);
	else if (result == TW_RETRY_GIVE_UP)
		atomic_fetch_add(&give_up_said, 1);
}

static int some_result(uint64_t *random)
{
	uint64_t dice = race_random(random) % 16;

	return dice < 2 ? TW_RETRY_DONE : dice == 2 ? TW_RETRY_GIVE_UP : TW_RETRY_AGAIN;
}

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct life *life = arg;
	int result;

	RACE_CHECK(!atomic_exchange(&life->inside, true));
	RACE_CHECK(atomic_load(&life->ends) == 0);
	RACE_CHECK(attempt == ++life->attempts);
	RACE_CHECK(atomic_load(&life->last) == 0 || attempt <= atomic_load(&life->last));
	atomic_store(&life->begun, attempt);
	result =
		race_random(&life->random) % 4 == 0 ? some_result(&life->random) : TW_RETRY_PENDING;
	said(result);
	atomic_store(&life->inside, false);
	if (result == TW_RETRY_PENDING) {
		life->self = self;
		atomic_store(&life->open, true);
	}
	return result;
}

static void hook_calls(void);

static void on_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct life *life = arg;

	RACE_CHECK(!atomic_load(&life->inside));
	RACE_CHECK(attempts == life->attempts);
	atomic_store(&life->end, (uint32_t)end);
	RACE_CHECK(atomic_fetch_add(&life->ends, 1) == 0);
	atomic_fetch_add(&ended[end], 1);
	hook_calls();
}

static const struct tw_retry_schedule schedule =
	TW_RETRY_EXPONENTIAL(1000, 16000, 200, TW_RETRY_JITTER_FULL);
static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &schedule, 0);

static struct life *life_take(uint64_t *random)
{
	uint64_t number = atomic_fetch_add(&issued, 1);

	if (number >= LIVES)
		return NULL;
	lives[number].random = race_random(random) | 1;
	return &lives[number];
}

/* Submits a task. Returns false if the round has no more tasks, or the engine is stopped. */
static bool life_submit(uint64_t *random)
{
	struct life *life = life_take(random);
	int64_t delay_ns = (int64_t)(race_random(random) % 4000);
	int result;

	if (life == NULL)
		return false;
	result = tw_retry_submit(queue, delay_ns, &kind, life, &life->handle);
	atomic_fetch_add(&operations, 1);
	if (result == -ESHUTDOWN)
		return false;
	if (result == -EAGAIN) {
		/* A submit is rejected if the attempts of all tasks are running. */
		RACE_CHECK(policy != TW_RETRY_DROP_NEWEST && atomic_load(&life->ends) == 0);
		atomic_fetch_add(&rejected, 1);
		return true;
	}
	atomic_fetch_add(&accepted, 1);
	if (result == TW_RETRY_SUBMIT_DROPPED) {
		RACE_CHECK(policy == TW_RETRY_DROP_NEWEST && atomic_load(&life->ends) == 1);
		RACE_CHECK(atomic_load(&life->end) == TW_RETRY_END_DROPPED);
	} else {
		RACE_CHECK(result == TW_RETRY_SUBMIT_ACCEPTED);
		atomic_store(&life->known, true);
	}
	return true;
}

static void *submit_main(void *argument)
{
	uint64_t random = (uint64_t)(uintptr_t)argument | 1;

	while (life_submit(&random))
		if (race_random(&random) % 8 == 0)
			(void)sched_yield();
	return NULL;
}

static struct life *some_life(uint64_t *random)
{
	uint64_t count = atomic_load(&issued);
	uint64_t back = race_random(random) % RECENT;

	if (count > LIVES)
		count = LIVES;
	return count == 0 ? NULL : &lives[back < count ? count - 1 - back : 0];
}

static void life_complete(struct life *life, uint64_t *random)
{
	int result = some_result(random), code;
	struct tw_retry_handle self;
	bool open = true;

	if (!atomic_compare_exchange_strong(&life->open, &open, false))
		return;
	self = life->self;
	code = tw_retry_complete(self, (enum tw_retry_result)result);
	RACE_CHECK(code == 0 || code == -ESTALE);
	if (code == 0) {
		said(result);
		atomic_fetch_add(&completed, 1);
		if (race_random(random) % 4 == 0)
			RACE_CHECK(tw_retry_complete(self, TW_RETRY_DONE) == -ESTALE);
	} else {
		/* Another thread has ended the task first. */
		atomic_fetch_add(&stale, 1);
	}
	atomic_fetch_add(&operations, 1);
}

static void *complete_main(void *argument)
{
	uint64_t random = (uint64_t)(uintptr_t)argument | 1;

	while (!atomic_load(&over)) {
		struct life *life = some_life(&random);

		if (life != NULL)
			life_complete(life, &random);
		if (race_random(&random) % 32 == 0)
			(void)sched_yield();
	}
	return NULL;
}

static void life_cancel(struct life *life)
{
	int outcome;

	if (!atomic_load(&life->known))
		return;
	outcome = tw_retry_cancel(life->handle);
	RACE_CHECK(outcome >= TW_RETRY_CANCEL_DONE && outcome <= TW_RETRY_CANCEL_ENDED);
	if (outcome == TW_RETRY_CANCEL_RUNNING)
		atomic_fetch_add(&cancel_running, 1);
	else
		RACE_CHECK(atomic_load(&life->ends) == 1);
	if (outcome == TW_RETRY_CANCEL_DONE) {
		RACE_CHECK(atomic_load(&life->end) == TW_RETRY_END_CANCELLED);
		atomic_fetch_add(&cancel_done, 1);
	}
	/* One attempt that was about to begin may still begin. */
	atomic_store(&life->last, atomic_load(&life->begun) + 1);
	atomic_fetch_add(&operations, 1);
}

/* Makes calls that a hook may make. Any thread may call it. */
static void hook_calls(void)
{
	static _Thread_local int inside;
	uint64_t random = race_chance() | 1;
	struct life *life = some_life(&random);

	if (inside == INSIDE_MAX || random % 8 != 0)
		return;
	inside++;
	if (race_random(&random) % 2 == 0)
		(void)life_submit(&random);
	else if (life != NULL)
		life_cancel(life);
	inside--;
	atomic_fetch_add(&from_hooks, 1);
}

static void *cancel_main(void *argument)
{
	uint64_t random = (uint64_t)(uintptr_t)argument | 1;

	while (!atomic_load(&over)) {
		struct life *life = some_life(&random);

		if (life != NULL && race_random(&random) % 4 == 0)
			life_cancel(life);
		else
			(void)sched_yield();
	}
	return NULL;
}

static void round_open(bool dispatches, uint32_t places)
{
	struct tw_retry_options queue_options;
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	options.dispatch = dispatches ? dues_dispatch : NULL;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_retry_options_init(&queue_options, sizeof queue_options) == 0);
	queue_options.pending_limit = places;
	queue_options.policy = policy;
	RACE_CHECK(tw_retry_create(engine, &queue_options, &queue) == 0);
	memset(lives, 0, sizeof lives);
	atomic_store(&over, false);
	dues_open();
	atomic_store(&issued, 0);
	atomic_store(&accepted, 0);
	atomic_store(&done_said, 0);
	atomic_store(&give_up_said, 0);
	atomic_store(&cancel_done, 0);
	for (int end = 0; end < ENDS; end++)
		atomic_store(&ended[end], 0);
}

static void round_close(void)
{
	uint64_t sum = 0;

	for (int end = 0; end < ENDS; end++) {
		sum += ended[end];
		total[end] += ended[end];
	}
	RACE_CHECK(sum == accepted);
	RACE_CHECK(ended[TW_RETRY_END_DONE] == done_said);
	RACE_CHECK(ended[TW_RETRY_END_GIVEN_UP] == give_up_said);
	RACE_CHECK(ended[TW_RETRY_END_CANCELLED] >= cancel_done);
	RACE_CHECK(tw_retry_pending(queue) == 0);
	RACE_CHECK(tw_retry_destroy(queue) == 0);
	RACE_CHECK(tw_engine_pending(engine) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

static void round_run(uint64_t *random)
{
	bool dispatches = race_random(random) % 2 == 0;
	uint64_t stop_at = 1 + race_random(random) % LIVES;
	void *(*const bodies[])(void *) = {submit_main, submit_main, complete_main, complete_main,
					   cancel_main, dues_main,   dues_main};
	size_t threads = sizeof bodies / sizeof *bodies - (dispatches ? 0 : EXECUTORS);
	pthread_t thread[sizeof bodies / sizeof *bodies];

	/* Mostly chooses the policy that has the most steps to test. */
	policy = (uint32_t)(race_random(random) % 6);
	policy = policy > TW_RETRY_DROP_OLDEST ? TW_RETRY_DROP_OLDEST : policy;
	round_open(dispatches, race_random(random) % 2 ? PLACES_FEW : PLACES_MANY);
	race_start(thread, bodies, threads, random);
	while (atomic_load(&issued) < stop_at)
		(void)sched_yield();
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	atomic_store(&over, true);
	dues_close();
	race_join(thread, threads);
	round_close();
}

static bool all_seen(void)
{
	for (int end = 0; end < ENDS; end++)
		if (total[end] == 0)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	uint64_t rounds = race_rounds(argc, argv, 3, &operations, round_run, all_seen);

	printf("%" PRIu64 " rounds, %" PRIu64 " operations: %" PRIu64 " done, %" PRIu64
	       " given up, %" PRIu64 " dropped, %" PRIu64 " cancelled, %" PRIu64
	       " stopped; %" PRIu64 " completions, %" PRIu64 " too late; %" PRIu64
	       " cancels of what ran; %" PRIu64 " rejected; %" PRIu64 " calls in hooks; lost 0\n",
	       rounds, operations, total[TW_RETRY_END_DONE], total[TW_RETRY_END_GIVEN_UP],
	       total[TW_RETRY_END_DROPPED], total[TW_RETRY_END_CANCELLED],
	       total[TW_RETRY_END_STOPPED], completed, stale, cancel_running, rejected, from_hooks);
	RACE_CHECK(rounds < RACE_ROUNDS || all_seen());
	return 0;
}
