/* SPDX-License-Identifier: MIT */
#include "durable/redis/connect.h"

#include "durable/redis/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_store.h>

enum {
	PORT = 6379,
	PORT_MAX = 65535,
	HOST_MAX = 255,
	WAIT_S = 2, /* seconds to wait for a new connection, and for each reply until it is ready */
	VERSION_LEAST = 602,
};

#define WAIT_NS (WAIT_S * INT64_C(1000000000))

void twi_redis_door_free(struct twi_redis_door *door)
{
	free(door->address);
	free(door->user);
	free(door->password);
}

/*
 * Splits HOST, HOST:PORT, [HOST]:PORT or [HOST]. Returns false if the host is empty or too long, or
 * the port is not valid.
 */
static bool host_split(const char *address, char *ret_host, int *ret_port)
{
	const char *end = address[0] == '[' ? strchr(address, ']') : strrchr(address, ':');
	const char *begin = address[0] == '[' ? address + 1 : address;
	const char *port = end == NULL ? NULL : address[0] == '[' ? end + 1 : end;
	size_t length = end == NULL ? strlen(begin) : (size_t)(end - begin);

	if (length == 0 || length > HOST_MAX)
		return false;
	memcpy(ret_host, begin, length);
	ret_host[length] = '\0';
	*ret_port = port == NULL || *port == '\0' ? PORT : (int)strtol(port + 1, NULL, 10);
	return *ret_port > 0 && *ret_port <= PORT_MAX;
}

static redisContext *dial(const struct twi_redis_door *door)
{
	const struct timeval wait = {.tv_sec = WAIT_S};
	char host[HOST_MAX + 1];
	int port;

	if (door->connect != NULL)
		return door->connect(door->connect_context);
	if (door->address[0] == '/')
		return redisConnectUnixWithTimeout(door->address, wait);
	return host_split(door->address, host, &port) ? redisConnectWithTimeout(host, port, wait)
						      : NULL;
}

redisReply *twi_redis_ask(redisContext *connection, int count, const char **texts)
{
	void *reply = NULL;

	if (redisAppendCommandArgv(connection, count, texts, NULL) != REDIS_OK)
		return NULL;
	while (reply == NULL) {
		if (redisGetReplyFromReader(connection, &reply) != REDIS_OK)
			return NULL;
		if (reply == NULL && !twi_redis_wire(connection, WAIT_NS))
			return NULL;
	}
	return reply;
}

/* Runs one command. Ignores its reply, unless that is an error. */
static int order(redisContext *connection, const struct twi_redis_notice *notice, int count,
		 const char **texts)
{
	redisReply *reply = twi_redis_ask(connection, count, texts);
	int error = 0;

	if (reply == NULL)
		return -ECONNREFUSED;
	if (reply->type == REDIS_REPLY_ERROR) {
		twi_redis_notify(notice, reply->str);
		error = twi_redis_error(reply->str);
	}
	freeReplyObject(reply);
	return error;
}

static int introduce(const struct twi_redis_door *door, const struct twi_redis_notice *notice,
		     redisContext *connection)
{
	const char *texts[3] = {"AUTH", door->user, door->password};
	char number[16];
	int error = 0;

	if (door->password != NULL && door->user != NULL)
		error = order(connection, notice, 3, texts);
	texts[1] = door->password;
	if (door->password != NULL && door->user == NULL)
		error = order(connection, notice, 2, texts);
	snprintf(number, sizeof number, "%d", door->database);
	texts[0] = "SELECT";
	texts[1] = number;
	if (error == 0 && door->database != 0)
		error = order(connection, notice, 2, texts);
	return error;
}

