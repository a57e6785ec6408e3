/* SPDX-License-Identifier: MIT */
#include "runtime/fiber.h"

#include "runtime/explore.h"
#include "runtime/memory.h"
#include "runtime/system.h"
#include "runtime/trace.h"

#include <string.h>
#include <ucontext.h>

enum {
	STACK_BYTES = 256 << 10,
	/* A run with more steps than this must be in an endless loop, and fails. */
	STEPS_MAX = 20000,
};

#define TIME_BEGIN_NS INT64_C(1000000000)

struct fibers fibers MODEL_STATE = {
	.current = &fibers.fiber[0], .begin_ns = TIME_BEGIN_NS, .now_ns = TIME_BEGIN_NS};

static ucontext_t home MODEL_STATE;
static jmp_buf end_of_run MODEL_STATE;
static struct fiber *first MODEL_STATE;

static void fiber_switch(struct fiber *to)
{
	struct fiber *from = fibers.current;

	if (to == from)
		return;
	if (_setjmp(from->place) == 0) {
		fibers.current = to;
		_longjmp(to->place, 1);
	}
}

static bool fiber_runnable(struct fiber *fiber)
{
	return fiber->life == FIBER_ALIVE && (fiber->ready == NULL || fiber->ready(fiber));
}

/* Lists the fibers that can continue. If the current one can, it comes first. */
static unsigned runnable_list(struct fiber **ret_list)
{
	unsigned count = 0;

	if (fiber_runnable(fibers.current))
		ret_list[count++] = fibers.current;
	for (unsigned i = 0; i < fibers.count; i++) {
		struct fiber *fiber = &fibers.fiber[i];

		if (fiber != fibers.current && fiber_runnable(fiber))
			ret_list[count++] = fiber;
	}
	return count;
}

static void blocked_tell(void)
{
	for (unsigned i = 0; i < fibers.count; i++) {
		struct fiber *fiber = &fibers.fiber[i];

		if (fiber->life == FIBER_ALIVE)
			trace_say("fiber %u waits for %s %s", i, fiber->waits_text,
				  trace_symbol(fiber->waits_for));
	}
	model_fail("deadlock, or a wake was lost: nobody can go on");
}

/* Moves the time to the earliest end of a timed wait, because no fiber can continue. */
static struct fiber *time_moves(void)
{
	struct fiber *soonest = NULL;

	for (unsigned i = 0; i < fibers.count; i++) {
		struct fiber *fiber = &fibers.fiber[i];

		if (fiber->life == FIBER_ALIVE && fiber->until_ns != INT64_MAX &&
		    (soonest == NULL || fiber->until_ns < soonest->until_ns))
			soonest = fiber;
	}
	if (soonest == NULL)
		blocked_tell();
	if (soonest->until_ns > fibers.now_ns)
		fibers.now_ns = soonest->until_ns;
	soonest->ready = NULL;
	return soonest;
}

static bool all_ended(void)
{
	for (unsigned i = 0; i < fibers.count; i++) {
		if (fibers.fiber[i].life == FIBER_ALIVE)
			return false;
	}
	return true;
}

/*
 * Continues with another fiber, because the current one waits or has ended. This is no preemption.
 */
static void fiber_yield(void)
{
	struct fiber *list[MODEL_FIBERS];
	unsigned count = runnable_list(list);

	if (count == 0 && all_ended())
		_longjmp(end_of_run, 1);
	if (count == 0)
		fiber_switch(time_moves());
	else
		fiber_switch(list[explore_schedule(list, count, false)]);
}

void fiber_point(bool contended)
{
	struct fiber *list[MODEL_FIBERS];
	unsigned count, taken;

	if (++fibers.steps > STEPS_MAX)
		model_fail("no end after %d steps: somebody spins", STEPS_MAX);
	if (!explore_may_preempt(contended))
		return;
	count = runnable_list(list);
	taken = explore_schedule(list, count, true);
	if (taken == 0)
		return;
	fibers.preemptions++;
	fiber_switch(list[taken]);
}

bool fiber_wait(bool (*ready)(struct fiber *fiber), const void *what, const char *text,
		int64_t until_ns)
{
	struct fiber *self = fiber_self();
	bool in_time;

	self->ready = ready;
	self->waits_for = what;
	self->waits_text = text;
	self->until_ns = until_ns;
	if (!ready(self))
		fiber_yield();
	in_time = self->ready != NULL;
	self->ready = NULL;
	self->until_ns = INT64_MAX;
	return in_time;
}

void fiber_tick(struct fiber *fiber)
{
	fiber->epoch++;
	fiber->now.w[fiber->number] = fiber->now.r[fiber->number] = fiber->epoch;
	fiber->reads.w[fiber->number] = fiber->reads.r[fiber->number] = fiber->epoch;
}

