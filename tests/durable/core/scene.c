/* SPDX-License-Identifier: MIT */
#include "scene.h"

struct scene scene;

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	scene.runs[scene.run_count++] = (struct scene_run){
		.id = self->id,
		.attempt = self->attempt,
		.due_ns = self->due_ns,
		.wall_ns = scene_wall(),
		.boot_ns = scene_boot(),
		.bytes = bytes,
		.first = bytes == 0 ? 0 : *(const unsigned char *)payload,
	};
	if (scene.result == TW_DURABLE_NEXT)
		*self->next_due_ns = scene.next_ns;
	return scene.within == NULL ? scene.result : scene.within(&scene, self);
}

static const int64_t delays[] = {10 * SECOND, 20 * SECOND};
static const struct tw_retry_schedule table = TW_RETRY_TABLE(delays);

const struct tw_durable_kind plain = TW_DURABLE_KIND("plain", on_run, NULL);
const struct tw_durable_kind retried = TW_DURABLE_KIND("retried", on_run, &table);
const struct tw_durable_kind once = {
	.size = sizeof once,
	.flags = TW_DURABLE_KIND_AT_MOST_ONCE,
	.name = "once",
	.run = on_run,
};
const struct tw_durable_kind single = {
	.size = sizeof single,
	.name = "single",
	.run = on_run,
	.schedule = &table,
	.attempts_max = 2,
	.running_max = 1,
};

const struct tw_durable_kind late = {
	.size = sizeof late,
	.name = "late",
	.run = on_run,
	.overdue_max_ns = 10 * SECOND,
};

const struct tw_durable_kind patient = {
	.size = sizeof patient,
	.name = "patient",
	.run = on_run,
	.schedule = &table,
	.linger_ns = 5 * SECOND,
};
const struct tw_durable_kind patient_once = {
	.size = sizeof patient_once,
	.flags = TW_DURABLE_KIND_AT_MOST_ONCE,
	.name = "patient_once",
	.run = on_run,
	.linger_ns = 5 * SECOND,
};

const struct tw_durable_kind counted = {
	.size = sizeof counted,
	.flags = TW_DURABLE_KIND_ELAPSED,
	.name = "counted",
	.run = on_run,
	.schedule = &table,
	.attempts_max = 3,
};

static void on_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		scene.acks[scene.ack_count++ % ACKS_MAX] = acks[i];
}

static void on_state(void *context, int state, int error)
{
	(void)context;
	scene.states++;
	scene.state = state;
	scene.error = error;
}

int64_t scene_wall(void)
{
	return WALL_START + scene.wall_step_ns + tw_clock_now(scene.clock);
}

int64_t scene_boot(void)
{
	return scene.boot_start_ns + tw_clock_now(scene.clock);
}

static int64_t boot_hook(void *context)
{
	(void)context;
	return scene_boot();
}

static int64_t wall_hook(void *context)
{
	(void)context;
	return scene_wall();
}

void scene_make(void)
{
	struct tw_options options;

	memset(&scene, 0, sizeof scene);
	check_int(tw_clock_create_virtual(0, &scene.clock), 0);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	options.clock = scene.clock;
	options.tick_ns = 1000000;
	check_int(tw_engine_create(&options, &scene.engine), 0);
	scene.disk = disk_create();
	check_int(tw_durable_options_init(&scene.options, sizeof scene.options), 0);
	/*
	 * With a small near_max, the set's hash table is small. The set visits the whole table at
	 * each step of the clock and at each close.
	 */
	scene.options.near_max = 10000;
	scene.options.acked = on_acked;
	scene.options.state = on_state;
}

int scene_try_open(void)
{
	static const struct tw_durable_kind *const kinds[] = {
		&plain, &retried, &once, &single, &late, &patient, &patient_once, &counted};
	const struct twi_durable_hooks hooks = {
		.wall_ns = wall_hook,
		.driven = true,
		.boot_ns = boot_hook,
		.boot = scene.boot == 0 ? "first" : "second",
	};

	scene.options.store = disk_store(scene.disk);
	return twi_durable_open(scene.engine, kinds,
				sizeof kinds / sizeof kinds[0] - (scene.elapsed ? 0 : 1),
				&scene.options, &hooks, &scene.set);
}

void scene_open(void)
{
	check_int(scene_try_open(), 0);
	scene_settle();
}

void scene_close(void)
{
	int error;

	while ((error = tw_durable_close(scene.set, 0)) == -ETIMEDOUT)
		(void)tw_engine_poll(scene.engine, 0);
	check_int(error, 0);
	scene.set = NULL;
}

void scene_reopen(void)
{
	scene_close();
	scene_open();
}

void scene_kill(void)
{
	int error;

	disk_cut(scene.disk);
	while ((error = tw_durable_close(scene.set, 0)) == -ETIMEDOUT)
		(void)tw_engine_poll(scene.engine, 0);
	cr_assert(error == 0 || error == -EIO);
	scene.set = NULL;
	scene_open();
}

void scene_end(void)
{
	if (scene.set != NULL)
		scene_close();
	check_int(tw_engine_stop(scene.engine, NULL, NULL, 0), 0);
	check_int(tw_engine_destroy(scene.engine), 0);
	check_int(tw_clock_destroy(scene.clock), 0);
	disk_destroy(scene.disk);
}

/* A set that is still busy after this many rounds is in an endless loop. */
enum { ROUNDS_MAX = 10000 };

void scene_settle(void)
{
	int idle = 0, rounds = 0;

	while (idle < 2) {
		size_t acks = scene.ack_count;
		bool more = twi_io_step(scene.set);

		if (tw_engine_poll(scene.engine, 0) > 0 || more || scene.ack_count != acks ||
		    twi_load_relaxed(&scene.set->staged_bytes) != 0)
			idle = 0;
		else
			idle++;
		cr_assert(rounds++ < ROUNDS_MAX);
	}
}

void scene_pass(int64_t ns)
{
	int64_t until_ns = tw_clock_now(scene.clock) + ns;

	while (tw_clock_now(scene.clock) < until_ns) {
		int64_t due_ns = tw_engine_next_due(scene.engine), now_ns;

		now_ns = tw_clock_now(scene.clock) + SECOND / 2;
		if (due_ns < now_ns)
			now_ns = due_ns;
		if (now_ns > until_ns)
			now_ns = until_ns;
		if (now_ns > tw_clock_now(scene.clock))
			check_int(tw_clock_set(scene.clock, now_ns), 0);
		scene_settle();
	}
}

struct tw_durable_id scene_schedule(const struct tw_durable_kind *kind, int64_t delay_ns,
				    const char *payload)
{
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = kind,
		.due_ns = delay_ns,
		.payload = payload,
		.payload_bytes = (uint32_t)strlen(payload),
		.context = (void *)(uintptr_t)payload,
	};
	struct tw_durable_id id = {0, 0};

	check_int(tw_durable_schedule(scene.set, &spec, &id), 0);
	return id;
}

struct tw_durable_ack scene_ack(const void *context)
{
	for (size_t i = scene.ack_count; i-- > 0;) {
		if (scene.acks[i % ACKS_MAX].context == context)
			return scene.acks[i % ACKS_MAX];
	}
	cr_assert(false, "no acknowledgement");
	return (struct tw_durable_ack){.outcome = -1};
}
