/* SPDX-License-Identifier: MIT */
#include "durable/redis/link.h"

#include "durable/redis/wire.h"
#include "durable/shared/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
/* The first and the longest pause between tries to connect. Each is twice the one before. */
#define PAUSE_FIRST_NS (50 * MILLISECOND)
#define PAUSE_MOST_NS (2 * SECOND)

static void finish(redisContext **connection)
{
	if (*connection != NULL)
		redisFree(*connection);
	*connection = NULL;
}

/* Closes a connection that has failed. */
static void broke(struct twi_redis_link *link, redisContext **connection)
{
	if ((*connection)->err != 0)
		twi_redis_notify(&link->notice, (*connection)->errstr);
	finish(connection);
}

void twi_redis_link_close(struct twi_redis_link *link)
{
	finish(&link->statements);
	finish(&link->beats);
	link->beat_waits = false;
}

void twi_redis_link_free(struct twi_redis_link *link)
{
	twi_redis_link_close(link);
	for (int i = 0; i < TWI_REDIS_SCRIPT_COUNT; i++)
		free(link->texts[i]);
	twi_arguments_free(&link->arguments);
	twi_arguments_free(&link->beat_arguments);
	twi_redis_door_free(&link->door);
}

static int texts_make(struct twi_redis_link *link)
{
	for (int i = 0; i < TWI_REDIS_SCRIPT_COUNT; i++) {
		if (link->texts[i] == NULL)
			link->texts[i] =
				twi_redis_script_text((enum twi_redis_script)i, link->clock);
		if (link->texts[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Loads all scripts into the server, and keeps their hashes. It is enough to get the hashes once,
 * because a hash depends only on the text.
 */
static int scripts_load(struct twi_redis_link *link)
{
	if (texts_make(link) != 0)
		return -ENOMEM;
	for (int i = 0; i < TWI_REDIS_SCRIPT_COUNT; i++) {
		const char *texts[] = {"SCRIPT", "LOAD", NULL};
		redisReply *reply;
		int error = 0;

		texts[2] = link->texts[i];
		reply = twi_redis_ask(link->statements, 3, texts);
		if (reply == NULL)
			return -ECONNREFUSED;
		if (reply->type == REDIS_REPLY_ERROR) {
			twi_redis_notify(&link->notice, reply->str);
			error = twi_redis_error(reply->str);
		}
		snprintf(link->hashes[i], sizeof link->hashes[i], "%s", reply->str);
		freeReplyObject(reply);
		if (error != 0)
			return error;
	}
	return 0;
}

/*
 * Makes the connection for statements. Checks the server each time, because after a failover it may
 * be a different one.
 */
static int statements_make(struct twi_redis_link *link)
{
	uint32_t level = 0;
	int error = twi_redis_connect(&link->door, &link->notice, &link->statements);

	if (error == 0)
		error = twi_redis_server_ask(link->statements, link->stated, &link->notice, &level);
	if (error == 0 && level < link->level) {
		twi_redis_notify(&link->notice, "the server keeps a lower level than before");
		error = -ENOTSUP;
	}
	if (error == 0 && link->hashes[0][0] == '\0')
		error = scripts_load(link);
	if (error == 0 && link->id[0] != '\0') {
		(void)twi_redis_link_begin(link);
		error = twi_redis_link_run(link, TWI_REDIS_CHECK, NULL);
	}
	if (error == 0 && link->level == 0)
		link->level = level;
	if (error != 0)
		finish(&link->statements);
	return error;
}

int twi_redis_link_attach(struct twi_redis_link *link)
{
	int error = texts_make(link);

	return error != 0 ? error
			  : twi_redis_connect(&link->door, &link->notice, &link->statements);
}

/*
 * Warns once that the connection is not encrypted. Does not warn if the user's own function makes
 * the connection, because it may use TLS.
 */
static void warn_plain(struct twi_redis_link *link)
{
	if (link->warned || link->door.connect != NULL || !twi_peer_is_remote(link->statements->fd))
		return;
	link->warned = true;
	twi_redis_notify(&link->notice, "warning: the connection is not encrypted, and the server "
					"not verified: set `connect` to a function that uses TLS");
}

void twi_redis_link_pause(struct twi_redis_link *link)
{
	link->pause_ns = link->pause_ns == 0 ? PAUSE_FIRST_NS : 2 * link->pause_ns;
	if (link->pause_ns > PAUSE_MOST_NS)
		link->pause_ns = PAUSE_MOST_NS;
	link->connect_at_ns = twi_redis_now_ns() + link->pause_ns;
}

int twi_redis_link_open(struct twi_redis_link *link)
{
	int error = 0;

	if (link->statements != NULL && link->beats != NULL)
		return 0;
	if (twi_redis_now_ns() < link->connect_at_ns)
		return -EAGAIN;
	if (link->statements == NULL)
		error = statements_make(link);
	if (error == 0 && link->beats == NULL)
		error = twi_redis_connect(&link->door, &link->notice, &link->beats);
	if (error == 0) {
		warn_plain(link);
		link->pause_ns = 0;
		link->beat_at_ns = twi_redis_now_ns();
		return 0;
	}
	twi_redis_link_pause(link);
	return error;
}

/*
 * Records how far the server's clock is ahead of CLOCK_BOOTTIME. The server read its clock between
 * the request and the reply, so there is a least and a greatest possible distance. This function
 * records the least one, so that no timer is early. It replaces the recorded distance only if a
 * reply contradicts it. So slow replies do not change it.
 */
static void clock_note(struct twi_redis_link *link, int64_t server_us, int64_t sent_ns)
{
	int64_t server_ns = server_us * 1000;
	int64_t least_ns = server_ns - twi_redis_now_ns(), most_ns = server_ns - sent_ns;

	if (!link->wall_known || link->wall_ns < least_ns || link->wall_ns > most_ns)
		link->wall_ns = least_ns;
	link->wall_known = true;
}

void twi_redis_link_time(struct twi_redis_link *link, int64_t server_us, int64_t sent_ns)
{
	clock_note(link, server_us, sent_ns);
}

static void lives(struct twi_redis_link *link, int64_t sent_ns)
{
	link->until_ns = sent_ns + link->session_ns / 10 * 8;
	link->beat_at_ns = sent_ns + link->session_ns / 4;
}

void twi_redis_link_session(struct twi_redis_link *link, uint64_t session, int64_t server_us,
			    int64_t sent_ns)
{
	link->session = session;
	link->over = false;
	clock_note(link, server_us, sent_ns);
	lives(link, sent_ns);
}

enum { FIXED = 3 + TWI_REDIS_KEYS };

/* The name by which a script is sent: its hash or its whole text. */
struct name {
	const char *command, *script;
};

static struct name name_of(const struct twi_redis_link *link, enum twi_redis_script script,
			   bool by_text)
{
	return by_text ? (struct name){"EVAL", link->texts[script]}
		       : (struct name){"EVALSHA", link->hashes[script]};
}

/* Adds a script with its arguments to the output. */
static int append(struct twi_redis_link *link, redisContext *connection, struct name name,
		  const struct twi_arguments *arguments)
{
	size_t count = FIXED + arguments->count;
	const char **texts = malloc(count * sizeof *texts);
	size_t *bytes = malloc(count * sizeof *bytes);
	int error = texts == NULL || bytes == NULL || arguments->failed ? -ENOMEM : 0;

	if (error == 0) {
		texts[0] = name.command;
		texts[1] = name.script;
		texts[2] = "14";
		for (int i = 0; i < TWI_REDIS_KEYS; i++)
			texts[3 + i] = link->keys[i];
		for (int i = 0; i < FIXED; i++)
			bytes[i] = strlen(texts[i]);
		for (size_t i = 0; i < arguments->count; i++)
			texts[FIXED + i] = twi_arguments_get(arguments, i, &bytes[FIXED + i]);
		if (redisAppendCommandArgv(connection, (int)count, texts, bytes) != REDIS_OK)
			error = -ENOMEM;
	}
	free(texts);
	free(bytes);
	return error;
}

struct twi_arguments *twi_redis_link_begin(struct twi_redis_link *link)
{
	twi_arguments_begin(&link->arguments);
	twi_arguments_text(&link->arguments, link->id);
	return &link->arguments;
}

static void beat_send(struct twi_redis_link *link, bool by_text)
{
	struct twi_arguments *arguments = &link->beat_arguments;
	bool left;

	twi_arguments_begin(arguments);
	twi_arguments_text(arguments, link->id);
	twi_arguments_8(arguments, link->session);
	twi_arguments_number(arguments, link->session_ns / 1000);
	link->beat_sent_ns = twi_redis_now_ns();
	link->beat_waits = true;
	if (append(link, link->beats, name_of(link, TWI_REDIS_BEAT, by_text), arguments) != 0 ||
	    !twi_redis_wire_try(link->beats, &left)) {
		broke(link, &link->beats);
		link->beat_waits = false;
	}
}

/* Checks that the server still does not evict keys when its memory is full. */
static void policy_note(struct twi_redis_link *link, const redisReply *policy)
{
	if (policy->len == 0 || strcmp(policy->str, "noeviction") == 0)
		return;
	twi_redis_notify(&link->notice, "maxmemory-policy was changed: timers may vanish");
	link->evicts = true;
}

static bool beat_refused(struct twi_redis_link *link, const redisReply *reply)
{
	int error = twi_redis_error(reply->str);

	if (error == TWI_REDIS_NO_SCRIPT) {
		beat_send(link, true);
		return true;
	}
	if (error != -ESTALE)
		twi_redis_notify(&link->notice, reply->str);
	link->over = link->over || error == -ESTALE;
	link->gone = link->gone || error == -ENOENT;
	if (error == -ESTALE || error == -ENOENT)
		return true;
	/*
	 * The next connection may reach another server. The pause keeps the process from connecting
	 * without end to a server that refuses each heartbeat.
	 */
	twi_redis_link_pause(link);
	return false;
}

/* Takes the reply to a heartbeat. Returns false if the connection must be closed. */
static bool beat_take(struct twi_redis_link *link, const redisReply *reply)
{
	link->beat_waits = false;
	if (reply->type == REDIS_REPLY_ERROR)
		return beat_refused(link, reply);
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
		return false;
	policy_note(link, reply->element[1]);
	clock_note(link, strtoll(reply->element[0]->str, NULL, 10), link->beat_sent_ns);
	lives(link, link->beat_sent_ns);
	return true;
}

static void beat_read(struct twi_redis_link *link)
{
	void *reply = NULL;
	bool left, good = twi_redis_wire_try(link->beats, &left);

	good = good && redisGetReplyFromReader(link->beats, &reply) == REDIS_OK;
	if (good && reply != NULL)
		good = beat_take(link, reply);
	if (reply != NULL)
		freeReplyObject(reply);
	if (link->beats == NULL ||
	    (good &&
	     (!link->beat_waits || twi_redis_now_ns() - link->beat_sent_ns < link->session_ns / 4)))
		return;
	broke(link, &link->beats);
	link->beat_waits = false;
}

void twi_redis_link_beat(struct twi_redis_link *link)
{
	if (link->beats == NULL || link->session == 0 || link->over)
		return;
	if (link->beat_waits)
		beat_read(link);
	if (link->beats != NULL && !link->beat_waits && !link->over &&
	    twi_redis_now_ns() >= link->beat_at_ns)
		beat_send(link, false);
}

void twi_redis_link_beat_wait(struct twi_redis_link *link)
{
	enum { BEAT_WAIT_MS = 10 };
	struct pollfd file = {.events = POLLIN};

	if (link->beats == NULL || !link->beat_waits)
		return;
	file.fd = link->beats->fd;
	(void)poll(&file, 1, BEAT_WAIT_MS);
	twi_redis_link_beat(link);
}

/*
 * Waits once, until there is something to read, or a write is possible (if `writes`), or the next
 * heartbeat is due. Returns false if the time is over.
 */
static bool wait_once(struct twi_redis_link *link, bool writes, int64_t until_ns)
{
	/*
	 * Watches the connection for heartbeats only while a heartbeat is under way. If the server
	 * had closed it meanwhile, each poll() would return at once.
	 */
	bool reads = link->beats != NULL && link->beat_waits;
	struct pollfd files[2] = {
		{.fd = link->statements->fd, .events = (short)(writes ? POLLIN | POLLOUT : POLLIN)},
		{.fd = reads ? link->beats->fd : -1, .events = POLLIN},
	};
	int64_t now_ns = twi_redis_now_ns(), wait_ns = until_ns - now_ns;

	if (wait_ns <= 0)
		return false;
	if (link->beats != NULL && !link->beat_waits && link->session != 0 && !link->over &&
	    link->beat_at_ns - now_ns < wait_ns)
		wait_ns = link->beat_at_ns > now_ns ? link->beat_at_ns - now_ns : 0;
	(void)poll(files, 2, (int)(wait_ns / MILLISECOND) + 1);
	twi_redis_link_beat(link);
	return true;
}

int64_t twi_redis_link_until_ns(const struct twi_redis_link *link)
{
	return twi_redis_now_ns() + link->session_ns / 4;
}

static int send(struct twi_redis_link *link, struct name name)
{
	int error = link->statements == NULL ? -EAGAIN : 0;

	if (error == 0)
		error = append(link, link->statements, name, &link->arguments);
	/*
	 * Closes the connection: the scripts that are in the output already must not be sent
	 * without the rest.
	 */
	if (error == -ENOMEM)
		finish(&link->statements);
	return error;
}

int twi_redis_link_send(struct twi_redis_link *link, enum twi_redis_script script, bool by_text)
{
	return send(link, name_of(link, script, by_text));
}

int twi_redis_link_read(struct twi_redis_link *link, int64_t until_ns, redisReply **ret)
{
	void *reply = NULL;
	bool left = true, good = true;

	while (good && reply == NULL) {
		good = redisGetReplyFromReader(link->statements, &reply) == REDIS_OK;
		if (!good || reply != NULL)
			break;
		good = twi_redis_wire_try(link->statements, &left);
		if (!good)
			break;
		good = redisGetReplyFromReader(link->statements, &reply) == REDIS_OK;
		if (good && reply == NULL)
			good = wait_once(link, left, until_ns);
	}
	if (!good) {
		broke(link, &link->statements);
		return -ECONNRESET;
	}
	*ret = reply;
	return 0;
}

static int run_once(struct twi_redis_link *link, struct name name, redisReply **ret)
{
	redisReply *reply = NULL;
	int error = send(link, name);

	if (error == 0)
		error = twi_redis_link_read(link, twi_redis_link_until_ns(link), &reply);
	if (error != 0)
		return error;
	if (reply->type == REDIS_REPLY_ERROR) {
		error = twi_redis_error(reply->str);
		if (error != TWI_REDIS_NO_SCRIPT && error != -ESTALE)
			twi_redis_notify(&link->notice, reply->str);
	}
	if (error == 0 && ret != NULL)
		*ret = reply;
	else
		freeReplyObject(reply);
	return error;
}

int twi_redis_link_run(struct twi_redis_link *link, enum twi_redis_script script, redisReply **ret)
{
	int error = run_once(link, name_of(link, script, false), ret);

	return error == TWI_REDIS_NO_SCRIPT ? run_once(link, name_of(link, script, true), ret)
					    : error;
}

int twi_redis_link_run_text(struct twi_redis_link *link, const char *text, redisReply **ret)
{
	return run_once(link, (struct name){"EVAL", text}, ret);
}
