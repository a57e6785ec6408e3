/* SPDX-License-Identifier: MIT */
/* Invalid arguments: each call must return its code, and must have no partial effect. */
#include "scene.h"

#include "child.h"

#include <limits.h>

static int open_with(const struct tw_durable_kind *const *kinds, size_t count)
{
	static const struct twi_durable_hooks hooks = {.wall_ns = NULL};
	struct tw_durable *set = NULL;
	int error;

	scene.options.store = disk_store(scene.disk);
	error = twi_durable_open(scene.engine, kinds, count, &scene.options, &hooks, &set);
	cr_assert(set == NULL);
	return error;
}

static int run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)self;
	(void)payload;
	(void)bytes;
	return TW_RETRY_DONE;
}

static int open_named(const char *name)
{
	struct tw_durable_kind kind = TW_DURABLE_KIND(name, run, NULL);
	const struct tw_durable_kind *kinds[] = {&kind};

	return open_with(kinds, 1);
}

Test(durable_input, kinds_are_checked, .init = scene_make, .fini = scene_end)
{
	static const struct tw_retry_schedule wrong = {.size = 4};
	char longest[80];
	struct tw_durable_kind kind = TW_DURABLE_KIND("a", run, NULL);
	const struct tw_durable_kind *kinds[] = {&kind, &kind};

	memset(longest, 'a', sizeof longest);
	longest[64] = '\0';
	check_int(open_named(NULL), -EINVAL);
	check_int(open_named(""), -EINVAL);
	check_int(open_named("Order"), -EINVAL);
	check_int(open_named("a b"), -EINVAL);
	check_int(open_named("a/b"), -EINVAL);
	check_int(open_named("\xc3\xbc"), -EINVAL);
	check_int(open_named(longest), -EINVAL);
	check_int(open_with(NULL, 1), -EINVAL);
	check_int(open_with(kinds, 0), -EINVAL);
	check_int(open_with(kinds, 2), -EINVAL);
	kind.flags = 4;
	check_int(open_with(kinds, 1), -EINVAL);
	kind = (struct tw_durable_kind)TW_DURABLE_KIND("a", NULL, NULL);
	check_int(open_with(kinds, 1), -EINVAL);
	kind = (struct tw_durable_kind)TW_DURABLE_KIND("a", run, &wrong);
	check_int(open_with(kinds, 1), -EINVAL);
	kind = (struct tw_durable_kind)TW_DURABLE_KIND("a", run, NULL);
	kind.size = 8;
	check_int(open_with(kinds, 1), -EINVAL);
	kind.size = 8192;
	check_int(open_with(kinds, 1), -E2BIG);
	kind = (struct tw_durable_kind)TW_DURABLE_KIND("a", run, NULL);
	kind.linger_ns = 60 * UINT64_C(1000000000) + 1;
	check_int(open_with(kinds, 1), -EINVAL);
	check_int(scene.disk->session, 0);
}

#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		struct tw_durable_options kept = scene.options;                                    \
		scene.options.field = (value);                                                     \
		check_int(tw_durable_open(scene.engine, kinds, 1, &scene.options, &set), -EINVAL); \
		scene.options = kept;                                                              \
	} while (0)

Test(durable_input, options_are_checked, .init = scene_make, .fini = scene_end)
{
	const struct tw_durable_kind *kinds[] = {&plain};
	struct tw_durable *set = NULL;
	struct tw_durable_options options;

	check_int(tw_durable_options_init(NULL, sizeof options), -EINVAL);
	check_int(tw_durable_options_init(&options, 8), -EINVAL);
	check_int(tw_durable_options_init(&options, 8192), -E2BIG);
	check_int(tw_durable_open(scene.engine, kinds, 1, NULL, &set), -EINVAL);
	/* The options have no store. */
	check_int(tw_durable_open(scene.engine, kinds, 1, &scene.options, &set), -EINVAL);
	scene.options.store = disk_store(scene.disk);
	REFUSED(flags, 1);
	REFUSED(level, 0);
	REFUSED(level, 4);
	REFUSED(batch_max, 0);
	REFUSED(batch_max, 1000001);
	REFUSED(window_ns, 60 * UINT64_C(1000000000) + 1);
	REFUSED(staged_bytes_max, 1024);
	REFUSED(near_ns, 1);
	REFUSED(near_max, 0);
	REFUSED(dead_keep_ns, (uint64_t)INT64_MAX + 1);
	REFUSED(near_bytes_max, 65535);
	REFUSED(near_bytes_max, (UINT64_C(1) << 40) + 1);
	REFUSED(payload_max, 1048577);
	REFUSED(catch_up_per_s, 0);
	REFUSED(clock_step_max_ns, 1);
	REFUSED(size, 16);
	/*
	 * Up to this line the caller owns the store. The next call takes it over, even if it fails.
	 */
	check_int(tw_durable_open(NULL, kinds, 1, &scene.options, &set), -EINVAL);
	cr_assert(set == NULL);
}

