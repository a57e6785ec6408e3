/* SPDX-License-Identifier: MIT */
/* Creates and destroys groups. A create makes all engines. If one fails, it undoes the others. */
#include "group/group.h"

#include "base/atomic.h"
#include "base/sized.h"
#include "memory/memory.h"

#include <errno.h>
#include <stdio.h>

static const struct tw_group_options defaults = {
	.size = sizeof defaults,
	.engines = TW_GROUP_AUTO,
	.rule = TW_GROUP_BY_THREAD,
};

int tw_group_options_init(struct tw_group_options *ret_options, size_t size)
{
	return twi_options_fill(ret_options, size, sizeof defaults, &defaults, sizeof defaults);
}

/*
 * Returns false if a pinned group does not choose engines by CPU or node, if it has no worker
 * threads, or if another option says where they run.
 */
static bool pinned_right(const struct tw_group_options *options, const struct tw_options *engine)
{
	return (options->flags & TW_GROUP_PINNED) == 0 ||
	       (options->rule != TW_GROUP_BY_THREAD && engine->cpu_set == NULL &&
		engine->thread == NULL && (engine->flags & TW_ENGINE_LOOP) == 0);
}

static int options_check(const struct tw_group_options *options, struct tw_options *ret_engine)
{
	int error = twi_size_check(options, options->size, sizeof *options, sizeof *options);

	if (error != 0)
		return error;
	if (options->engines == 0 ||
	    (options->engines > TW_GROUP_MAX && options->engines != TW_GROUP_AUTO) ||
	    options->rule > TW_GROUP_BY_NODE || options->reserved != 0 ||
	    (options->flags & ~(uint32_t)(TW_GROUP_PINNED | TW_GROUP_LAZY)) != 0)
		return -EINVAL;
	error = twi_options_read(options->engine, ret_engine);
	if (error == 0 && !pinned_right(options, ret_engine))
		error = -EINVAL;
	return error;
}

static uint32_t engines_of(const struct tw_group_options *options, const struct twi_group_map *map)
{
	uint32_t places = map->places < TW_GROUP_MAX ? map->places : TW_GROUP_MAX;

	if (options->engines != TW_GROUP_AUTO)
		return options->engines;
	return places > 0 ? places : 1;
}

static void group_free(struct tw_group *group)
{
	twi_release(group->allocator, group, group->bytes, TWI_CACHE_LINE);
}

static struct tw_group *group_allocate(uint32_t rule, uint32_t count)
{
	static _Atomic uint64_t made;
	const struct tw_allocator *allocator = twi_allocator();
	size_t bytes = sizeof(struct tw_group) + count * sizeof(struct tw_engine *);
	struct tw_group *group = twi_allocate_zeroed(allocator, bytes, TWI_CACHE_LINE);

	if (group == NULL)
		return NULL;
	/* RELAXED: each addition returns another number, and the number publishes nothing. */
	group->id = twi_fetch_add_relaxed(&made, 1) + 1;
	group->allocator = allocator;
	group->bytes = bytes;
	group->rule = rule;
	group->count = count;
	return group;
}

/*
 * Frees the group, and the engines that were made before the failure, started or not. No other
 * thread knows of the group yet.
 */
static void engines_undo(struct tw_group *group)
{
	for (uint32_t i = 0; i < group->count && group->engine[i] != NULL; i++) {
		(void)tw_engine_stop(group->engine[i], NULL, NULL, TW_NEVER);
		(void)tw_engine_destroy(group->engine[i]);
	}
	group_free(group);
}

/*
 * Fills the set with the CPUs of engine `number`. Returns how many there are. If there are more
 * engines than CPUs, some engines have none.
 */
static int cpus_of(const struct tw_group *group, const struct twi_group_map *map, uint32_t number,
		   cpu_set_t *ret_set)
{
	CPU_ZERO(ret_set);
	for (size_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++)
		if (map->place_of_cpu[cpu] != TWI_GROUP_NO_PLACE &&
		    group->engine_of_cpu[cpu] == number)
			CPU_SET(cpu, ret_set);
	return CPU_COUNT(ret_set);
}

/* The options of the engines. Some fields are set again for each engine. */
struct portion {
	struct tw_options options;
	cpu_set_t cpu_set;
	char name[TWI_THREAD_NAME_BYTES + 1];
};

/* Sets the CPUs of an engine's worker. A worker whose engine has no CPUs may run on any CPU. */
static void portion_pin(struct portion *portion, bool any)
{
	portion->options.cpu_set = any ? &portion->cpu_set : NULL;
	portion->options.cpu_set_bytes = any ? sizeof portion->cpu_set : 0;
}

static int engine_make(struct tw_group *group, const struct tw_group_options *options,
		       const struct twi_group_map *map, struct portion *portion, uint32_t number)
{
	bool lazy = (options->flags & TW_GROUP_LAZY) != 0 ||
		    (portion->options.flags & TW_ENGINE_LOOP) != 0;
	int error;

	(void)snprintf(portion->name, sizeof portion->name, "tickwheel-%u", number % 10000);
	if ((options->flags & TW_GROUP_PINNED) != 0)
		portion_pin(portion, cpus_of(group, map, number, &portion->cpu_set) > 0);
	error = tw_engine_create(&portion->options, &group->engine[number]);
	return error != 0 || lazy ? error : tw_engine_start(group->engine[number]);
}

static int engines_make(struct tw_group *group, const struct tw_group_options *options,
			const struct twi_group_map *map, const struct tw_options *engine)
{
	struct portion portion = {.options = *engine};
	int error = 0;

	if (options->engine == NULL || options->engine->thread_name == NULL)
		portion.options.thread_name = portion.name;
	twi_group_map_share(map, group->count, group->engine_of_cpu);
	for (uint32_t i = 0; i < group->count && error == 0; i++)
		error = engine_make(group, options, map, &portion, i);
	return error;
}

int tw_group_create(const struct tw_group_options *options, struct tw_group **ret_group)
{
	const struct tw_group_options *own = options != NULL ? options : &defaults;
	struct tw_options engine;
	struct twi_group_map map;
	struct tw_group *group;
	int error;

	if (ret_group == NULL)
		return -EINVAL;
	error = options_check(own, &engine);
	if (error != 0)
		return error;
	twi_group_map_read(own->rule, &map);
	group = group_allocate(own->rule, engines_of(own, &map));
	if (group == NULL)
		return -ENOMEM;
	error = engines_make(group, own, &map, &engine);
	if (error != 0)
		engines_undo(group);
	else
		*ret_group = group;
	return error;
}

/*
 * Returns whether the group can be destroyed. In a forked child, engines that are still the
 * parent's never prevent that.
 */
static bool destroyable(const struct tw_group *group)
{
	for (uint32_t i = 0; i < group->count; i++)
		if (!twi_engine_of_parent(group->engine[i]) &&
		    !twi_engine_destroyable(group->engine[i]))
			return false;
	return true;
}

int tw_group_destroy(struct tw_group *group)
{
	if (group == NULL)
		return 0;
	if (twi_group_inside(group))
		return -EDEADLK;
	if (!destroyable(group))
		return -EBUSY;
	for (uint32_t i = 0; i < group->count; i++)
		(void)tw_engine_destroy(group->engine[i]);
	group_free(group);
	return 0;
}
