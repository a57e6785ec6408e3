/* SPDX-License-Identifier: MIT */
/**
 * @file durable_postgres.h
 * A store of durable timers in PostgreSQL, which any number of processes can share. It is in the
 * library tickwheel-postgres (pkg-config tickwheel-postgres), which exists if tickwheel was built
 * with the feature `postgres`. docs/machines.md says when one machine is enough, and what the store
 * promises.
 *
 * Codes of tw_durable_open with this store, and the `error` with which its set fails:
 *
 * | code          | meaning                                                                     |
 * |---------------|-----------------------------------------------------------------------------|
 * | -ECONNREFUSED | no server answers at this address                                           |
 * | -EACCES       | the server rejects the user, the password or the database, permits too little, or has no connection left |
 * | -ENOENT       | the schema does not exist; tw_durable_postgres_migrate makes it             |
 * | -ENOTSUP      | the schema has a version that does not serve this library, the server is older than 13, or the server keeps a lower level |
 * | -EUCLEAN      | the tables are not as the library made them                                 |
 * | -EROFS        | the server is a replica, or permits only reads                              |
 * | -EAGAIN       | the server is starting up or shutting down                                  |
 * | -ENOSPC       | the server's disk is full                                                   |
 * | -ECONNRESET   | the connection broke, so the statement may have been done or not            |
 * | -ESTALE       | another process has the timer by now                                        |
 */
#ifndef TICKWHEEL_DURABLE_POSTGRES_H
#define TICKWHEEL_DURABLE_POSTGRES_H

#include <tickwheel/durable.h>

TW_BEGIN_DECLS

/** PGconn of libpq-fe.h. */
struct pg_conn;

/** The options of a store; tw_durable_postgres_options_init fills in the defaults. */
struct tw_durable_postgres_options {
	/** sizeof(struct tw_durable_postgres_options). */
	size_t size;
	/** Must be 0. */
	uint64_t flags;
	/** The address for PQconnectdb: "host=/run/postgresql dbname=shop", or a URI. Copied. libpq
	 * does authentication and TLS. Without `sslmode=verify-full` an attacker between the
	 * process and the server can pose as the server. If the server is not on this machine,
	 * `notice` then gets a warning once. */
	const char *address;
	/** The schema with the tables: 1 to 32 characters of a-z, 0-9 and '_'. Default
	 * "tickwheel". */
	const char *schema;
	/** A name for this process, which people can read in the table `session`. Default "". */
	const char *name;
	/** If a process does not reach the server for this time, other processes take over its
	 * timers. In nanoseconds; 1 s to 1 hour, default 10 s. All processes should have the same
	 * value. */
	uint64_t session_ns;
	/** The time between two searches for due timers, in nanoseconds; 10 ms to 1 minute, default
	 * 1 s. If another process schedules a timer that is due before the next search, the timer
	 * may be late by this time. While old snapshots keep many dead rows, timers that a
	 * transaction commits long after their deadlines may be late by 2 minutes. */
	uint64_t poll_ns;
	/** Receives the message of the server or of the connection when something fails, for a log.
	 * Called on the set's thread, and in tw_durable_open. NULL: messages are ignored. */
	void (*notice)(void *context, const char *text);
	void *context;
};

/** A timer that the program schedules inside a transaction of its own. */
struct tw_durable_postgres_spec {
	/** sizeof(struct tw_durable_postgres_spec). */
	uint32_t size;
	/** Any number; the callback receives it. */
	uint32_t version;
	/** The name of its kind. */
	const char *kind;
	/** Nanoseconds since 1970, by the server's clock; the server keeps whole microseconds. Not
	 * TW_NEVER. */
	int64_t due_ns;
	const void *payload;
	/** 1 to 255 bytes, or NULL. */
	const void *key;
	uint32_t payload_bytes;
	uint32_t key_bytes;
};

/**
 * Fills options with the defaults.
 *
 * Units: `size`, sizeof(struct tw_durable_postgres_options).
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 and `*ret_options`; -EINVAL (NULL, a size that is too small); -E2BIG.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_postgres_options_init(struct tw_durable_postgres_options *ret_options,
						   size_t size);

/**
 * Makes a store that keeps durable timers in PostgreSQL. tw_durable_open connects to the server.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free, except that it allocates memory.
 * Lifetime: `options` during the call. tw_durable_open takes the store over; the store's `close`
 *   frees it.
 * Returns: 0 and `*ret_store`; -EINVAL (NULL, no address, a name or a time out of its range);
 *   -E2BIG; -ENOMEM.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_store_postgres(const struct tw_durable_postgres_options *options,
					    struct tw_durable_store *ret_store);

/**
 * Makes the schema with its tables and functions, or upgrades a schema of an earlier version. Does
 * nothing if the schema has this version, or a later one that serves this library.
 *
 * Processes of the earlier version may run meanwhile, hold timers, and go on afterwards. They wait
 * for the upgrade for about a second at most. If one of them ends, it must start again with this
 * version. An upgrade needs the role that owns the schema, and a connection that is direct or
 * through a pooler in session mode. The upgrade waits until all transactions of the database that
 * began before it have ended. If it fails, all processes go on as before. An index `timer_next` may
 * remain, which the next try removes.
 *
 * Units: none.
 * Threads: any, but only one at a time for each connection.
 * In callback: yes, with a connection of the callback's own; the call blocks.
 * Progress: blocks for the server. An upgrade also waits while another process upgrades.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, a wrong name, a connection that is in a transaction); -EACCES (CREATE
 *   on the database is not permitted, or the role does not own the schema); -ENOTSUP (the schema
 *   has a later version, which does not serve this library); -EUCLEAN (there is a schema of this
 *   name, which the library has not made); -EAGAIN (transactions have held the tables for a
 *   minute, or the server ended a statement; call again); -ENOMEM, -ECONNRESET, -EROFS, -ENOSPC,
 *   -EIO.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_postgres_migrate(struct pg_conn *connection, const char *schema);

/** Receives a part of a text, which is valid during the call. */
typedef void tw_durable_postgres_write(void *context, const char *text, size_t bytes);

