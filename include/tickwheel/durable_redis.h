/* SPDX-License-Identifier: MIT */
/**
 * @file durable_redis.h
 * A store of durable timers in Redis, which any number of processes can share. It is in the library
 * tickwheel-redis (pkg-config tickwheel-redis), which exists if tickwheel was built with the
 * feature `redis`. docs/machines.md says when one machine is enough, what the store promises, and
 * what Redis may lose.
 *
 * Codes of tw_durable_open with this store, and the `error` with which its set fails:
 *
 * | code          | meaning                                                                     |
 * |---------------|-----------------------------------------------------------------------------|
 * | -ECONNREFUSED | no server answers at this address                                           |
 * | -EACCES       | the server rejects the user or the password, permits too little, or permits no CONFIG GET while `level` is 0 |
 * | -ENOTSUP      | the server is older than 6.2, part of a cluster, or may evict keys, or keeps a lower level or another format |
 * | -EUCLEAN      | the keys are not as the library made them                                   |
 * | -ENOENT       | the server was emptied while the set was open: all timers are gone          |
 * | -EROFS        | the server is a replica                                                     |
 * | -EIO          | the server takes no writes, because it cannot save them                     |
 * | -ENOSPC       | the server has no memory left                                               |
 * | -EAGAIN       | the server is loading its data, or is busy                                  |
 * | -ECONNRESET   | the connection broke, so the script may have been done or not               |
 * | -EPROTO       | the library does not know the server's reply; the text goes to `notice`     |
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
	/** Must be 0. */
	uint64_t flags;
	/** The path of a socket ("/run/redis/redis.sock"), or "HOST", "HOST:PORT", "[HOST]:PORT".
	 * Copied. TCP is not encrypted: if you do not trust the network, set `connect`.
	 * `notice` gets a warning once if the server is not on this machine. */
	const char *address;
	/** The user and the password. NULL: none. Copied. With `connect`, that function
	 * authenticates, and both must be NULL. */
	const char *user;
	const char *password;
	/** The first part of the names of all keys: 1 to 32 characters of a-z, 0-9 and '_'. Default
	 * "tickwheel". */
	const char *prefix;
	/** A name for this process, for people who inspect the server. Default "". */
	const char *name;
	/** If a process does not reach the server for this time, other processes take over its
	 * timers. In nanoseconds; 1 s to 1 hour, default 10 s. All processes should have the same
	 * value. */
	uint64_t session_ns;
	/** The time between two searches for due timers, in nanoseconds; 10 ms to 1 minute, default
	 * 1 s. If another process schedules a timer that is due before the next search, the timer
	 * may be late by this time. */
	uint64_t poll_ns;
	/** The number of the database, 0 to 15. */
	uint32_t database;
	/** The level that the server keeps, an enum tw_durable_level. The library uses it only if
	 * the server does not permit CONFIG GET. Default 0: unknown. */
	uint32_t level;
	/** Receives the message of the server or of the connection when something fails, for a log.
	 * Called on the set's thread, and in tw_durable_open. NULL: messages are ignored. */
	void (*notice)(void *context, const char *text);
	void *context;
	/**
	 * Makes a connection that is authenticated and has selected its database. Use it for TLS,
	 * for example, or to find the present master of several servers. The store calls it for two
	 * connections, and again whenever one broke, on the same threads as `notice`. The function
	 * should give up after some seconds. The library frees the connection with redisFree. If
	 * `connect` is set, `address` is not used. NULL: the library connects to `address`.
	 */
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
 * Makes a store that keeps durable timers in Redis. tw_durable_open connects to the server, and
 * makes the keys that are missing.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free, except that it allocates memory.
 * Lifetime: `options` during the call. tw_durable_open takes the store over; the store's `close`
 *   frees it.
 * Returns: 0 and `*ret_store`; -EINVAL (NULL, neither an address nor `connect`, a password with
 *   `connect`, a user without a password, a prefix, a number or a time out of its range); -E2BIG;
 *   -ENOMEM.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_store_redis(const struct tw_durable_redis_options *options,
					 struct tw_durable_store *ret_store);

TW_END_DECLS

#endif
