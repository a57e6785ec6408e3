/* SPDX-License-Identifier: MIT */
/* Redis as the store of the tests in ../shared. */
#ifndef TESTS_DURABLE_REDIS_BENCH_REDIS_H
#define TESTS_DURABLE_REDIS_BENCH_REDIS_H

#include "bench.h"

#include "durable/redis/store.h"

#include <tickwheel/durable_redis.h>

struct bench_redis {
	char prefix[32];
	redisContext *connection; /* the test's own connection to the server */
	char notice[256];         /* the text of the store's last notice */
};

extern struct bench_redis bench_redis;

/*
 * Runs a command as redisCommand() does, with the same format. Returns the number in the reply or,
 * if the reply is an array, the number of its elements. bench_key() returns names of keys.
 */
int64_t bench_command(const char *format, ...);
/* Returns the name of a key. It is valid for the next three calls. */
const char *bench_key(const char *name);

#endif