void fiber_acquire(struct fiber *fiber, const struct model_clock *other)
{
	clock_join(&fiber->now, other);
	clock_join(&fiber->reads, other);
}

void fiber_exit(void)
{
	_longjmp(fiber_self()->base, 2);
}

/* Sets up a fiber's stack, which is done once. Each run starts the fiber from here again. */
static void fiber_home(void)
{
	struct fiber *self = first;

	if (_setjmp(self->place) == 0)
		setcontext(&home);
	for (;;) {
		if (_setjmp(self->base) == 0)
			(void)self->body(self->argument);
		system_thread_ends();
		self->life = FIBER_ENDED;
		fiber_tick(self);
		trace_event("ends", NULL, 0, NULL);
		if (_setjmp(self->place) == 0)
			fiber_yield();
	}
}

static void stack_begin(struct fiber *fiber)
{
	ucontext_t context;
	volatile bool begun = false;

	getcontext(&context);
	context.uc_stack.ss_size = STACK_BYTES;
	fiber->stack = memory_of_runtime(STACK_BYTES);
	context.uc_stack.ss_sp = fiber->stack;
	context.uc_link = NULL;
	makecontext(&context, fiber_home, 0);
	first = fiber;
	getcontext(&home);
	if (!begun) {
		begun = true;
		setcontext(&context);
	}
}

void fibers_init(void)
{
	for (unsigned i = 0; i < MODEL_FIBERS; i++) {
		fibers.fiber[i].number = i;
		stack_begin(&fibers.fiber[i]);
	}
}

static void fiber_begin(struct fiber *fiber, void *(*body)(void *argument), void *argument)
{
	fiber->life = FIBER_ALIVE;
	fiber->body = body;
	fiber->argument = argument;
	fiber->epoch = 0;
	fiber->ready = NULL;
	fiber->until_ns = INT64_MAX;
	fiber->section_depth = 0;
	fiber->speculative = NULL;
	memset(&fiber->now, 0, sizeof fiber->now);
	memset(&fiber->reads, 0, sizeof fiber->reads);
	memset(&fiber->pending, 0, sizeof fiber->pending);
	memset(&fiber->released, 0, sizeof fiber->released);
	memset(&fiber->flushed, 0, sizeof fiber->flushed);
	memset(&fiber->barriers, 0, sizeof fiber->barriers);
}

struct fiber *fiber_make(void *(*body)(void *argument), void *argument)
{
	struct fiber *self = fiber_self();
	struct fiber *made = &fibers.fiber[fibers.count];

	if (fibers.count == MODEL_FIBERS || !fibers.running)
		model_fail("no fiber for one more thread");
	fibers.count++;
	fiber_begin(made, body, argument);
	fiber_acquire(made, &self->now);
	fiber_tick(made);
	fiber_tick(self);
	explore_fiber_made(made);
	return made;
}

void fibers_run(void *(*body)(void *argument))
{
	for (unsigned i = 0; i < MODEL_FIBERS; i++)
		fibers.fiber[i].life = FIBER_NONE;
	fibers.count = 1;
	fibers.steps = 0;
	fibers.preemptions = 0;
	fibers.now_ns = fibers.begin_ns;
	fibers.current = &fibers.fiber[0];
	fiber_begin(fibers.current, body, NULL);
	fiber_tick(fibers.current);
	explore_fiber_made(fibers.current);
	fibers.running = true;
	if (_setjmp(end_of_run) == 0)
		_longjmp(fibers.current->place, 1);
	fibers.running = false;
	fibers.current = &fibers.fiber[0];
}

bool fiber_on_stack(const void *address)
{
	const char *at = address;
	const char *stack = fibers.current->stack;

	return at >= stack && at < stack + STACK_BYTES;
}

bool fiber_alone(void)
{
	unsigned alive = 0;

	for (unsigned i = 0; i < fibers.count; i++)
		alive += fibers.fiber[i].life == FIBER_ALIVE;
	return alive == 1;
}

static bool others_idle(struct fiber *self)
{
	for (unsigned i = 0; i < fibers.count; i++) {
		if (i != self->number && fiber_runnable(&fibers.fiber[i]))
			return false;
	}
	return true;
}

void model_wait_idle(void)
{
	(void)fiber_wait(others_idle, NULL, "the others", INT64_MAX);
	for (unsigned i = 0; i < fibers.count; i++) {
		fiber_acquire(fiber_self(), &fibers.fiber[i].now);
		fiber_tick(&fibers.fiber[i]);
	}
}

unsigned model_self(void)
{
	return fibers.current->number;
}

void model_pass_ns(int64_t ns)
{
	fibers.begin_ns += ns;
	fibers.now_ns = fibers.begin_ns;
}

int64_t model_now_ns(void)
{
	return fibers.now_ns;
}
