/* SPDX-License-Identifier: MIT */
/* Redis as the store of the tests in ../shared. */
#ifndef TESTS_DURABLE_REDIS_BENCH_REDIS_H
#define TESTS_DURABLE_REDIS_BENCH_REDIS_H

#include "bench.h"

#include "durable/redis/store.h"

#include <tickwheel/durable_redis.h>

struct bench_redis {
	char prefix[32];
	redisContext *connection; /* the test's own connection */
	char notice[256];         /* the last notice of the store */
};

extern struct bench_redis bench_redis;

/*
 * Runs a command as redisCommand() does, with the same format. bench_key() gives names of keys.
 * Returns the number in the reply, or of its elements.
 */
int64_t bench_command(const char *format, ...);
/* Returns the name of a key. It is valid for the next three calls. */
const char *bench_key(const char *name);

#endif
