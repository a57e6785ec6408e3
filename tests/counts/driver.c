/* SPDX-License-Identifier: MIT */
/*
 * Runs each hot path a fixed number of times, so that valgrind can count its instructions. Each
 * call of counted_call() runs one path. The program prints the names of the paths in the same
 * order, for counts.py.
 *
 * The main thread is a producer, so its schedules and cancels go through ingress and the cancel
 * queue. Each of two engines has a thread that owns its loop. One engine is in loop mode, as for
 * users. The wheel of the other one promises no order, as with a worker thread. One of the three
 * threads runs at a time. Time is virtual. Each round begins at the same place of every wheel level
 * that it touches, so that counts are equal.
 *
 * Seen to fail with these defects: in a copy of the library, 4 % more instructions are added to
 * schedule, cancel, transfer, or expire. `driver allocate` and `driver call` plant two more
 * defects: an allocation, and a system call.
 */
#include "counted.h"
#include "rings.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <tickwheel.h>
#include <unistd.h>

enum {
	/*
	 * how many operations a counted call makes; a multiple of the library's units of 64
	 * timeouts
	 */
	OPERATIONS = 8192,
	/* how many rounds are made; counts.py uses only the last ones */
	ROUNDS = 8,
	/* how many timeouts the owner's short path schedules, and then cancels */
	FRESH = 16,
};

#define TICK_NS INT64_C(1000000)
#define ROUND_TICKS (INT64_C(1) << 24)
/* Two levels of the default wheel: timeouts that expire are near, those that cascade are far. */
#define NEAR_TICKS 128
#define FAR_TICKS INT64_C(20000)

struct scene {
	struct tw_engine *engine;
	struct tw_clock *clock;
	int64_t now_ns;
	int64_t near_ns[OPERATIONS];
	int64_t far_ns[OPERATIONS];
	struct tw_handle handle[OPERATIONS];
	uint64_t expired;
	pthread_t owner;
	void (*step)(struct scene *scene);
	sem_t begin;
	sem_t end;
};

static bool plant_allocation;
static bool plant_call;

static void fail(const char *what)
{
	fprintf(stderr, "counts driver: %s\n", what);
	exit(1);
}

static void must(bool holds, const char *what)
{
	if (!holds)
		fail(what);
}

static void on_expiry(struct tw_handle self, void *arg)
{
	struct scene *scene = arg;

	(void)self;
	scene->expired++;
	if (plant_allocation) {
		void *volatile memory = malloc(1);

		free(memory);
	}
	if (plant_call)
		(void)syscall(SYS_getppid);
}

static const struct tw_kind kind = TW_KIND(on_expiry, NULL);

/*
 * Spreads deadlines over a span, like the deadlines of requests: two timeouts that are scheduled
 * one after the other are not due one after the other.
 */
static int64_t spread(int i, int64_t span)
{
	return i * INT64_C(2654435761) % span;
}

static void delays_fill(struct scene *scene)
{
	for (int i = 0; i < OPERATIONS; i++) {
		/*
		 * The deadline is in the middle of a tick, because the polls are at tick
		 * boundaries.
		 */
		scene->near_ns[i] = spread(i, NEAR_TICKS) * TICK_NS + TICK_NS / 2;
		scene->far_ns[i] = (FAR_TICKS + spread(i, 4096)) * TICK_NS;
	}
}

static int64_t do_schedule(struct scene *scene)
{
	int64_t errors = 0;

	for (int i = 0; i < OPERATIONS; i++)
		errors += tw_schedule(scene->engine, scene->far_ns[i], &kind, scene,
				      &scene->handle[i]) != 0;
	return errors;
}

static int64_t do_schedule_at(struct scene *scene)
{
	int64_t errors = 0;

	for (int i = 0; i < OPERATIONS; i++)
		errors += tw_schedule_at(scene->engine, scene->now_ns + scene->far_ns[i], &kind,
					 scene, &scene->handle[i]) != 0;
	return errors;
}

static int64_t do_cancel_in_ingress(struct scene *scene)
{
	int64_t errors = 0;

	for (int i = 0; i < OPERATIONS; i++)
		errors += tw_cancel(scene->handle[i]) != TW_CANCEL_DONE;
	return errors;
}

static int64_t do_cancel_in_wheel(struct scene *scene)
{
	int64_t errors = 0;

	for (int i = 0; i < OPERATIONS; i++)
		errors += tw_cancel(scene->handle[i]) != TW_CANCEL_DONE;
	return errors;
}

static int64_t do_reschedule(struct scene *scene)
{
	int64_t errors = 0;

	for (int i = 0; i < OPERATIONS; i++)
		errors += tw_reschedule_at(scene->handle[i], scene->now_ns + scene->far_ns[i] +
								     TICK_NS) != TW_RESCHEDULE_DONE;
	return errors;
}

static int64_t do_reclaim_in_ingress(struct scene *scene)
{
	return tw_engine_poll_at(scene->engine, scene->now_ns, 0);
}

static int64_t do_reclaim(struct scene *scene)
{
	return tw_engine_poll_at(scene->engine, scene->now_ns, 0);
}

