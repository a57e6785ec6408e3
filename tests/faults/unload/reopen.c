/* SPDX-License-Identifier: MIT */
/*
 * usage: faults-reopen LIBRARY [rounds]
 *
 * Repeats a thousand times: dlopen; create, use, stop and destroy an engine; dlclose. In each round
 * a thread uses the library and ends after it was closed. Memory, slabs, threads, descriptors and
 * mappings must then be the same as after ten rounds. This program is not linked with the library.
 *
 * Seen to fail with this defect: the library is linked without -z nodelete, so the end of the
 * thread calls code that is gone.
 */
#include "footprint.h"
#include "race.h"
#include "slowdown.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

enum { ROUNDS = 1000, ROUNDS_BEFORE = 10 };

#define SLACK_BYTES (512 << 10)

static const char *path;
static atomic_llong runs, unexpired;

static void *library_open(void)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		fprintf(stderr, "%s\n", dlerror());
	RACE_CHECK(library != NULL);
	return library;
}

static void library_close(void *library)
{
	RACE_CHECK(dlclose(library) == 0);
}

static void find(void *library, const char *name, void *ret_function)
{
	void *symbol = dlsym(library, name);

	RACE_CHECK(symbol != NULL);
	memcpy(ret_function, &symbol, sizeof symbol);
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&runs, 1);
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

static void use(void *library, struct tw_engine *engine)
{
	int (*schedule)(struct tw_engine *, int64_t, const struct tw_kind *, void *,
			struct tw_handle *);
	int (*cancel)(struct tw_handle);
	struct tw_handle handle;

	find(library, "tw_schedule", &schedule);
	find(library, "tw_cancel", &cancel);
	for (int number = 0; number < 20; number++) {
		RACE_CHECK(schedule(engine, number % 2 * INT64_C(1000000000), &kind, NULL,
				    &handle) == 0);
		if (number % 4 == 1)
			RACE_CHECK(cancel(handle) == TW_CANCEL_DONE);
	}
}

static struct tw_engine *engine;
static pthread_barrier_t used, closed;

/* Uses the library, and ends when all handles to it are closed. */
static void *user_body(void *arg)
{
	void *library = library_open();

	use(library, engine);
	library_close(library);
	(void)pthread_barrier_wait(&used);
	(void)pthread_barrier_wait(&closed);
	return arg;
}

static void engine_begin(void *library)
{
	int (*create)(const struct tw_options *, struct tw_engine **);

	find(library, "tw_engine_create", &create);
	RACE_CHECK(create(NULL, &engine) == 0);
	use(library, engine);
}

static void engine_end(void *library)
{
	int (*stop)(struct tw_engine *, tw_unexpired_hook *, void *, int64_t);
	int (*destroy)(struct tw_engine *);

	find(library, "tw_engine_stop", &stop);
	find(library, "tw_engine_destroy", &destroy);
	RACE_CHECK(stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	RACE_CHECK(destroy(engine) == 0);
}

static void round_run(void)
{
	void *library = library_open();
	pthread_t user;

	engine_begin(library);
	RACE_CHECK(pthread_create(&user, NULL, user_body, NULL) == 0);
	(void)pthread_barrier_wait(&used);
	engine_end(library);
	library_close(library);
	(void)pthread_barrier_wait(&closed);
	RACE_CHECK(pthread_join(user, NULL) == 0);
}

static long long slab_bytes(void)
{
	uint64_t (*bytes)(void);
	void *library = library_open();
	long long result;

	find(library, "tw_memory_slab_bytes", &bytes);
	result = (long long)bytes();
	library_close(library);
	return result;
}

static void footprints_compare(const struct footprint *before, const struct footprint *after)
{
	printf("resident bytes %lld, %lld; mappings %lld, %lld; threads %lld, %lld; "
	       "descriptors %lld, %lld\n",
	       before->resident_bytes, after->resident_bytes, before->mappings, after->mappings,
	       before->threads, after->threads, before->descriptors, after->descriptors);
	RACE_CHECK(after->threads == before->threads);
	RACE_CHECK(after->descriptors == before->descriptors);
	/*
	 * valgrind and sanitizers add their own memory to these figures, so this program does not
	 * compare the figures under them.
	 */
	if (!FOOTPRINT_EXACT || slowdown() > 1)
		return;
	RACE_CHECK(after->mappings <= before->mappings + 2);
	RACE_CHECK(after->resident_bytes <= before->resident_bytes + SLACK_BYTES);
}

int main(int argc, char **argv)
{
	uint64_t rounds = race_argument(argc, argv, 2, 2 * ROUNDS_BEFORE + slowed(ROUNDS));
	struct footprint before = {0}, after;
	long long slab_bytes_before = 0;

	RACE_CHECK(argc > 1 && rounds > ROUNDS_BEFORE);
	race_watchdog(100);
	path = argv[1];
	(void)pthread_barrier_init(&used, NULL, 2);
	(void)pthread_barrier_init(&closed, NULL, 2);
	for (uint64_t round = 0; round < rounds; round++) {
		if (round == ROUNDS_BEFORE) {
			slab_bytes_before = slab_bytes();
			before = footprint_take();
		}
		round_run();
	}
	after = footprint_take_after(&before);
	RACE_CHECK(slab_bytes() == slab_bytes_before);
	footprints_compare(&before, &after);
	/* Each round has two uses of 20 timeouts, of which 5 are cancelled. */
	RACE_CHECK(atomic_load(&runs) + atomic_load(&unexpired) == (long long)rounds * 2 * 15);
	return 0;
}