static struct tw_durable_spec good(void)
{
	return (struct tw_durable_spec){
		.size = sizeof(struct tw_durable_spec),
		.kind = &plain,
		.due_ns = SECOND,
	};
}

static int with(struct tw_durable_spec spec)
{
	struct tw_durable_id id = {7, 7};
	int error = tw_durable_schedule(scene.set, &spec, &id);

	cr_assert(error == 0 || (id.place == 7 && id.serial == 7), "an output was changed");
	return error;
}

#define CHECK_CHANGED(field, value, code)                                                          \
	do {                                                                                       \
		struct tw_durable_spec changed = good();                                           \
		changed.field = (value);                                                           \
		check_int(with(changed), code);                                                    \
	} while (0)

Test(durable_input, timers_are_checked, .init = scene_make, .fini = scene_end)
{
	static char large[8192];
	static const struct tw_durable_kind stranger = TW_DURABLE_KIND("plain", run, NULL);
	struct tw_durable_spec spec = good();

	scene_open();
	check_int(tw_durable_schedule(NULL, &spec, NULL), -EINVAL);
	check_int(tw_durable_schedule(scene.set, NULL, NULL), -EINVAL);
	CHECK_CHANGED(size, 8, -EINVAL);
	CHECK_CHANGED(size, 8192, -E2BIG);
	CHECK_CHANGED(flags, 4, -EINVAL);
	CHECK_CHANGED(flags, TW_DURABLE_RESEND, -EINVAL);
	CHECK_CHANGED(kind, NULL, -EINVAL);
	CHECK_CHANGED(kind, &stranger, -EINVAL);
	CHECK_CHANGED(due_ns, TW_NEVER, -EINVAL);
	CHECK_CHANGED(due_ns, INT64_MIN, -ERANGE);
	CHECK_CHANGED(due_ns, INT64_MAX - 1, -ERANGE);
	CHECK_CHANGED(payload_bytes, 1, -EINVAL);
	CHECK_CHANGED(key_bytes, 1, -EINVAL);
	CHECK_CHANGED(key, large, -EINVAL);
	spec.payload = large;
	spec.payload_bytes = 4097;
	check_int(with(spec), -EMSGSIZE);
	spec.payload_bytes = 4096;
	check_int(with(spec), 0);
	spec.key = large;
	spec.key_bytes = 256;
	check_int(with(spec), -EMSGSIZE);
	check_int(tw_durable_schedule_many(scene.set, &spec, 0, NULL), -EINVAL);
	check_int(tw_durable_schedule_many(scene.set, NULL, 1, NULL), -EINVAL);
	check_int(tw_durable_schedule_many(scene.set, &spec, (size_t)INT_MAX + 1, NULL), -EINVAL);
	check_int(tw_durable_schedule_many(scene.set, &spec, 1, NULL), -EMSGSIZE);
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 1);
}

Test(durable_input, deadlines_of_1960_and_2262_are_accepted, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_spec specs[3] = {good(), good(), good()};
	struct tw_durable_id ids[3];

	scene_open();
	specs[0].flags = specs[1].flags = TW_DURABLE_AT;
	specs[0].due_ns = -INT64_C(315619200) * SECOND;
	specs[1].due_ns = INT64_MAX - 1;
	specs[2].kind = NULL;
	check_int(tw_durable_schedule_many(scene.set, specs, 3, ids), 2);
	cr_assert((int64_t)ids[0].place < 0);
	scene_pass(SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].due_ns, specs[0].due_ns);
	check_int(disk_find(scene.disk, ids[1])->due_ns, INT64_MAX - 1);
	scene_reopen();
	check_int(scene.disk->rows, 1);
}

