/* SPDX-License-Identifier: MIT */
/*
 * The two connections of a store: one for statements, one for heartbeats.
 *
 * The store waits for the reply to a statement for a quarter of a session at most, and sends
 * heartbeats meanwhile. After that time, and after a loss of the connection, it closes the
 * connection, because it is unknown whether the statement was done.
 */
#ifndef TWI_DURABLE_REDIS_LINK_H
#define TWI_DURABLE_REDIS_LINK_H

#include "durable/redis/arguments.h"
#include "durable/redis/connect.h"
#include "durable/redis/script.h"

struct twi_redis_link {
	struct twi_redis_door door;
	struct twi_redis_notice notice;
	bool warned; /* the user was warned that the connection is not encrypted */
	int64_t session_ns;
	redisContext *statements, *beats; /* the two connections; NULL while closed */
	/* The scripts: their texts, and their hashes. */
	const char *clock; /* the Lua text that reads the clock, or NULL for that of clock.lua */
	char *texts[TWI_REDIS_SCRIPT_COUNT];
	char hashes[TWI_REDIS_SCRIPT_COUNT][48];
	char keys[TWI_REDIS_KEYS][TWI_REDIS_KEY_MAX];
	char id[48];                    /* names the server's data; "" if it is not known yet */
	struct twi_arguments arguments; /* arguments of the next statement */
	/* The level of the server: as the user has stated it, and as it is. */
	uint32_t stated, level; /* 0 while unknown */
	bool evicts;
	/* The heartbeat. All times are of CLOCK_BOOTTIME. */
	struct twi_arguments beat_arguments;
	uint64_t session; /* number of the session, or 0 */
	bool over;        /* the server has refused the session */
	bool gone;        /* the data that this process has opened is gone */
	bool beat_waits;  /* a heartbeat waits for its reply */
	int64_t beat_sent_ns, beat_at_ns;
	int64_t until_ns; /* CLOCK_BOOTTIME after which no run may begin */
	int64_t wall_ns;  /* the server's clock minus CLOCK_BOOTTIME */
	bool wall_known;
	int64_t connect_at_ns, pause_ns; /* the next try to connect, and the pause before it */
};

/*
 * Makes the missing connections. Checks the server of a new connection for statements. Returns 0,
 * -EAGAIN if the next try is not due yet, or another code.
 */
int twi_redis_link_open(struct twi_redis_link *link);
/*
 * Makes only the connection for statements, and does not check the server. For programs that have
 * no session.
 */
int twi_redis_link_attach(struct twi_redis_link *link);
/* Postpones the next try to connect. */
void twi_redis_link_pause(struct twi_redis_link *link);
void twi_redis_link_close(struct twi_redis_link *link);
void twi_redis_link_free(struct twi_redis_link *link);

/* Begins the arguments of a statement. The first one names the server's data. */
struct twi_arguments *twi_redis_link_begin(struct twi_redis_link *link);

/*
 * Runs one script with the arguments of twi_redis_link_begin(). Returns 0 and *ret (`ret` may be
 * NULL), which the caller frees; a code of errors.h; -ECONNRESET if it is unknown whether the
 * script was done; or -ENOMEM.
 */
int twi_redis_link_run(struct twi_redis_link *link, enum twi_redis_script script, redisReply **ret);

/* Runs a script that is not among those of the link, as twi_redis_link_run does. */
int twi_redis_link_run_text(struct twi_redis_link *link, const char *text, redisReply **ret);

/*
 * Send a script, and read a reply. A caller may send several scripts before it reads the first
 * reply. `by_text`: sends the whole text, because the server does not know the script.
 */
int twi_redis_link_send(struct twi_redis_link *link, enum twi_redis_script script, bool by_text);
int twi_redis_link_read(struct twi_redis_link *link, int64_t until_ns, redisReply **ret);
int64_t twi_redis_link_until_ns(const struct twi_redis_link *link);

/* Records a new session, the server's time in the reply, and when the request was sent. */
void twi_redis_link_session(struct twi_redis_link *link, uint64_t session, int64_t server_us,
			    int64_t sent_ns);
/* Records the server's time of a reply. */
void twi_redis_link_time(struct twi_redis_link *link, int64_t server_us, int64_t sent_ns);

/* Sends a heartbeat if it is due, and reads a reply that is there. */
void twi_redis_link_beat(struct twi_redis_link *link);
/*
 * Waits a moment for the reply to a heartbeat. If the reply were read late, the server's time would
 * be less exact.
 */
void twi_redis_link_beat_wait(struct twi_redis_link *link);

#endif
