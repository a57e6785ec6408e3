/* SPDX-License-Identifier: MIT */
/*
 * A reader of the counters is stopped in the middle. While it is stopped between two lanes, or
 * after the last lane, other threads schedule and cancel. One pass over all lanes is a collect.
 * Each case is the same in every run, so the bound on the reading's error is exact:
 *
 * - threads cancel their own timeouts: the error is at most one for each thread, if each lane of a
 *   collect is disturbed;
 * - one thread schedules, another cancels: the reading is exact if only the first collect is
 *   disturbed, because that collect took too long and is repeated. If all nine are disturbed, the
 *   error is at most the number of calls during the ninth;
 * - in every case: no reading is above the limit or below zero. In each reading the counters add
 *   up, and none is less than in the previous one.
 *
 * Seen to fail with these defects (in parentheses: the tests):
 * - lane_read() reads its two counters one after the other, with the test point between them (own);
 * - collect() is not repeated, or is repeated more than eight times (handed_over);
 * - the count of scheduled timeouts is not reduced to the limit, or is not raised to the count of
 *   ended ones (bounds).
 */
#include "race.h"

#include "base/test_point.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>

enum {
	STANDING = 1000,
	ACTORS = 4,
	HANDLES = 20000,
	/* The first collect and eight repetitions, as in src/api/stats.c. */
	COLLECTS = 9,
	/* how long the reader is stopped at least, so that its collect counts as too slow */
	STAND_NS = 100000,
};

static struct tw_engine *engine;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/* A thread with a lane of its own, which does only the jobs that it receives. */
struct actor {
	pthread_t thread;
	sem_t go, done;
	void (*job)(struct actor *actor);
	unsigned count;          /* how often to do the job */
	struct tw_handle handle; /* the timeout of own_toggle */
	bool has;
};

static struct actor actors[ACTORS];

/* One actor schedules these timeouts, and another cancels them. */
static struct tw_handle handles[HANDLES];
static unsigned handed, taken;

static void *actor_main(void *argument)
{
	struct actor *actor = argument;

	RACE_CHECK(tw_thread_attach() == 0);
	for (;;) {
		(void)sem_wait(&actor->go);
		if (actor->job == NULL)
			return NULL;
		actor->job(actor);
		(void)sem_post(&actor->done);
	}
}

static void actor_do(struct actor *actor, void (*job)(struct actor *actor), unsigned count)
{
	actor->job = job;
	actor->count = count;
	(void)sem_post(&actor->go);
	if (job != NULL)
		(void)sem_wait(&actor->done);
}

/*
 * Schedules a timeout and cancels it in turn, `count` calls in all. Now and then flushes, so that
 * the timeout is in the wheel.
 */
static void own_toggle(struct actor *actor)
{
	for (unsigned i = 0; i < actor->count; i++) {
		if (actor->has)
			RACE_CHECK(tw_cancel(actor->handle) == TW_CANCEL_DONE);
		else
			RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &actor->handle) == 0);
		actor->has = !actor->has;
		if (i % 16 == 0)
			RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	}
}

static void hand_over(struct actor *actor)
{
	for (unsigned i = 0; i < actor->count; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL,
				       &handles[handed++ % HANDLES]) == 0);
}

static void take_over(struct actor *actor)
{
	for (unsigned i = 0; i < actor->count; i++)
		RACE_CHECK(tw_cancel(handles[taken++ % HANDLES]) == TW_CANCEL_DONE);
}

/* How a reading is disturbed. The reader calls `act` at each of its test points. */
static struct {
	bool armed;
	void (*act)(void);
	unsigned collects; /* how many collects have ended */
	/*
	 * the number of the point in this collect, from 0; the reader passes one for each lane in
	 * use
	 */
	unsigned point;
	unsigned acts;
	/* calls in all, in this collect, and in the previous collect */
	unsigned calls, calls_here, calls_last;
} scene;

static void stand(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = STAND_NS}, NULL);
}

void twi_test_point(const char *name)
{
	static _Thread_local bool inside;

	/* Ignores the other points, which the actors pass. */
	if (strncmp(name, "stats:", 6) != 0 || !scene.armed || inside)
		return;
	inside = true;
	if (strcmp(name, "stats:lanes") == 0) {
		scene.collects++;
		scene.calls_last = scene.calls_here;
		scene.calls_here = 0;
		scene.point = 0;
	} else if (scene.act != NULL) {
		scene.act();
		scene.point++;
	}
	inside = false;
}

static struct tw_stats last;

/* Reads while `act` disturbs, and checks the properties of every reading. */
static int64_t read_with(void (*act)(void))
{
	struct tw_stats stats = {.size = sizeof stats};

	memset(&scene, 0, sizeof scene);
	scene.act = act;
	scene.armed = true;
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	scene.armed = false;
	RACE_CHECK(scene.collects <= COLLECTS);
	RACE_CHECK(stats.scheduled ==
		   stats.expired + stats.cancelled + stats.unexpired + stats.pending);
	RACE_CHECK(stats.scheduled >= last.scheduled && stats.cancelled >= last.cancelled);
	RACE_CHECK(stats.cancelled_early >= last.cancelled_early);
	RACE_CHECK(stats.cancelled_early <= stats.cancelled);
	last = stats;
	return (int64_t)stats.pending;
}

/* Does the same for tw_engine_pending, which returns only the number of pending timeouts. */
static int64_t pending_with(void (*act)(void))
{
	int64_t pending;

	memset(&scene, 0, sizeof scene);
	scene.act = act;
	scene.armed = true;
	pending = tw_engine_pending(engine);
	scene.armed = false;
	RACE_CHECK(scene.collects <= COLLECTS);
	return pending;
}