Test(durable_input, other_calls_are_checked, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_info info = {.size = sizeof info};
	struct tw_durable_stats stats;
	struct tw_durable_id none = {0, 0}, id = {0, 1};

	scene_open();
	check_int(tw_durable_cancel(NULL, id, NULL), -EINVAL);
	check_int(tw_durable_cancel(scene.set, none, NULL), -EINVAL);
	check_int(tw_durable_cancel_key(scene.set, NULL, 1, NULL), -EINVAL);
	check_int(tw_durable_cancel_key(scene.set, "k", 0, NULL), -EINVAL);
	check_int(tw_durable_cancel_key(scene.set, "k", 256, NULL), -EMSGSIZE);
	check_int(tw_durable_reschedule(scene.set, none, 0, NULL), -EINVAL);
	check_int(tw_durable_reschedule(scene.set, id, TW_NEVER, NULL), -EINVAL);
	check_int(tw_durable_complete(scene.set, none, 1, TW_RETRY_DONE), -EINVAL);
	check_int(tw_durable_complete(scene.set, id, 1, TW_RETRY_PENDING), -EINVAL);
	check_int(tw_durable_complete(scene.set, id, 1, TW_RETRY_DONE), -ESTALE);
	check_int(tw_durable_flush(NULL, 0), -EINVAL);
	check_int(tw_durable_flush(scene.set, -1), -EINVAL);
	check_int(tw_durable_flush(scene.set, 1), -ETIMEDOUT);
	check_int(tw_durable_find(scene.set, none, &info, 0), -EINVAL);
	check_int(tw_durable_find(scene.set, id, NULL, 0), -EINVAL);
	info.size = 8;
	check_int(tw_durable_find(scene.set, id, &info, 0), -EINVAL);
	info.size = 8192;
	check_int(tw_durable_find(scene.set, id, &info, 0), -E2BIG);
	info.size = sizeof info;
	check_int(tw_durable_find_key(scene.set, "k", 256, &info, 0), -EMSGSIZE);
	check_int(tw_durable_find_key(scene.set, NULL, 1, &info, 0), -EINVAL);
	check_int(tw_durable_dead_list(scene.set, none, &info, 0, 0), -EINVAL);
	check_int(tw_durable_dead_list(scene.set, none, &info, 65537, 0), -EINVAL);
	check_int(tw_durable_list(scene.set, NULL, NULL, 1, 0), -EINVAL);
	check_int(tw_durable_list(scene.set, NULL, &info, 0, 0), -EINVAL);
	check_int(tw_durable_list(scene.set, NULL, &info, 65537, 0), -EINVAL);
	check_int(tw_durable_list(scene.set, NULL, &info, 1, -1), -EINVAL);
	check_int(tw_durable_list(NULL, NULL, &info, 1, 0), -EINVAL);
	check_int(tw_durable_list(scene.set, &(struct tw_durable_info){0}, &info, 1, 0), -EINVAL);
	check_int(tw_durable_dead_revive(scene.set, none, 0, NULL), -EINVAL);
	check_int(tw_durable_dead_drop(scene.set, none, NULL), -EINVAL);
	check_int(tw_durable_pause(scene.set, NULL), -EINVAL);
	check_int(tw_durable_resume(scene.set, (const struct tw_durable_kind *)&info), -EINVAL);
	check_int(tw_durable_stats_get(scene.set, NULL, sizeof stats), -EINVAL);
	check_int(tw_durable_stats_get(scene.set, &stats, 8), -EINVAL);
	check_int(tw_durable_close(scene.set, -1), -EINVAL);
	check_int(tw_durable_close(NULL, 0), 0);
}

static int close_within(struct scene *of, const struct tw_durable_self *self)
{
	of->error = tw_durable_close(self->durable, 0);
	return TW_RETRY_DONE;
}

Test(durable_input, a_run_cannot_close_its_set, .init = scene_make, .fini = scene_end)
{
	scene_open();
	scene.within = close_within;
	(void)scene_schedule(&plain, SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(scene.error, -EDEADLK);
}

static void child_is_refused(void)
{
	struct tw_durable_spec spec = good();
	struct tw_durable_info info = {.size = sizeof info};
	struct tw_durable_stats stats;
	struct tw_durable_id id = {0, 1};

	child_need(tw_durable_schedule(scene.set, &spec, NULL), -ECHILD);
	child_need(tw_durable_schedule_many(scene.set, &spec, 1, NULL), -ECHILD);
	child_need(tw_durable_cancel(scene.set, id, NULL), -ECHILD);
	child_need(tw_durable_cancel_key(scene.set, "k", 1, NULL), -ECHILD);
	child_need(tw_durable_reschedule(scene.set, id, 0, NULL), -ECHILD);
	child_need(tw_durable_complete(scene.set, id, 1, TW_RETRY_DONE), -ECHILD);
	child_need(tw_durable_flush(scene.set, 0), -ECHILD);
	child_need(tw_durable_find(scene.set, id, &info, 0), -ECHILD);
	child_need(tw_durable_find_key(scene.set, "k", 1, &info, 0), -ECHILD);
	child_need(tw_durable_dead_list(scene.set, id, &info, 1, 0), -ECHILD);
	child_need(tw_durable_list(scene.set, NULL, &info, 1, 0), -ECHILD);
	child_need(tw_durable_dead_revive(scene.set, id, 0, NULL), -ECHILD);
	child_need(tw_durable_dead_drop(scene.set, id, NULL), -ECHILD);
	child_need(tw_durable_pause(scene.set, &plain), -ECHILD);
	child_need(tw_durable_resume(scene.set, &plain), -ECHILD);
	child_need(tw_durable_stats_get(scene.set, &stats, sizeof stats), -ECHILD);
	child_need(tw_durable_close(scene.set, 0), -ECHILD);
}

Test(durable_input, each_call_refuses_a_forked_child, .init = scene_make, .fini = scene_end)
{
	scene_open();
	in_child(child_is_refused);
}
