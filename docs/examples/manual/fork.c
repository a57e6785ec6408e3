/* SPDX-License-Identifier: MIT */
/* A server that forks. The child takes over the engine and its
 * timeouts. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

struct cache {
	int generation;
	int entries;
};

/* example: tw_fork_handlers_enable */
/* Not needed any more: it does nothing and returns 0. */
static int server_begin(void)
{
	return tw_fork_handlers_enable();
}
/* end */

/* example: tw_fork_reinit */
/* The child continues with its own copy of all timeouts. */
static pid_t server_fork(struct tw_engine *engine)
{
	pid_t child = fork();

	if (child == 0 &&
	    tw_fork_reinit(engine, TW_REINIT_KEEP) < 0)
		_exit(1);
	return child;
}
/* end */

/* example: tw_fork_generation */
/* Empties the cache in a forked child. */
static void cache_use(struct cache *cache)
{
	int generation = tw_fork_generation();

	if (cache->generation != generation)
		cache->entries = 0;
	cache->generation = generation;
}
/* end */

static void on_expired(struct tw_handle self, void *arg)
{
	(void)self;
	*(bool *)arg = true;
}

static const struct tw_kind session = TW_KIND(on_expired, NULL);

static void session_end(struct bench *bench, const bool *expired)
{
	bench_pass(bench, TW_MINUTES(31));
	CHECK(*expired);
	bench_stop(bench);
	bench_close(bench);
}

int main(void)
{
	struct cache cache = {.generation = tw_fork_generation(),
			      .entries = 1};
	bool expired = false;
	struct bench bench;
	pid_t child;
	int status;

	CHECK(server_begin() == 0);
	bench = bench_open(bench_options());
	CHECK(tw_schedule(bench.engine, TW_MINUTES(30), &session,
			  &expired, NULL) == 0);
	child = server_fork(bench.engine);
	CHECK(child >= 0);
	cache_use(&cache);
	CHECK(cache.entries == (child == 0 ? 0 : 1));
	session_end(&bench, &expired);
	if (child > 0)
		CHECK(waitpid(child, &status, 0) == child &&
		      status == 0);
	return 0;
}
