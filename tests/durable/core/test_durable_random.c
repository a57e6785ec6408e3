/* SPDX-License-Identifier: MIT */
/*
 * Random calls, with closes, kills, clock steps and a full store in between. A plain list says for
 * each timer which outcomes are allowed.
 */
#include "scene.h"

#include "random.h"
#include "slowdown.h"

enum { TIMERS = 400, STEPS = 1500, SEEDS = 8 };

struct timer {
	struct tw_durable_id id;
	bool acked, cancelled, unsure, moved, elapsed;
	int64_t due_ns;
	size_t runs;
	int cancel_context;
};

static struct timer timers[TIMERS];
static size_t count, checked, kills;

static struct timer *timer_of(struct tw_durable_id id)
{
	for (size_t i = 0; i < count; i++) {
		if (timers[i].id.serial == id.serial && timers[i].id.place == id.place)
			return &timers[i];
	}
	return NULL;
}

static void random_schedule(struct random *bits)
{
	const struct tw_durable_kind *kinds[] = {&plain,  &once,         &patient,
						 &single, &patient_once, &counted};
	struct timer *timer = &timers[count];
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = kinds[random_below(bits, scene.elapsed ? 6 : 5)],
		.context = timer,
	};
	int error;

	if (count == TIMERS)
		return;
	spec.due_ns =
		(int64_t)random_below(bits, random_below(bits, 4) == 0 ? 1000 : 20) * SECOND / 8;
	error = tw_durable_schedule(scene.set, &spec, &timer->id);
	if (error == -ENOSPC)
		return;
	check_int(error, 0);
	cr_assert(timer_of(timer->id) == NULL, "a serial was given twice");
	timer->elapsed = spec.kind == &counted;
	timer->due_ns = (timer->elapsed ? scene_boot() : scene_wall()) + spec.due_ns;
	count++;
}

static void random_cancel(struct random *bits)
{
	struct timer *timer = &timers[random_below(bits, count)];
	int outcome = tw_durable_cancel(scene.set, timer->id, &timer->cancel_context);

	if (outcome == TW_DURABLE_ABSORBED || outcome == TW_DURABLE_DONE) {
		check_int(timer->runs, 0);
		timer->cancelled = outcome == TW_DURABLE_ABSORBED;
	}
	timer->unsure = true;
}

/* Updates the list from the acknowledgements and runs since the last call. */
static void look(void)
{
	for (; checked < scene.ack_count; checked++) {
		const struct tw_durable_ack *ack = &scene.acks[checked];
		struct timer *timer = timer_of(ack->id);

		cr_assert(timer != NULL);
		if (ack->context == timer && ack->outcome == TW_DURABLE_DONE)
			timer->acked = true;
		if (ack->context == &timer->cancel_context && ack->outcome == TW_DURABLE_DONE)
			timer->cancelled = true;
	}
	for (size_t i = 0; i < scene.run_count; i++) {
		struct timer *timer = timer_of(scene.runs[i].id);

		cr_assert(timer != NULL);
		cr_assert(!timer->cancelled, "it ran after its cancel was acknowledged");
		if (!timer->elapsed)
			cr_assert(scene.runs[i].wall_ns >= scene.runs[i].due_ns, "early");
		else if (!timer->moved)
			cr_assert(scene.runs[i].boot_ns >= timer->due_ns, "early");
		if (!timer->moved && !timer->elapsed)
			check_int(scene.runs[i].due_ns, timer->due_ns);
		/* No timer may run twice, because no run is in progress at a kill. */
		check_int(++timer->runs, 1);
	}
	scene.run_count = 0;
}

static void random_step(struct random *bits)
{
	struct timer *timer = &timers[random_below(bits, count + 1)];

	switch (random_below(bits, 16)) {
	case 0:
	case 1:
	case 2:
		if (count != 0)
			random_cancel(bits);
		break;
	case 3:
		if (count == 0 || timer == &timers[count])
			break;
		timer->moved = true;
		check_int(tw_durable_reschedule(
				  scene.set, timer->id,
				  scene_wall() + (int64_t)random_below(bits, 30) * SECOND, NULL),
			  -EINPROGRESS);
		break;
	case 4:
	case 5:
	case 6:
		scene_pass((int64_t)random_below(bits, 1000) * NS_PER_MS);
		break;
	case 7:
		if (random_below(bits, 8) == 0)
			scene_reopen();
		break;
	case 8:
		if (random_below(bits, 8) != 0)
			break;
		scene_settle();
		look();
		kills++;
		scene_kill();
		break;
	case 9:
		scene.wall_step_ns += ((int64_t)random_below(bits, 7) - 3) * SECOND;
		break;
	case 10:
		scene_settle();
		break;
	default:
		random_schedule(bits);
	}
	look();
}

static void run_seed(uint64_t seed)
{
	struct random bits = {seed};

	memset(timers, 0, sizeof timers);
	count = checked = kills = 0;
	scene_open();
	for (int i = 0; i < STEPS; i++)
		random_step(&bits);
	scene_pass(200 * SECOND);
	look();
	for (size_t i = 0; i < count; i++) {
		if (timers[i].acked && !timers[i].unsure)
			cr_assert(timers[i].runs == 1, "seed %llu: timer %zu of %zu ran %zu times",
				  (unsigned long long)seed, i, count, timers[i].runs);
	}
	check_int(scene.disk->rows, 0);
}

Test(durable_random, nothing_acknowledged_is_lost_and_nothing_cancelled_runs)
{
	uint64_t seeds = slowed(SEEDS);

	for (uint64_t seed = 1; seed <= 2 * seeds; seed++) {
		scene_make();
		scene.elapsed = seed > seeds;
		run_seed(seed);
		scene_end();
	}
}
