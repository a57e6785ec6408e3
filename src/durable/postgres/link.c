/* SPDX-License-Identifier: MIT */
#include "durable/postgres/link.h"

#include "durable/postgres/ask.h"
#include "durable/postgres/schema.h"
#include "durable/shared/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BEAT_WAIT_MS = 10 };

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
/* The first and the longest pause between tries to connect. Each is twice the one before. */
#define PAUSE_FIRST_NS (50 * MILLISECOND)
#define PAUSE_MOST_NS (2 * SECOND)

int64_t twi_link_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

static void finish(PGconn **connection)
{
	if (*connection != NULL)
		PQfinish(*connection);
	*connection = NULL;
}

void twi_link_close(struct twi_link *link)
{
	finish(&link->statements);
	finish(&link->beats);
	link->beat_waits = false;
}

void twi_link_free(struct twi_link *link)
{
	twi_link_close(link);
	twi_values_free(&link->values);
	twi_values_free(&link->beat_values);
	free(link->beat_text);
	free(link->address);
}

/*
 * Limits the statements of a connection. No statement may last longer than its caller waits. Each
 * statement must use an index, because it reads at most some thousand rows of a table that may have
 * millions. The planner cannot know that, because the rows change faster than the planner's
 * statistics.
 */
static bool limits_set(const struct twi_link *link, PGconn *connection, int64_t limit_ns)
{
	char text[384];
	long long ms = (long long)(limit_ns / MILLISECOND);
	PGresult *result;
	bool good;

	snprintf(
		text, sizeof text,
		"SELECT set_config('statement_timeout', '%lld', false), set_config('lock_timeout', "
		"'%lld', false), set_config(name, 'off', false) FROM unnest(ARRAY['jit', "
		"'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin']) AS name",
		ms, ms);
	result = twi_postgres_ask(connection, text, link->session_ns / 4);
	good = PQresultStatus(result) == PGRES_TUPLES_OK;
	PQclear(result);
	return good && PQsetnonblocking(connection, 1) == 0;
}

static void notice_drop(void *to, const PGresult *result)
{
	(void)to;
	(void)result;
}

/* The user's address is the last argument, so its settings prevail. */
PGconn *twi_link_make(const struct twi_link *link, int64_t limit_ns)
{
	static const char *const names[] = {"fallback_application_name", "connect_timeout",
					    "dbname", NULL};
	const char *const values[] = {"tickwheel", "2", link->address, NULL};
	PGconn *connection = PQconnectdbParams(names, values, 1);

	if (connection == NULL)
		return NULL;
	(void)PQsetNoticeReceiver(connection, notice_drop, NULL);
	if (PQstatus(connection) == CONNECTION_OK && limits_set(link, connection, limit_ns))
		return connection;
	twi_postgres_notify(&link->notice, connection);
	PQfinish(connection);
	return NULL;
}

static bool mode_is_full(PGconn *connection)
{
	PQconninfoOption *options = PQconninfo(connection);
	bool full = false;

	for (const PQconninfoOption *option = options; option != NULL && option->keyword != NULL;
	     option++)
		full = full || (strcmp(option->keyword, "sslmode") == 0 && option->val != NULL &&
				strcmp(option->val, "verify-full") == 0);
	PQconninfoFree(options);
	return full;
}

/*
 * Warns once that the server is not verified. That is no error, because the user has chosen the
 * address.
 */
static void warn_unverified(struct twi_link *link)
{
	PGconn *connection = link->statements;

	if (link->warned || !twi_peer_is_remote(PQsocket(connection)) ||
	    PQgssEncInUse(connection) != 0 ||
	    (PQsslInUse(connection) != 0 && mode_is_full(connection)))
		return;
	link->warned = true;
	if (link->notice.function != NULL)
		link->notice.function(
			link->notice.context,
			"warning: the server is not verified: set sslmode=verify-full");
}

void twi_link_pause(struct twi_link *link)
{
	link->pause_ns = link->pause_ns == 0 ? PAUSE_FIRST_NS : 2 * link->pause_ns;
	if (link->pause_ns > PAUSE_MOST_NS)
		link->pause_ns = PAUSE_MOST_NS;
	link->connect_at_ns = twi_link_now_ns() + link->pause_ns;
}

int twi_link_open(struct twi_link *link)
{
	if (link->statements != NULL && link->beats != NULL)
		return 0;
	if (twi_link_now_ns() < link->connect_at_ns)
		return -EAGAIN;
	if (link->statements == NULL)
		link->statements = twi_link_make(link, link->session_ns / 4);
	if (link->statements != NULL && link->beats == NULL)
		link->beats = twi_link_make(link, link->session_ns / 4);
	if (link->statements != NULL && link->beats != NULL) {
		warn_unverified(link);
		link->pause_ns = 0;
		link->beat_at_ns = twi_link_now_ns();
		return 0;
	}
	twi_link_pause(link);
	return -EAGAIN;
}

