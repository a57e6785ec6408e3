/* SPDX-License-Identifier: MIT */
#include "durable/tool/redis/redis.h"

#include "durable/tool/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HOUR INT64_C(3600000000000)

/*
 * How many timers of a kind are due in an hour, or how many dead letters a kind has. Dead letters
 * have no hour.
 */
struct group {
	uint32_t kind;
	bool dead;
	int64_t hour;
	uint64_t count;
};

struct groups {
	struct group *all;
	size_t count, room;
};

static int groups_add(struct groups *groups, struct group group)
{
	if (groups->count == groups->room) {
		size_t room = groups->room == 0 ? 64 : 2 * groups->room;
		struct group *all = realloc(groups->all, room * sizeof *all);

		if (all == NULL)
			return -ENOMEM;
		groups->all = all;
		groups->room = room;
	}
	groups->all[groups->count++] = group;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	if (left->dead != right->dead)
		return left->dead - right->dead;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return left->hour < right->hour ? -1 : left->hour > right->hour;
}

static void groups_print(struct groups *groups, const struct twi_tool_redis *redis,
			 const struct twi_tool_output *output)
{
	if (groups->count != 0)
		qsort(groups->all, groups->count, sizeof *groups->all, compare);
	for (size_t i = 0; i < groups->count; i++) {
		const struct group *group = &groups->all[i];

		/*
		 * Free and claimed timers were counted apart, so several entries may belong to one
		 * group. Adds this entry to the next one.
		 */
		if (i + 1 < groups->count && compare(group, group + 1) == 0) {
			groups->all[i + 1].count += group->count;
			continue;
		}
		twi_tool_print_count(output->out, twi_tool_kind(&redis->kinds, group->kind),
				     group->dead ? NULL : &group->hour, group->count, output->json);
	}
}

/* Returns the hour that a time lies in. Hours before 1970 are negative. */
static int64_t hour_of(int64_t ns)
{
	return ns / HOUR - (ns % HOUR < 0);
}

/*
 * Returns the time when an hour begins. If that time does not fit into 64 bits, returns the nearest
 * time that does.
 */
static int64_t hour_begin(int64_t hour)
{
	int64_t begin;

	if (!__builtin_mul_overflow(hour, HOUR, &begin))
		return begin;
	return hour < 0 ? INT64_MIN : INT64_MAX;
}

/*
 * Counts the free timers of a kind that are due from `from_ns` on, but before `to_ns`. Sets
 * `*ret_next` to the hour of the first free timer that is due at `to_ns` or later. Returns 1 if
 * there is no such timer, 0 if there is one, or an error.
 */
static int hour_count(struct twi_tool_redis *redis, uint32_t kind, int64_t from_ns, int64_t to_ns,
		      uint64_t *ret_count, int64_t *ret_next)
{
	struct twi_arguments *arguments = twi_redis_link_begin(&redis->store.link);
	redisReply *reply = NULL;
	int error;

	twi_argument_4(arguments, kind);
	twi_argument_end(arguments);
	twi_argument_signed(arguments, from_ns);
	twi_argument_end(arguments);
	twi_argument_signed(arguments, to_ns);
	twi_argument_end(arguments);
	error = twi_tool_redis_run(redis, TWI_TOOL_REDIS_HOUR, &reply);
	if (error != 0)
		return error;
	*ret_count = (uint64_t)reply->element[0]->integer;
	if (reply->element[1]->len != sizeof(int64_t))
		error = 1;
	else
		*ret_next = hour_of(twi_redis_get_signed(reply->element[1]->str));
	freeReplyObject(reply);
	return error;
}

/*
 * Adds the groups of a kind's free timers. The server lists free timers by kind and deadline, so
 * hours without any are skipped.
 */
static int free_count(struct twi_tool_redis *redis, struct groups *groups, uint32_t kind)
{
	struct group group = {.kind = kind};
	uint64_t count;
	int result = hour_count(redis, kind, INT64_MIN, INT64_MIN, &count, &group.hour);

	while (result == 0) {
		int64_t next = 0;

		result = hour_count(redis, kind, hour_begin(group.hour), hour_begin(group.hour + 1),
				    &group.count, &next);
		if (result >= 0 && groups_add(groups, group) != 0)
			return -ENOMEM;
		group.hour = next;
	}
	return result < 0 ? result : 0;
}

static int held_note(void *to, const struct tw_durable_row *row)
{
	return groups_add(to, (struct group){row->kind, false, hour_of(row->due_ns), 1});
}

static int dead_note(void *to, const struct tw_durable_row *row, int64_t ended_ns)
{
	(void)ended_ns;
	return groups_add(to, (struct group){row->kind, true, 0, 1});
}

static int groups_read(struct twi_tool_redis *redis, struct groups *groups)
{
	size_t kinds = redis->store.kind_count;
	int error = 0;

	for (size_t i = 0; i < kinds && error == 0; i++)
		error = free_count(redis, groups, redis->store.to_server[i]);
	/* Without kinds, twi_redis_near() passes on only the timers that sessions have claimed. */
	redis->store.kind_count = 0;
	if (error == 0)
		error = twi_redis_near(&redis->store, NULL, INT64_MAX, SIZE_MAX, held_note, groups);
	redis->store.kind_count = kinds;
	return error == 0 ? twi_tool_redis_letters(redis, dead_note, groups) : error;
}

int twi_tool_redis_count(struct twi_tool_redis *redis, const struct twi_tool_output *output)
{
	struct groups groups = {.count = 0};
	int error = 0;

	if (twi_tool_redis_want(redis, output->kind))
		error = groups_read(redis, &groups);
	if (error == 0) {
		groups_print(&groups, redis, output);
		twi_tool_print_paused(output->out, &redis->kinds, output->kind, output->json);
	}
	free(groups.all);
	return error;
}
