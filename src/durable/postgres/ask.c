/* SPDX-License-Identifier: MIT */
#include "durable/postgres/ask.h"

#include <poll.h>
#include <stdbool.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

/*
 * Waits until there is something to read or, if `writes`, until a write is possible. Returns false
 * if the time is over.
 */
static bool wait_once(PGconn *connection, bool writes, int64_t until_ns)
{
	struct pollfd file = {.fd = PQsocket(connection),
			      .events = (short)(writes ? POLLIN | POLLOUT : POLLIN)};
	int64_t wait_ms = (until_ns - now_ns()) / MILLISECOND;

	return wait_ms > 0 && poll(&file, 1, (int)wait_ms) != 0;
}

/*
 * Sends the remaining bytes, and reads until a reply is there. Returns false if the connection
 * failed or the time is over.
 */
static bool reply_wait(PGconn *connection, int64_t until_ns)
{
	int left = 1;

	while (left != 0 || PQisBusy(connection) != 0) {
		left = PQflush(connection);
		if (left < 0 || PQconsumeInput(connection) == 0)
			return false;
		if ((left != 0 || PQisBusy(connection) != 0) &&
		    !wait_once(connection, left == 1, until_ns))
			return false;
	}
	return true;
}

/* Reads all replies, and returns the last one. */
static PGresult *replies_take(PGconn *connection, int64_t until_ns)
{
	PGresult *result = NULL, *next;

	while (reply_wait(connection, until_ns)) {
		next = PQgetResult(connection);
		if (next == NULL)
			return result;
		PQclear(result);
		result = next;
	}
	PQclear(result);
	return NULL;
}

PGresult *twi_postgres_ask(PGconn *connection, const char *text, int64_t wait_ns)
{
	int blocks = PQisnonblocking(connection) == 0;
	PGresult *result = NULL;

	if (wait_ns == TWI_POSTGRES_NEVER)
		return PQexec(connection, text);
	if (PQsetnonblocking(connection, 1) == 0 && PQsendQuery(connection, text) == 1)
		result = replies_take(connection, now_ns() + wait_ns);
	if (blocks)
		(void)PQsetnonblocking(connection, 0);
	return result;
}