static bool unblock(redisContext *connection)
{
	int flags = fcntl(connection->fd, F_GETFL);

	connection->flags &= ~REDIS_BLOCK;
	return flags >= 0 && fcntl(connection->fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

int twi_redis_connect(const struct twi_redis_door *door, const struct twi_redis_notice *notice,
		      redisContext **ret)
{
	redisContext *connection = dial(door);
	int error = -ECONNREFUSED;

	if (connection == NULL)
		return error;
	if (connection->err == 0 && unblock(connection))
		error = introduce(door, notice, connection);
	else
		twi_redis_notify(notice, connection->errstr);
	if (error == 0)
		*ret = connection;
	else
		redisFree(connection);
	return error;
}

/* Finds the value of the line "name:value", or "". */
static void info_get(const char *info, const char *name, char (*ret)[32])
{
	const char *at = info;
	size_t length = strlen(name);

	(*ret)[0] = '\0';
	while (at != NULL && (strncmp(at, name, length) != 0 || at[length] != ':')) {
		at = strchr(at, '\n');
		at = at == NULL ? NULL : at + 1;
	}
	if (at == NULL)
		return;
	snprintf(*ret, sizeof *ret, "%.*s", (int)strcspn(at + length + 1, "\r\n"), at + length + 1);
}

static int version_of(const char *info)
{
	char value[32], *rest = NULL;
	long major;

	info_get(info, "redis_version", &value);
	major = strtol(value, &rest, 10);
	return (int)(major * 100 + (*rest == '.' ? strtol(rest + 1, NULL, 10) : 0));
}

static bool info_is(const char *info, const char *name, const char *value)
{
	char found[32];

	info_get(info, name, &found);
	return strcmp(found, value) == 0;
}

static int refused(const struct twi_redis_notice *notice, const char *why, int error)
{
	twi_redis_notify(notice, why);
	return error;
}

static int info_judge(const char *info, uint32_t stated, const struct twi_redis_notice *notice)
{
	if (version_of(info) < VERSION_LEAST)
		return refused(notice, "the server is older than Redis 6.2", -ENOTSUP);
	if (info_is(info, "cluster_enabled", "1"))
		return refused(notice, "the server is part of a cluster", -ENOTSUP);
	if (!info_is(info, "maxmemory_policy", "noeviction") &&
	    !(stated != 0 && info_is(info, "maxmemory_policy", "")))
		return refused(notice, "maxmemory-policy is not noeviction: timers may vanish",
			       -ENOTSUP);
	if (info_is(info, "loading", "1"))
		return refused(notice, "the server loads its data", -EAGAIN);
	if (!info_is(info, "role", "master"))
		return refused(notice, "the server is a replica", -EROFS);
	return 0;
}

/* Returns a setting in the reply to CONFIG GET, or "". */
static const char *setting(const redisReply *reply, const char *name)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (strcmp(reply->element[i]->str, name) == 0)
			return reply->element[i + 1]->str;
	return "";
}

static uint32_t level_of(const redisReply *settings)
{
	const char *sync = setting(settings, "appendfsync");

	if (strcmp(setting(settings, "appendonly"), "yes") != 0 ||
	    strcmp(setting(settings, "no-appendfsync-on-rewrite"), "yes") == 0)
		return TW_DURABLE_LEVEL_PROCESS;
	if (strcmp(sync, "always") == 0)
		return TW_DURABLE_LEVEL_DISK;
	return strcmp(sync, "everysec") == 0 ? TW_DURABLE_LEVEL_SECOND : TW_DURABLE_LEVEL_PROCESS;
}

static int level_ask(redisContext *connection, uint32_t stated,
		     const struct twi_redis_notice *notice, uint32_t *ret_level)
{
	const char *texts[] = {"CONFIG", "GET", "*append*"};
	redisReply *reply = twi_redis_ask(connection, 3, texts);
	bool said = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements != 0;

	if (reply == NULL)
		return -ECONNREFUSED;
	*ret_level = said ? level_of(reply) : stated;
	freeReplyObject(reply);
	if (*ret_level == 0)
		return refused(notice, "CONFIG GET is not permitted: state the level of the server",
			       -EACCES);
	return 0;
}

int twi_redis_server_ask(redisContext *connection, uint32_t stated,
			 const struct twi_redis_notice *notice, uint32_t *ret_level)
{
	const char *texts[] = {"INFO"};
	redisReply *reply = twi_redis_ask(connection, 1, texts);
	int error;

	if (reply == NULL)
		return -ECONNREFUSED;
	if (reply->type == REDIS_REPLY_ERROR)
		error = refused(notice, reply->str, twi_redis_error(reply->str));
	else
		error = info_judge(reply->str, stated, notice);
	freeReplyObject(reply);
	return error != 0 ? error : level_ask(connection, stated, notice, ret_level);
}