/**
 * Writes the SQL text that makes the schema, for programs that run migrations by other means. The
 * text must run in one transaction.
 *
 * Units: `bytes`, of a part of the text.
 * Threads: any.
 * In callback: yes.
 * Progress: that of `write`.
 * Lifetime: the text is valid during the call of `write`.
 * Returns: 0; -EINVAL (NULL, a wrong name).
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_postgres_sql(const char *schema, tw_durable_postgres_write *write,
					  void *context);

/**
 * Writes the SQL text that upgrades a schema from an earlier version. It does the same as
 * tw_durable_postgres_migrate. The text must not run in a transaction: it has its own. Run it with
 * `psql -v ON_ERROR_STOP=1`. It needs the role and the connection that an upgrade by
 * tw_durable_postgres_migrate needs. It fails at once if the schema has another version (TW002), or
 * if another upgrade is under way (55P03). If it fails, end the connection, which may have the lock
 * of the upgrade. The text can be run again.
 *
 * Units: `version`, the number in the column `version` of the table `meta`; `bytes`, of a part of
 *   the text.
 * Threads: any.
 * In callback: yes.
 * Progress: that of `write`.
 * Lifetime: the text is valid during the call of `write`.
 * Returns: 0; -EINVAL (NULL, a wrong name); -ENOTSUP (there is no upgrade from this version).
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_postgres_upgrade_sql(const char *schema, int version,
						  tw_durable_postgres_write *write, void *context);

/**
 * Schedules a timer inside the transaction that the connection is in. If the transaction commits,
 * the timer exists; otherwise it never existed. Outside of a transaction, the call is a transaction
 * of its own. A process whose set has the kind claims the timer within `poll_ns`, or later if old
 * snapshots keep many dead rows and the transaction ends long after the deadline.
 *
 * Units: those of struct tw_durable_postgres_spec.
 * Threads: one for a connection.
 * In callback: yes, with a connection of the callback's own; the call blocks.
 * Progress: blocks for the server.
 * Lifetime: none.
 * Returns: 0 and `*ret_id` (may be NULL); if another timer already has the key, 0 and the id of
 *   that timer, which stays as it is; -EINVAL (NULL, a wrong name, a key or payload of NULL with
 *   bytes, TW_NEVER); -EMSGSIZE (a key above 255 bytes, a payload above 1 MiB); -ENOMEM; -ENOENT
 *   (no such schema); -EACCES, -EROFS, -ENOSPC, -EAGAIN, -ECONNRESET, -EIO: the transaction has
 *   failed.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_postgres_schedule_in(struct pg_conn *connection, const char *schema,
						  const struct tw_durable_postgres_spec *spec,
						  struct tw_durable_id *ret_id);

/**
 * Cancels a timer inside a transaction of the program's own. The outcome takes effect if the
 * transaction commits.
 *
 * Units: none.
 * Threads: one for a connection.
 * In callback: yes, with a connection of the callback's own; the call blocks.
 * Progress: blocks for the server.
 * Lifetime: none.
 * Returns: an enum tw_durable_outcome: DONE, ATTEMPTED, RUNNING (it stays), ABSENT; or a code as
 *   tw_durable_postgres_schedule_in.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_postgres_cancel_in(struct pg_conn *connection, const char *schema,
						struct tw_durable_id id);

/**
 * Cancels the timer that has a key. Otherwise the same as tw_durable_postgres_cancel_in.
 *
 * Units: `bytes`, 1 to 255.
 * Threads: one for a connection.
 * In callback: yes, with a connection of the callback's own; the call blocks.
 * Progress: blocks for the server.
 * Lifetime: none.
 * Returns: as tw_durable_postgres_cancel_in.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_postgres_cancel_key_in(struct pg_conn *connection, const char *schema,
						    const void *key, size_t bytes);

/**
 * Ends the timer of a run inside the transaction that has the run's effect. Both the end and the
 * effect are committed, or neither is, so the effect happens exactly once. Call it in the run,
 * commit, and return TW_RETRY_DONE. If the commit fails, or its reply is lost, return
 * TW_RETRY_AGAIN.
 *
 * Units: none.
 * Threads: one for a connection.
 * In callback: yes, with a connection of the callback's own; the call blocks.
 * Progress: blocks for the server.
 * Lifetime: `self` during the run.
 * Returns: 0; -ESTALE: another process has the timer by now, or the store does not know it yet
 *   (roll the transaction back and return TW_RETRY_AGAIN); -EINVAL; or a code as
 *   tw_durable_postgres_schedule_in.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_postgres_finish_in(struct pg_conn *connection, const char *schema,
						const struct tw_durable_self *self);

TW_END_DECLS

#endif