static int64_t do_transfer(struct scene *scene)
{
	return tw_engine_poll_at(scene->engine, scene->now_ns, 0);
}

/* Polls at each tick, like a worker that keeps up. */
static int64_t do_expire(struct scene *scene)
{
	int64_t expired = 0;

	for (int i = 0; i <= NEAR_TICKS; i++)
		expired += tw_engine_poll_at(scene->engine, scene->now_ns + i * TICK_NS, 0);
	return expired;
}

/*
 * Polls until just before the first timeout is due. In these polls all timeouts cascade from their
 * level.
 */
static int64_t do_cascade(struct scene *scene)
{
	int64_t expired = 0;

	for (int64_t tick = 0; tick < FAR_TICKS; tick += NEAR_TICKS)
		expired += tw_engine_poll_at(scene->engine, scene->now_ns + tick * TICK_NS, 0);
	return expired;
}

/* Takes the quick paths: cancels each timeout before it schedules the next one. */
static int64_t do_pair(struct scene *scene)
{
	int64_t errors = 0;

	for (int i = 0; i < OPERATIONS; i++) {
		errors += tw_schedule_at(scene->engine, scene->now_ns + scene->far_ns[i], &kind,
					 scene, &scene->handle[i]) != 0;
		errors += tw_cancel(scene->handle[i]) != TW_CANCEL_DONE;
	}
	return errors;
}

/* Takes the owner's short path, for timeouts that are cancelled soon after they were scheduled. */
static int64_t do_owner_pair(struct scene *scene)
{
	int64_t errors = 0;

	for (int i = 0; i < OPERATIONS; i += FRESH) {
		for (int k = i; k < i + FRESH; k++)
			errors += tw_schedule_at(scene->engine, scene->now_ns + scene->far_ns[k],
						 &kind, scene, &scene->handle[k]) != 0;
		for (int k = i; k < i + FRESH; k++)
			errors += tw_cancel(scene->handle[k]) != TW_CANCEL_DONE;
	}
	return errors;
}

static int64_t counted(const char *name, counted_path *path, struct scene *scene)
{
	puts(name);
	/* Waits until the other thread sleeps. Otherwise its last system call would count here. */
	usleep(5000);
	return counted_call(path, scene);
}

static uint64_t transferred(struct scene *scene)
{
	struct tw_stats stats = {.size = sizeof(stats)};

	must(tw_stats_get(scene->engine, &stats) == 0, "no counters");
	return stats.transferred;
}

static void step_reclaim_in_ingress(struct scene *scene)
{
	uint64_t before = transferred(scene);

	must(counted("reclaim-in-ingress", do_reclaim_in_ingress, scene) == 0,
	     "reclaim from ingress expired something");
	must(transferred(scene) == before, "what was cancelled went into the wheel");
}

static void step_reclaim(struct scene *scene)
{
	must(tw_engine_next_due(scene->engine) != TW_NEVER, "nothing to reclaim");
	must(counted("reclaim", do_reclaim, scene) == 0, "reclaim expired something");
	must(tw_engine_next_due(scene->engine) == TW_NEVER, "reclaim left something");
}

static void step_transfer(struct scene *scene)
{
	uint64_t before = transferred(scene);

	must(counted("transfer", do_transfer, scene) == 0, "transfer expired something");
	must(transferred(scene) - before == OPERATIONS, "transfer left something");
}

static void poll_quietly(struct scene *scene)
{
	must(tw_engine_poll_at(scene->engine, scene->now_ns, 0) == 0, "a poll expired something");
}

static void step_expire(struct scene *scene)
{
	poll_quietly(scene);
	must(counted("expire", do_expire, scene) == OPERATIONS, "not all have expired");
}

static void step_expire_unordered(struct scene *scene)
{
	poll_quietly(scene);
	must(counted("expire-unordered", do_expire, scene) == OPERATIONS, "not all have expired");
}

static void step_cascade(struct scene *scene)
{
	poll_quietly(scene);
	must(counted("cascade", do_cascade, scene) == 0, "a cascade expired something");
}

static void step_owner_pair(struct scene *scene)
{
	must(counted("owner-pair", do_owner_pair, scene) == 0, "the owner's pairs failed");
}

static void step_first_poll(struct scene *scene)
{
	poll_quietly(scene);
}

static void step_stop(struct scene *scene)
{
	must(tw_engine_stop(scene->engine, NULL, NULL, TW_NEVER) == 0, "no stop");
}

static void *owner_run(void *argument)
{
	struct scene *scene = argument;

	must(tw_loop_enter(scene->engine) == 0, "no bracket");
	while (sem_wait(&scene->begin) == 0 && scene->step != NULL) {
		scene->step(scene);
		sem_post(&scene->end);
	}
	return NULL;
}

/* Lets the owner make a step, while the calling thread waits. */
static void owner_take(struct scene *scene, void (*step)(struct scene *scene))
{
	scene->step = step;
	sem_post(&scene->begin);
	if (step != NULL)
		sem_wait(&scene->end);
}

