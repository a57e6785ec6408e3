/* SPDX-License-Identifier: MIT */
/* Redis as the store of the tests in ../shared. */
#ifndef TESTS_DURABLE_REDIS_BENCH_REDIS_H
#define TESTS_DURABLE_REDIS_BENCH_REDIS_H

#include "bench.h"

#include "durable/redis/store.h"

#include <tickwheel/durable_redis.h>

struct bench_redis {
	char prefix[32];
	redisContext *connection; /* of the test itself */
	char notice[256];         /* the last one */
};

extern struct bench_redis bench_redis;

/* Runs a command, as redisCommand(); "%k" is not known to it: names of keys come from bench_key(). The
 * number of the reply, or of its elements. */
int64_t bench_command(const char *format, ...);
/* The name of a key; valid until the next call but three. */
const char *bench_key(const char *name);

#endif
