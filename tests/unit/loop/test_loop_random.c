/* SPDX-License-Identifier: MIT */
/*
 * Loop mode at random, in virtual time. The owner, its callbacks and another thread schedule,
 * cancel and reschedule. While a timeout is due, the descriptor must be readable, and
 * tw_engine_next_due must not return a later time. No timeout may be early.
 *
 * Seen to fail with these defects: an owner's later timeout sets the descriptor's timer to a later
 * time although an earlier timeout is pending; the published poll time is not updated when a
 * callback moves an owner-only timeout to the past in the last turn.
 */
#include "fixture.h"
#include "random.h"
#include "slowdown.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#define TICK_NS INT64_C(1000000)

enum { SEEDS = 400, TIMEOUTS = 60, STEPS = 300 };

struct item {
	struct tw_handle handle;
	int64_t deadline_ns;
	bool pending;
	bool owned;
};

static struct {
	struct fixture fixture;
	struct random random;
	struct item item[TIMEOUTS];
	sem_t go, done;
	bool over;
	bool fd_made;
} scene;

static int64_t random_deadline_ns(void)
{
	int64_t now_ns = scene.fixture.now_ns;

	switch (random_below(&scene.random, 8)) {
	case 0:
		return TW_NEVER;
	case 1:
		return 0;
	case 2:
		return now_ns + (int64_t)random_below(&scene.random, 100000 * TICK_NS);
	default:
		return now_ns + (int64_t)random_below(&scene.random, 20 * TICK_NS);
	}
}

static void some_operation(bool by_owner);

static void on_expire(struct tw_handle self, void *arg)
{
	struct item *item = arg;

	check_true(item->pending && item->handle.generation == self.generation);
	check_true(item->deadline_ns <= scene.fixture.now_ns);
	item->pending = false;
	for (uint64_t i = random_below(&scene.random, 3); i > 0; i--)
		some_operation(true);
}

static const struct tw_kind shared = TW_KIND(on_expire, NULL);
static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_expire, NULL);

static void item_schedule(struct item *item, bool by_owner)
{
	item->owned = by_owner && random_below(&scene.random, 2) == 0;
	item->deadline_ns = random_deadline_ns();
	check_int(tw_schedule_at(scene.fixture.engine, item->deadline_ns,
				 item->owned ? &owned : &shared, item, &item->handle),
		  0);
	item->pending = true;
}

static void some_operation(bool by_owner)
{
	struct item *item = &scene.item[random_below(&scene.random, TIMEOUTS)];
	bool cancels = random_below(&scene.random, 3) == 0;
	int64_t deadline_ns = random_deadline_ns();
	int outcome;

	if (!item->pending) {
		item_schedule(item, by_owner);
		return;
	}
	outcome = cancels ? tw_cancel(item->handle) : tw_reschedule_at(item->handle, deadline_ns);
	check_int(outcome, item->owned && !by_owner ? -EPERM : 0);
	if (outcome != 0)
		return;
	item->pending = !cancels;
	item->deadline_ns = deadline_ns;
}

static void *other_body(void *arg)
{
	(void)arg;
	for (;;) {
		(void)sem_wait(&scene.go);
		if (scene.over)
			return NULL;
		some_operation(false);
		(void)sem_post(&scene.done);
	}
}

static void random_step(void)
{
	uint64_t choice = random_below(&scene.random, 10);

	if (choice < 5) {
		some_operation(true);
	} else if (choice < 7) {
		(void)sem_post(&scene.go);
		(void)sem_wait(&scene.done);
	} else if (choice == 7) {
		scene.fixture.now_ns += (int64_t)random_below(&scene.random, 3 * TICK_NS);
		check_int(tw_clock_set(scene.fixture.clock, scene.fixture.now_ns), 0);
	} else if (choice == 8 && !scene.fd_made) {
		scene.fd_made = tw_engine_fd(scene.fixture.engine) >= 0;
	} else {
		check_true(tw_engine_poll(scene.fixture.engine, random_below(&scene.random, 4)) >=
			   0);
	}
}

static bool something_is_due(void)
{
	for (size_t i = 0; i < TIMEOUTS; i++) {
		const struct item *item = &scene.item[i];

		if (item->pending && item->deadline_ns != TW_NEVER &&
		    (item->deadline_ns / TICK_NS + 1) * TICK_NS <= scene.fixture.now_ns)
			return true;
	}
	return false;
}

static void due_check(void)
{
	struct pollfd fd = {.events = POLLIN};

	if (!something_is_due())
		return;
	if (scene.fd_made) {
		fd.fd = tw_engine_fd(scene.fixture.engine);
		check_int(poll(&fd, 1, 0), 1);
	}
	check_true(tw_engine_next_due(scene.fixture.engine) <= scene.fixture.now_ns);
}

static void one_seed(uint64_t seed)
{
	struct tw_options options = fixture_options();

	scene.random = (struct random){.state = seed};
	scene.fd_made = false;
	options.flags = TW_ENGINE_LOOP | (seed % 2 != 0 ? TW_ENGINE_ORDERED : 0);
	if (seed % 3 == 0)
		options.transfer_batch = 2;
	fixture_open(&scene.fixture, &options);
	check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
	for (int step = 0; step < STEPS; step++) {
		random_step();
		due_check();
	}
	for (int polls = 0; something_is_due(); polls++) {
		check_true(polls < 1000);
		check_true(tw_engine_poll(scene.fixture.engine, 0) >= 0);
	}
	fixture_close(&scene.fixture);
	memset(scene.item, 0, sizeof(scene.item));
}

Test(loop_random, due_timeout_makes_the_descriptor_readable)
{
	pthread_t other;

	(void)sem_init(&scene.go, 0, 0);
	(void)sem_init(&scene.done, 0, 0);
	check_int(pthread_create(&other, NULL, other_body, NULL), 0);
	for (uint64_t seed = 1; seed <= slowed(SEEDS); seed++)
		one_seed(seed);
	scene.over = true;
	(void)sem_post(&scene.go);
	check_int(pthread_join(other, NULL), 0);
}