static void move_to(struct scene *scene, int64_t now_ns)
{
	scene->now_ns = now_ns;
	must(tw_clock_set(scene->clock, now_ns) == 0, "the clock stands");
}

static void round_of_pairs(struct scene *scene)
{
	must(counted("pair", do_pair, scene) == 0, "pairs failed");
	owner_take(scene, step_first_poll);
}

static void round_in_ingress(struct scene *scene)
{
	must(counted("schedule", do_schedule, scene) == 0, "schedule failed");
	must(counted("cancel-in-ingress", do_cancel_in_ingress, scene) == 0,
	     "cancel in ingress failed");
	owner_take(scene, step_reclaim_in_ingress);
}

static void round_in_wheel(struct scene *scene)
{
	must(counted("schedule-at", do_schedule_at, scene) == 0, "schedule_at failed");
	owner_take(scene, step_transfer);
	must(counted("reschedule", do_reschedule, scene) == 0, "reschedule failed");
	must(counted("cancel-in-wheel", do_cancel_in_wheel, scene) == 0,
	     "cancel in the wheel failed");
	owner_take(scene, step_reclaim);
}

static void schedule_all(struct scene *scene, const int64_t *delay_ns)
{
	for (int i = 0; i < OPERATIONS; i++)
		must(tw_schedule(scene->engine, delay_ns[i], &kind, scene, &scene->handle[i]) == 0,
		     "schedule failed");
}

static void round_of_time(struct scene *scene)
{
	schedule_all(scene, scene->near_ns);
	owner_take(scene, step_expire);
	move_to(scene, scene->now_ns + ROUND_TICKS / 4 * TICK_NS);
	owner_take(scene, step_first_poll);
	schedule_all(scene, scene->far_ns);
	owner_take(scene, step_cascade);
	for (int i = 0; i < OPERATIONS; i++)
		must(tw_cancel(scene->handle[i]) == TW_CANCEL_DONE, "cancel failed");
	owner_take(scene, step_reclaim);
}

static void round_begin(struct scene *scene, int round)
{
	move_to(scene, (round + 1) * ROUND_TICKS * TICK_NS);
	owner_take(scene, step_first_poll);
}

static void round_take(struct scene *scene, int round)
{
	round_begin(scene, round);
	round_of_pairs(scene);
	round_in_ingress(scene);
	round_in_wheel(scene);
	round_of_time(scene);
	owner_take(scene, step_owner_pair);
}

/* Lets near timeouts expire, in the wheel of an engine that promises no order. */
static void round_unordered(struct scene *scene, int round)
{
	round_begin(scene, round);
	schedule_all(scene, scene->near_ns);
	owner_take(scene, step_expire_unordered);
}

/* Gives the engine the wheel of an engine with a worker thread, which sorts nothing. */
static void unordered_wheel(struct tw_engine *engine)
{
	twi_wheel_destroy(engine->worker.wheel);
	engine->worker.wheel = twi_engine_wheel(engine);
	must(engine->worker.wheel != NULL, "no wheel");
}

static void scene_open(struct scene *scene)
{
	struct tw_options options;

	must(sem_init(&scene->begin, 0, 0) == 0 && sem_init(&scene->end, 0, 0) == 0,
	     "no semaphores");
	must(tw_memory_reserve(4 * OPERATIONS) == 0, "no memory");
	must(tw_clock_create_virtual(0, &scene->clock) == 0, "no clock");
	must(tw_options_init(&options, sizeof(options)) == 0, "no options");
	options.flags = TW_ENGINE_LOOP;
	options.tick_ns = TICK_NS;
	options.clock = scene->clock;
	must(tw_engine_create(&options, &scene->engine) == 0, "no engine");
	/* Measures the producers' paths as on an engine with a worker thread, which has rings. */
	engine_use_rings(scene->engine);
	delays_fill(scene);
}

static void owner_start(struct scene *scene)
{
	must(pthread_create(&scene->owner, NULL, owner_run, scene) == 0, "no thread");
}

static void scene_close(struct scene *scene)
{
	owner_take(scene, step_stop);
	owner_take(scene, NULL);
	must(scene->expired == (uint64_t)ROUNDS * OPERATIONS, "not as many callbacks as timeouts");
	pthread_join(scene->owner, NULL);
	must(tw_engine_destroy(scene->engine) == 0 && tw_clock_destroy(scene->clock) == 0,
	     "no end");
}

int main(int argc, char **argv)
{
	static struct scene scene, unordered;

	plant_allocation = argc > 1 && strcmp(argv[1], "allocate") == 0;
	plant_call = argc > 1 && strcmp(argv[1], "call") == 0;
	scene_open(&scene);
	scene_open(&unordered);
	unordered_wheel(unordered.engine);
	owner_start(&scene);
	owner_start(&unordered);
	for (int round = 0; round < ROUNDS; round++) {
		round_take(&scene, round);
		round_unordered(&unordered, round);
	}
	scene_close(&scene);
	scene_close(&unordered);
	printf("operations %d\n", OPERATIONS);
	return 0;
}
