/* SPDX-License-Identifier: MIT */
/*
 * usage: faults-unload LIBRARY [rounds]
 *
 * Opens the library (dlopen), uses it and closes it (dlclose), again and again. Timeouts are
 * pending, the worker runs, and threads have used the library and end after it was closed. The
 * library stays loaded (-z nodelete), so accepted timeouts are still run. They expire, or a stop
 * through the library opened again hands them back. This program is not linked with the library.
 *
 * Seen to fail with this defect: the library is linked without -z nodelete, so the worker's code is
 * gone (segmentation fault).
 */
#include "race.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>

enum {
	SOON = 200,
	FAR = 100,
	USERS = 3,
};

/* The library's functions, found by their names. */
struct api {
	void *library;
	int (*create)(const struct tw_options *, struct tw_engine **);
	int (*schedule)(struct tw_engine *, int64_t, const struct tw_kind *, void *,
			struct tw_handle *);
	int (*cancel)(struct tw_handle);
	int (*stop)(struct tw_engine *, tw_unexpired_hook *, void *, int64_t);
	int (*destroy)(struct tw_engine *);
};

static const char *path;
static struct tw_engine *engine;
static atomic_llong accepted, expired, cancelled, unexpired, closes;
static pthread_barrier_t used, closed;

static void find(void *library, const char *name, void *ret_function)
{
	void *symbol = dlsym(library, name);

	RACE_CHECK(symbol != NULL);
	memcpy(ret_function, &symbol, sizeof symbol);
}

static struct api api_open(void)
{
	struct api api = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};

	if (api.library == NULL)
		fprintf(stderr, "%s\n", dlerror());
	RACE_CHECK(api.library != NULL);
	find(api.library, "tw_engine_create", &api.create);
	find(api.library, "tw_schedule", &api.schedule);
	find(api.library, "tw_cancel", &api.cancel);
	find(api.library, "tw_engine_stop", &api.stop);
	find(api.library, "tw_engine_destroy", &api.destroy);
	return api;
}

static void api_close(struct api *api)
{
	RACE_CHECK(dlclose(api->library) == 0);
	memset(api, 0, sizeof *api);
	atomic_fetch_add(&closes, 1);
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&expired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)its_kind;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add(&unexpired, 1);
}

static void schedule_some(const struct api *api)
{
	struct tw_handle handle;
	int number;

	for (number = 0; number < SOON; number++) {
		RACE_CHECK(api->schedule(engine, number % 8 * 1000000, &kind, NULL, NULL) == 0);
		atomic_fetch_add(&accepted, 1);
	}
	for (number = 0; number < FAR; number++) {
		RACE_CHECK(api->schedule(engine, TW_NEVER, &kind, NULL, &handle) == 0);
		atomic_fetch_add(&accepted, 1);
		if (number % 4 != 0)
			continue;
		RACE_CHECK(api->cancel(handle) == TW_CANCEL_DONE);
		atomic_fetch_add(&cancelled, 1);
	}
}

/*
 * Uses the library, and ends after it was closed, because a thread gives its thread data back when
 * it ends.
 */
static void *user_body(void *arg)
{
	struct api api = api_open();

	schedule_some(&api);
	api_close(&api);
	(void)pthread_barrier_wait(&used);
	(void)pthread_barrier_wait(&closed);
	return arg;
}

static void engine_begin(void)
{
	struct api api = api_open();

	RACE_CHECK(api.create(NULL, &engine) == 0);
	schedule_some(&api);
	api_close(&api);
}

static void engine_end(void)
{
	struct api api = api_open();

	RACE_CHECK(api.stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	RACE_CHECK(api.destroy(engine) == 0);
	api_close(&api);
}

static void round_run(void)
{
	pthread_t user[USERS];
	int number;

	engine_begin();
	for (number = 0; number < USERS; number++)
		RACE_CHECK(pthread_create(&user[number], NULL, user_body, NULL) == 0);
	(void)pthread_barrier_wait(&used);
	(void)nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
	(void)pthread_barrier_wait(&closed);
	for (number = 0; number < USERS; number++)
		RACE_CHECK(pthread_join(user[number], NULL) == 0);
	engine_end();
}

int main(int argc, char **argv)
{
	uint64_t rounds = race_argument(argc, argv, 2, 40);
	uint64_t round;
	long long ended;

	RACE_CHECK(argc > 1);
	race_watchdog(100);
	path = argv[1];
	(void)pthread_barrier_init(&used, NULL, USERS + 1);
	(void)pthread_barrier_init(&closed, NULL, USERS + 1);
	for (round = 0; round < rounds; round++)
		round_run();
	ended = expired + cancelled + unexpired;
	printf("dlclose with threads alive: %lld closes, %lld accepted, %lld ended, %lld lost\n",
	       (long long)closes, (long long)accepted, ended, accepted - ended);
	RACE_CHECK(closes > 0 && expired > 0 && unexpired > 0 && cancelled > 0);
	return accepted != ended;
}
