/* SPDX-License-Identifier: MIT */
/*
 * Schedules: they decide which delay comes next, how jitter changes it, and when no delay is left.
 *
 * No state here is shared: only a task's owner counts the delays of the task. The jitter is a
 * function of the queue's seed, the task's number and the delay's number, so it does not depend on
 * threads.
 */
#include "base/sized.h"
#include "retry/task.h"

#include <errno.h>

enum {
	PERCENT = 100,
	GROWTH_MAX = 100000,
};

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static const int64_t failback[] = {5 * SECOND};
static const int64_t payment[] = {
	15 * SECOND, 15 * SECOND, 30 * SECOND, 3 * MINUTE,  10 * MINUTE,
	20 * MINUTE, 30 * MINUTE, 30 * MINUTE, 30 * MINUTE, 60 * MINUTE,
	3 * HOUR,    3 * HOUR,    3 * HOUR,    6 * HOUR,    6 * HOUR,
};

struct table {
	const int64_t *delays_ns;
	uint64_t count;
	bool repeats;
};

static struct table table_of(const struct tw_retry_schedule *schedule)
{
	bool repeats = (schedule->flags & TW_RETRY_FLAG_REPEAT_LAST) != 0;

	if (schedule->form == TW_RETRY_FORM_FAILBACK)
		return (struct table){failback, 1, true};
	if (schedule->form == TW_RETRY_FORM_PAYMENT)
		return (struct table){payment, sizeof payment / sizeof *payment, repeats};
	return (struct table){schedule->delays_ns, schedule->delay_count, repeats};
}

static bool table_right(const struct tw_retry_schedule *schedule)
{
	if (schedule->delays_ns == NULL || schedule->delay_count == 0)
		return false;
	for (uint64_t i = 0; i < schedule->delay_count; i++)
		if (schedule->delays_ns[i] < 0)
			return false;
	return true;
}

static bool growth_right(const struct tw_retry_schedule *schedule)
{
	return schedule->base_ns >= 1 && schedule->cap_ns >= schedule->base_ns &&
	       schedule->growth_percent >= PERCENT && schedule->growth_percent <= GROWTH_MAX;
}

static bool form_right(const struct tw_retry_schedule *schedule)
{
	if (schedule->form == TW_RETRY_FORM_TABLE)
		return table_right(schedule);
	if (schedule->form == TW_RETRY_FORM_EXPONENTIAL)
		return growth_right(schedule);
	return schedule->form <= TW_RETRY_FORM_PAYMENT;
}

int twi_schedule_check(const struct tw_retry_schedule *schedule)
{
	if (schedule == NULL || schedule->size < sizeof *schedule ||
	    (schedule->flags & ~(uint32_t)TW_RETRY_FLAG_REPEAT_LAST) != 0 ||
	    schedule->jitter_percent > PERCENT || !form_right(schedule))
		return -EINVAL;
	if (schedule->size > TWI_STRUCT_BYTES_MAX ||
	    !twi_tail_zero(schedule, sizeof *schedule, schedule->size))
		return -E2BIG;
	return 0;
}

/* Returns the delay that follows `last_ns`. Both are between 0 and the cap. Does not overflow. */
static int64_t grown_ns(const struct tw_retry_schedule *schedule, int64_t last_ns)
{
	uint64_t cap = (uint64_t)schedule->cap_ns, growth = schedule->growth_percent;
	uint64_t whole = (uint64_t)last_ns / PERCENT, rest = (uint64_t)last_ns % PERCENT;
	uint64_t next;

	if (whole > cap / growth)
		return schedule->cap_ns;
	next = whole * growth + rest * growth / PERCENT;
	return next < cap ? (int64_t)next : schedule->cap_ns;
}

/* Returns delay `number`, which follows the delay `last_ns`, or -1 if the schedule has none. */
static int64_t delay_ns(const struct tw_retry_schedule *schedule, uint64_t number, int64_t last_ns)
{
	struct table table;

	if (schedule->form == TW_RETRY_FORM_EXPONENTIAL)
		return number == 0 ? schedule->base_ns : grown_ns(schedule, last_ns);
	table = table_of(schedule);
	if (number < table.count)
		return table.delays_ns[number];
	return table.repeats ? table.delays_ns[table.count - 1] : -1;
}

/* Mixes all bits of a number (the finaliser of splitmix64). */
static uint64_t mixed(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t chance(const struct twi_task *task, uint64_t age)
{
	uint64_t z = mixed(task->queue->seed + age * UINT64_C(0x9e3779b97f4a7c15));

	return mixed(z + task->delays * UINT64_C(0x9e3779b97f4a7c15));
}

static int64_t jittered_ns(struct twi_task *task, int64_t whole_ns)
{
	uint64_t percent = task->kind->schedule->jitter_percent, whole = (uint64_t)whole_ns;
	uint64_t span = whole / PERCENT * percent + whole % PERCENT * percent / PERCENT;

	/* TW_NEVER is not a duration, so jitter cannot shorten it. */
	if (span == 0 || whole_ns == TW_NEVER)
		return whole_ns;
	/* RELAXED: the owner has acquired the age with the task. */
	return (int64_t)(whole - chance(task, twi_load_relaxed(&task->age)) % (span + 1));
}

/* Returns whether a wait of `wait_ns` would end later than the kind allows. */
static bool beyond_time(const struct twi_task *task, int64_t wait_ns)
{
	uint64_t most_ns = task->kind->time_max_ns;
	uint64_t since_ns;

	if (most_ns == 0)
		return false;
	since_ns = (uint64_t)(tw_engine_now(task->queue->engine) - task->begun_ns);
	return since_ns > most_ns || (uint64_t)wait_ns > most_ns - since_ns;
}

int64_t twi_task_wait_ns(struct twi_task *task)
{
	const struct tw_retry_kind *kind = task->kind;
	int64_t wait_ns;

	if (kind->attempts_max != 0 && task->attempts >= kind->attempts_max)
		return -1;
	wait_ns = delay_ns(kind->schedule, task->delays, task->delay_ns);
	if (wait_ns < 0)
		return -1;
	task->delay_ns = wait_ns;
	wait_ns = jittered_ns(task, wait_ns);
	task->delays++;
	return task->attempts > 0 && beyond_time(task, wait_ns) ? -1 : wait_ns;
}

int64_t tw_retry_delay(const struct tw_retry_schedule *schedule, uint64_t number)
{
	int error = twi_schedule_check(schedule);
	int64_t last_ns = 0;

	if (error != 0)
		return error;
	if (schedule->form != TW_RETRY_FORM_EXPONENTIAL) {
		last_ns = delay_ns(schedule, number, 0);
		return last_ns < 0 ? -ERANGE : last_ns;
	}
	last_ns = schedule->base_ns;
	for (uint64_t i = 1; i <= number; i++) {
		int64_t next_ns = grown_ns(schedule, last_ns);

		if (next_ns == last_ns)
			break;
		last_ns = next_ns;
	}
	return last_ns;
}