static void engine_open(uint64_t limit, int standing)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.pending_limit = limit;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	for (int i = 0; i < standing; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	handed = taken = 0;
	memset(&last, 0, sizeof last);
}

/*
 * Closes the engine. When no thread acts any more, the reading must be exact, whatever happened
 * before.
 */
static void engine_close(int64_t pending)
{
	RACE_CHECK(read_with(NULL) == pending && pending_with(NULL) == pending);
	RACE_CHECK(last.pending == (uint64_t)pending);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

/* Acts at each lane of each collect, with an odd and an even number of calls in turn. */
static void own_act(void)
{
	for (unsigned i = 0; i < ACTORS; i++)
		actor_do(&actors[i], own_toggle, 33 + (scene.acts + i) % 2);
	scene.acts++;
	stand();
}

static void own(void)
{
	int64_t pending = STANDING;

	engine_open(0, STANDING);
	for (unsigned i = 0; i < ACTORS; i++)
		actor_do(&actors[i], own_toggle, 1 + i % 2);
	for (int round = 0; round < 4; round++) {
		pending = read_with(own_act);
		RACE_CHECK(pending >= STANDING && pending <= STANDING + ACTORS);
		RACE_CHECK(scene.collects == COLLECTS);
		pending = pending_with(own_act);
		RACE_CHECK(pending >= STANDING && pending <= STANDING + ACTORS);
	}
	pending = STANDING;
	for (unsigned i = 0; i < ACTORS; i++) {
		pending += actors[i].has;
		actors[i].has = false;
	}
	engine_close(pending);
}

static void handed_over_act(void)
{
	actor_do(&actors[0], hand_over, 40);
	actor_do(&actors[1], take_over, 30);
	actor_do(&actors[3], hand_over, 30);
	actor_do(&actors[2], take_over, 20);
	scene.calls += 120;
	scene.calls_here += 120;
	stand();
}

static void handed_over_once(void)
{
	if (scene.acts++ == 0)
		handed_over_act();
}

static int64_t handed_over_pending(void)
{
	return STANDING + (int64_t)(handed - taken);
}

/* Checks that after a disturbed collect the error is at most the number of calls during it. */
static void handed_over_check(int64_t pending)
{
	int64_t error = pending - handed_over_pending();

	RACE_CHECK(scene.collects == COLLECTS);
	RACE_CHECK(error <= (int64_t)scene.calls_last && -error <= (int64_t)scene.calls_last);
}

static void handed_over(void)
{
	engine_open(0, STANDING);
	actor_do(&actors[0], hand_over, 100);
	actor_do(&actors[1], take_over, 1);
	actor_do(&actors[2], take_over, 1);
	actor_do(&actors[3], hand_over, 100);
	for (int round = 0; round < 4; round++) {
		RACE_CHECK(read_with(handed_over_once) == handed_over_pending());
		RACE_CHECK(scene.calls == 120 && scene.collects > 1);
		RACE_CHECK(pending_with(handed_over_once) == handed_over_pending());
		handed_over_check(read_with(handed_over_act));
		handed_over_check(pending_with(handed_over_act));
	}
	engine_close(handed_over_pending());
}

enum { LIMIT = 64 };

/*
 * Cancels timeouts in a lane that was read already, and schedules others in a lane that was not.
 * The reader counts both, so it sees twice as many timeouts as are pending.
 */
static void full_act(void)
{
	if (scene.point != 1)
		return;
	actor_do(&actors[1], take_over, LIMIT);
	actor_do(&actors[3], hand_over, LIMIT);
	stand();
}

/*
 * Schedules timeouts in a lane that was read already, and cancels them in a lane that was not. So
 * the reader sees more ends than schedules.
 */
static void empty_act(void)
{
	if (scene.point != 0)
		return;
	actor_do(&actors[0], hand_over, LIMIT);
	actor_do(&actors[1], take_over, LIMIT);
	stand();
}

static void bounds_check(void (*act)(void), int64_t pending)
{
	for (int round = 0; round < 4; round++)
		RACE_CHECK(read_with(act) == pending && scene.collects == COLLECTS &&
			   pending_with(act) == pending);
}

static void bounds(void)
{
	engine_open(LIMIT, 0);
	/*
	 * These calls make the lanes of all four actors known, so that the reader reads them, in
	 * the order of the actors.
	 */
	for (unsigned i = 0; i < 2; i++) {
		actor_do(&actors[3 * i], hand_over, 1);
		actor_do(&actors[1 + i], take_over, 1);
	}
	bounds_check(empty_act, 0);
	actor_do(&actors[0], hand_over, LIMIT);
	bounds_check(full_act, LIMIT);
	engine_close(LIMIT);
}

int main(void)
{
	race_watchdog(60);
	RACE_CHECK(tw_thread_attach() == 0);
	for (unsigned i = 0; i < ACTORS; i++) {
		(void)sem_init(&actors[i].go, 0, 0);
		(void)sem_init(&actors[i].done, 0, 0);
		RACE_CHECK(pthread_create(&actors[i].thread, NULL, actor_main, &actors[i]) == 0);
		/* The actor's first call gets it the next lane. */
		actor_do(&actors[i], own_toggle, 0);
	}
	own();
	handed_over();
	bounds();
	for (unsigned i = 0; i < ACTORS; i++) {
		actor_do(&actors[i], NULL, 0);
		RACE_CHECK(pthread_join(actors[i].thread, NULL) == 0);
	}
	return 0;
}
