/* SPDX-License-Identifier: MIT */
/**
 * @file durable_redis.h
 * A store of durable timers in Redis, which any number of processes share. Library tickwheel-redis
 * (pkg-config tickwheel-redis), available if tickwheel was built with the feature `redis`.
 * docs/machines.md says when one machine is enough, what is promised, and what Redis may lose.
 *
 * Codes of tw_durable_open with this store, and the `error` with which its set fails:
 *
 * | code          | meaning                                                                     |
 * |---------------|-----------------------------------------------------------------------------|
 * | -ECONNREFUSED | no server answers at this address                                           |
 * | -EACCES       | it rejects the user or the password, permits too little, or does not say what it keeps |
 * | -ENOTSUP      | it is older than 6.2, part of a cluster, may evict keys, keeps a lower level or another format |
 * | -EUCLEAN      | the keys are not as the library has made them                               |
 * | -ENOENT       | the server was emptied while the set was open: all timers are gone          |
 * | -EROFS        | the server is a replica                                                     |
 * | -EIO          | it takes no writes, because it cannot save them                             |
 * | -ENOSPC       | it has no memory left                                                       |
 * | -EAGAIN       | it loads its data, or is busy                                               |
 * | -ECONNRESET   | the connection broke: nobody knows whether the script was done              |
 * | -EPROTO       | it replies what the library does not know; the notice has its words         |
 */
#ifndef TICKWHEEL_DURABLE_REDIS_H
#define TICKWHEEL_DURABLE_REDIS_H

#include <tickwheel/durable.h>

TW_BEGIN_DECLS

/** redisContext of hiredis.h. */
struct redisContext;

/** The options of a store; tw_durable_redis_options_init fills in the defaults. */
struct tw_durable_redis_options {
	/** sizeof(struct tw_durable_redis_options). */
	size_t size;
	/** 0. */
	uint64_t flags;
	/** The path of a socket ("/run/redis/redis.sock"), or "HOST", "HOST:PORT", "[HOST]:PORT". Copied.
	 * TCP is not encrypted: beyond a network that is trusted, set `connect`. `notice` gets a
	 * warning once, if the server is not on this machine. */
	const char *address;
	/** NULL: none. Copied. With `connect`, that function authenticates, and these must be NULL. */
	const char *user;
	const char *password;
	/** The first part of the names of all keys: 1 to 32 characters of a-z, 0-9 and '_'. Default
	 * "tickwheel". */
	const char *prefix;
	/** The name of this process, for people who look. Default "". */
	const char *name;
	/** A process that is silent for so long has lost its timers to others, in nanoseconds; 1 s to
	 * 1 hour, default 10 s. All processes should have the same. */
	uint64_t session_ns;
	/** How often due timers are looked for, in nanoseconds; 10 ms to 1 minute, default 1 s. A timer
	 * that another process has scheduled for sooner is late by as much. */
	uint64_t poll_ns;
	/** The number of the database, 0 to 15. */
	uint32_t database;
	/** An enum tw_durable_level: what the server keeps, where it does not permit CONFIG GET. Counts
	 * there only. Default 0: not known. */
	uint32_t level;
	/** Receives what the server or the connection says when something fails, for a log. Called
	 * on the set's thread, and in tw_durable_open. NULL: nothing does. */
	void (*notice)(void *context, const char *text);
	void *context;
	/** Makes a connection that is authenticated and has its database, for example one with TLS, or
	 * to the present master of several servers. It is called for two connections, and whenever
	 * one broke, on the threads of `notice`; it should give up after some seconds. The library
	 * frees the connection by redisFree. NULL: there is none. `address` is not used. */
	struct redisContext *(*connect)(void *context);
	void *connect_context;
};

/**
 * Fills options with the defaults.
 *
 * Units: `size`, sizeof(struct tw_durable_redis_options).
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 and `*ret_options`; -EINVAL (NULL, a size that is too small); -E2BIG.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_redis_options_init(struct tw_durable_redis_options *ret_options,
						size_t size);

/**
 * Makes a store that keeps durable timers in Redis. tw_durable_open connects, and makes the keys that
 * are not there.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free but for memory.
 * Lifetime: the options during the call. tw_durable_open takes the store over; its `close` frees it.
 * Returns: 0 and `*ret_store`; -EINVAL (NULL, neither an address nor `connect`, a password with
 *   `connect`, a user without a password, a prefix, a number or a time out of its range); -E2BIG;
 *   -ENOMEM.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_store_redis(const struct tw_durable_redis_options *options,
					 struct tw_durable_store *ret_store);

TW_END_DECLS

#endif