/*
 * Records how far the server's clock is ahead of CLOCK_BOOTTIME. The server read its clock between
 * the request and the reply, so there is a least and a greatest possible distance. This function
 * records the least one, so that no timer is early. It replaces the recorded distance only if a
 * reply contradicts it. So slow replies do not change it.
 */
static void clock_note(struct twi_link *link, int64_t server_ns, int64_t sent_ns, int64_t got_ns)
{
	int64_t least_ns = server_ns - got_ns, most_ns = server_ns - sent_ns;

	if (!link->wall_known || link->wall_ns < least_ns || link->wall_ns > most_ns)
		link->wall_ns = least_ns;
	link->wall_known = true;
	if (link->trip_ns == 0 || got_ns - sent_ns < link->trip_ns)
		link->trip_ns = got_ns - sent_ns;
}

void twi_link_time(struct twi_link *link, int64_t server_ns)
{
	clock_note(link, server_ns, link->piped_ns, twi_link_now_ns());
}

static void lives(struct twi_link *link, int64_t sent_ns)
{
	link->until_ns = sent_ns + link->session_ns / 10 * 8;
	link->beat_at_ns = sent_ns + link->session_ns / 4;
}

void twi_link_session(struct twi_link *link, uint64_t session, int64_t server_ns, int64_t sent_ns)
{
	link->session = session;
	link->over = false;
	clock_note(link, server_ns, sent_ns, twi_link_now_ns());
	lives(link, sent_ns);
}

static void beat_send(struct twi_link *link)
{
	twi_values_begin(&link->beat_values);
	twi_values_int8(&link->beat_values, (int64_t)link->session);
	twi_values_int8(&link->beat_values, link->session_ns);
	link->beat_sent_ns = twi_link_now_ns();
	if (twi_values_send(&link->beat_values, link->beats, link->beat_text) == 0)
		link->beat_waits = true;
	else
		finish(&link->beats);
}

/* Takes the reply to a heartbeat. Returns false if the connection must be closed. */
static bool beat_take(struct twi_link *link, const PGresult *result)
{
	int64_t got_ns = twi_link_now_ns();

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		return false;
	if (PQntuples(result) == 0) {
		link->over = true;
		return true;
	}
	clock_note(link, twi_value_int8(result, 0, 0), link->beat_sent_ns, got_ns);
	lives(link, link->beat_sent_ns);
	return true;
}

static void beat_read(struct twi_link *link)
{
	PGresult *result;
	bool good = PQflush(link->beats) >= 0 && PQconsumeInput(link->beats) == 1;

	while (good && PQisBusy(link->beats) == 0) {
		result = PQgetResult(link->beats);
		if (result == NULL) {
			link->beat_waits = false;
			return;
		}
		good = beat_take(link, result);
		PQclear(result);
	}
	if (good && twi_link_now_ns() - link->beat_sent_ns < link->session_ns / 4)
		return;
	twi_postgres_notify(&link->notice, link->beats);
	finish(&link->beats);
	link->beat_waits = false;
}

void twi_link_beat(struct twi_link *link)
{
	if (link->beats == NULL || link->session == 0 || link->over)
		return;
	if (link->beat_waits)
		beat_read(link);
	if (link->beats != NULL && !link->beat_waits && !link->over &&
	    twi_link_now_ns() >= link->beat_at_ns)
		beat_send(link);
}

void twi_link_beat_wait(struct twi_link *link)
{
	struct pollfd file = {.events = POLLIN};

	if (link->beats == NULL || !link->beat_waits)
		return;
	file.fd = PQsocket(link->beats);
	(void)PQflush(link->beats);
	(void)poll(&file, 1, BEAT_WAIT_MS);
	twi_link_beat(link);
}

/*
 * Waits once, until there is something to read, or a write is possible (if `writes`), or the next
 * heartbeat is due. Returns false if the time is over.
 */
