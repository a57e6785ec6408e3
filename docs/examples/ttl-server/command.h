/* SPDX-License-Identifier: MIT */
/* A command that is being served, and the functions that serve commands. Each function replies
 * exactly once. */
#ifndef TTL_SERVER_COMMAND_H
#define TTL_SERVER_COMMAND_H

#include "reply.h"
#include "server.h"

#include <tickwheel.h>

#define NS_PER_MS TW_MS(1)
#define NS_PER_S TW_S(1)
#define NOT_AN_INTEGER "ERR value is not an integer or out of range"

struct call {
	struct server *server;
	struct evbuffer *out;
	const struct command *command;
	const struct span *args;
	size_t arg_count;
	/* The time, which is read once for each command. */
	int64_t now_ns;
};

struct command {
	/* The name in lower case, as errors show it. */
	const char *name;
	void (*serve)(const struct call *call);
	/* The number of arguments, including the name. */
	size_t args_min;
	size_t args_max;
	/* The unit of the times in the arguments and in the reply. */
	int64_t unit_ns;
};

/* commands.c: returns the entry of the key in this argument, or NULL. */
struct entry *call_find(const struct call *call, size_t arg);
/* times.c: computes `amount` units after `from_ns`. Returns false if that is out of range. */
bool deadline_after(int64_t from_ns, int64_t amount, int64_t unit_ns, int64_t *ret_ns);
void reply_invalid_expire(const struct call *call);

/* values.c */
void serve_get(const struct call *call);
void serve_set(const struct call *call);
void serve_setex(const struct call *call);
void serve_del(const struct call *call);
void serve_exists(const struct call *call);
void serve_incr(const struct call *call);

/* times.c */
void serve_expire(const struct call *call);
void serve_expireat(const struct call *call);
void serve_ttl(const struct call *call);
void serve_persist(const struct call *call);

/* scan.c */
void serve_scan(const struct call *call);

#endif
