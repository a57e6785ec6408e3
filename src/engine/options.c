/* SPDX-License-Identifier: MIT */
/*
 * Reads options by their size, fills in the defaults, and checks them.
 */
#include "base/bits.h"
#include "base/sized.h"
#include "base/tick.h"
#include "clock/clock.h"
#include "engine/engine.h"

#include <errno.h>
#include <string.h>

#define TICK_NS_DEFAULT UINT64_C(1000000)
#define TICK_NS_MIN UINT64_C(1000)
#define TICK_NS_MAX (UINT64_C(3600) * TWI_NS_PER_S)
#define SPIN_NS_MAX UINT64_C(1000000)
#define SLOTS_DEFAULT 4096
#define SLOTS_MAX (UINT32_C(1) << 24)

#define FLAGS (TW_ENGINE_ORDERED | TW_ENGINE_LOOP | TW_ENGINE_ALIGNED)

/* The size of struct tw_options in version 0.1.0. No caller's struct is smaller. */
#define OPTIONS_BYTES_MIN (offsetof(struct tw_options, drop_context) + sizeof(void *))

static const struct tw_options defaults = {
	.size = sizeof(struct tw_options),
	.tick_ns = TICK_NS_DEFAULT,
	.slots = SLOTS_DEFAULT,
	.transfer_batch = TW_TRANSFER_BATCH_MAX,
	.check = TW_CHECK_NONE,
	.wheel = TW_WHEEL_HIERARCHICAL,
	.scheduling_policy = -1,
	.thread_name = "tickwheel",
};

int tw_options_init(struct tw_options *ret_options, size_t size)
{
	return twi_options_fill(ret_options, size, OPTIONS_BYTES_MIN, &defaults, sizeof defaults);
}

/*
 * Copies the fields that both the caller and the library know. If the caller's struct is longer,
 * its tail must be zero.
 */
static int options_copy(const struct tw_options *options, struct tw_options *ret)
{
	size_t known = sizeof *ret;
	int error = twi_size_check(options, options->size, OPTIONS_BYTES_MIN, known);

	if (error != 0)
		return error;
	*ret = defaults;
	memcpy(ret, options, options->size < known ? options->size : known);
	ret->size = known;
	return 0;
}

static bool numbers_right(const struct tw_options *options)
{
	return (options->flags & ~(uint64_t)FLAGS) == 0 &&
	       options->wheel <= TW_WHEEL_HIERARCHICAL && options->tick_ns >= TICK_NS_MIN &&
	       options->tick_ns <= TICK_NS_MAX && options->slots >= 1 &&
	       options->slots <= SLOTS_MAX && options->transfer_batch >= 1 &&
	       options->transfer_batch <= TW_TRANSFER_BATCH_MAX &&
	       options->check <= TW_CHECK_FULL && options->measure <= TW_MEASURE_SAMPLES;
}

/* Returns whether the policy is known. With -1 (the policy is inherited) the priority must be 0. */
static bool scheduling_right(int32_t policy, int32_t priority)
{
	if (policy == -1)
		return priority == 0;
	return policy == SCHED_OTHER || policy == SCHED_FIFO || policy == SCHED_RR;
}

static bool thread_right(const struct tw_options *options)
{
	if ((options->cpu_set == NULL) != (options->cpu_set_bytes == 0) ||
	    options->cpu_set_bytes > sizeof(cpu_set_t))
		return false;
	if (!scheduling_right(options->scheduling_policy, options->scheduling_priority))
		return false;
	return options->thread == NULL ||
	       (options->cpu_set == NULL && options->scheduling_policy == -1);
}

/* Returns how many CPUs the worker may run on. */
static int cpu_count(const struct tw_options *options)
{
	cpu_set_t own;

	if (options->cpu_set != NULL)
		return CPU_COUNT_S(options->cpu_set_bytes, (const cpu_set_t *)options->cpu_set);
	return sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) : 1;
}

/*
 * Returns false if a real-time thread with a single CPU is to spin, or if the spin is too long. On
 * a single CPU no other thread could interrupt the spin, not even the thread that would end it.
 */
static bool spin_right(const struct tw_options *options)
{
	bool real_time =
		options->scheduling_policy == SCHED_FIFO || options->scheduling_policy == SCHED_RR;

	return options->spin_ns == 0 ||
	       (options->spin_ns <= SPIN_NS_MAX && (!real_time || cpu_count(options) > 1));
}

static bool late_right(const struct tw_options *options)
{
	if (options->late_ns == 0)
		return options->on_late == NULL;
	return options->late_ns >= options->tick_ns && options->late_ns <= (uint64_t)INT64_MAX;
}

static bool rejection_right(const struct tw_options *options)
{
	if (options->rejection > TW_REJECTION_DROP)
		return false;
	if (options->rejection != TW_REJECTION_RUN && options->dispatch == NULL)
		return false;
	return (options->on_drop != NULL) == (options->rejection == TW_REJECTION_DROP);
}

static bool slow_right(const struct tw_options *options)
{
	if (options->slow_ns == 0)
		return options->on_slow == NULL;
	return options->slow_ns <= (uint64_t)INT64_MAX;
}

/* Returns false if the tick is finer than the clock's resolution. */
static bool clock_right(const struct tw_options *options)
{
	return options->clock == NULL ||
	       (uint64_t)options->clock->resolution_ns <= options->tick_ns;
}

/*
 * Returns false if an option about the thread is set in loop mode, where the engine has no thread.
 */
static bool loop_right(const struct tw_options *options)
{
	return (options->flags & TW_ENGINE_LOOP) == 0 ||
	       (options->thread == NULL && options->cpu_set == NULL &&
		options->scheduling_policy == -1);
}

int twi_options_read(const struct tw_options *options, struct tw_options *ret)
{
	uint64_t revolution_ns;
	int error = options_copy(options != NULL ? options : &defaults, ret);

	if (error != 0)
		return error;
	if (!numbers_right(ret) || !thread_right(ret) || !loop_right(ret) || !clock_right(ret) ||
	    !spin_right(ret) || !late_right(ret) || !slow_right(ret) || !rejection_right(ret))
		return -EINVAL;
	ret->slots = twi_round_up_pow2(ret->slots);
	revolution_ns = twi_boundary_ns(ret->slots, ret->tick_ns);
	return revolution_ns > (uint64_t)INT64_MAX ? -ERANGE : 0;
}