static bool wait_once(struct twi_link *link, bool writes, int64_t until_ns)
{
	/*
	 * Watches the connection for heartbeats only while a heartbeat is under way. If the server
	 * had closed it meanwhile, each poll() would return at once.
	 */
	bool reads = link->beats != NULL && link->beat_waits;
	struct pollfd files[2] = {
		{.fd = PQsocket(link->statements),
		 .events = (short)(writes ? POLLIN | POLLOUT : POLLIN)},
		{.fd = reads ? PQsocket(link->beats) : -1, .events = POLLIN},
	};
	int64_t now_ns = twi_link_now_ns(), wait_ns = until_ns - now_ns;

	if (wait_ns <= 0)
		return false;
	if (link->beats != NULL && !link->beat_waits && link->beat_at_ns - now_ns < wait_ns)
		wait_ns = link->beat_at_ns > now_ns ? link->beat_at_ns - now_ns : 0;
	(void)poll(files, 2, (int)(wait_ns / MILLISECOND) + 1);
	twi_link_beat(link);
	return true;
}

/*
 * Returns the next reply, or NULL after the last one. Sets *ret_error if the connection must be
 * closed.
 */
static PGresult *reply(struct twi_link *link, int64_t until_ns, int *ret_error)
{
	int left = 1;

	while (left != 0 || PQisBusy(link->statements) != 0) {
		left = PQflush(link->statements);
		if (left < 0 || PQconsumeInput(link->statements) == 0 ||
		    ((left != 0 || PQisBusy(link->statements) != 0) &&
		     !wait_once(link, left == 1, until_ns))) {
			*ret_error = -ECONNRESET;
			return NULL;
		}
	}
	return PQgetResult(link->statements);
}

static int64_t deadline(const struct twi_link *link)
{
	/* The server itself ends the statement a quarter of a second before this deadline. */
	return twi_link_now_ns() + link->session_ns / 4 + SECOND / 4;
}

/* Ends a statement or a pipeline. Closes the connection if it is lost. */
static int ended(struct twi_link *link, int error)
{
	/*
	 * If the schema is dropped while a statement begins, the server may report a missing table
	 * or function, as if the schema had been changed.
	 */
	if (error == -EUCLEAN && twi_postgres_schema_look(link->statements, link->schema,
							  link->session_ns / 4) == -ENOENT)
		return -ENOENT;
	if (error == -ECONNRESET) {
		twi_postgres_notify(&link->notice, link->statements);
		finish(&link->statements);
	}
	return error;
}

static int result_error(struct twi_link *link, const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		return 0;
	twi_postgres_notify(&link->notice, link->statements);
	return twi_postgres_error(link->statements, result);
}

int twi_link_run(struct twi_link *link, const char *text, PGresult **ret)
{
	int64_t until_ns = deadline(link);
	PGresult *result = NULL, *next;
	int error;

	if (link->statements == NULL)
		return -EAGAIN;
	error = twi_values_send(&link->values, link->statements, text);
	while (error == 0 && (next = reply(link, until_ns, &error)) != NULL) {
		PQclear(result);
		result = next;
	}
	if (error == 0)
		error = result_error(link, result);
	if (error == 0 && ret != NULL)
		*ret = result;
	else
		PQclear(result);
	return ended(link, error);
}

int twi_link_pipe_begin(struct twi_link *link)
{
	if (link->statements == NULL)
		return -EAGAIN;
	link->piped_ns = twi_link_now_ns();
	return PQenterPipelineMode(link->statements) == 1 ? 0 : ended(link, -ECONNRESET);
}

int twi_link_pipe_send(struct twi_link *link, const char *text)
{
	int error = twi_values_send(&link->values, link->statements, text);

	/*
	 * Closes the connection. Without the end of the pipeline the earlier statements are not
	 * committed.
	 */
	if (error == -ENOMEM)
		finish(&link->statements);
	return ended(link, error);
}

/*
 * Reads the replies to one statement. Returns 1 at the end of the pipeline, 0 before it, or an
 * error.
 */
static int pipe_read(struct twi_link *link, int64_t until_ns, int *error,
		     void (*give)(void *to, const PGresult *result), void *to)
{
	int lost = 0, end = 0;
	PGresult *result;

	while ((result = reply(link, until_ns, &lost)) != NULL) {
		ExecStatusType status = PQresultStatus(result);

		if (status == PGRES_PIPELINE_SYNC)
			end = 1;
		else if (status != PGRES_PIPELINE_ABORTED && *error == 0)
			*error = result_error(link, result);
		if (end == 0 && *error == 0)
			give(to, result);
		PQclear(result);
		if (end == 1)
			return 1;
	}
	return lost;
}

int twi_link_pipe_end(struct twi_link *link, void (*give)(void *to, const PGresult *result),
		      void *to)
{
	int64_t until_ns = deadline(link);
	int error = 0, read = PQpipelineSync(link->statements) == 1 ? 0 : -ECONNRESET;

	while (read == 0)
		read = pipe_read(link, until_ns, &error, give, to);
	if (read < 0 || PQexitPipelineMode(link->statements) == 0)
		error = -ECONNRESET;
	return ended(link, error);
}
