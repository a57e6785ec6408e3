/* SPDX-License-Identifier: MIT */
#include "durable/redis/wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

int64_t twi_redis_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

/*
 * Writes without SIGPIPE. hiredis uses write(), which raises that signal if the server has closed
 * the connection.
 */
static int write_quiet(redisContext *connection, int *ret_done)
{
	const struct timespec at_once = {.tv_sec = 0};
	sigset_t pipe_signal, before, pending;
	int result;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	result = redisBufferWrite(connection, ret_done);
	if (result != REDIS_OK && sigismember(&pending, SIGPIPE) == 0)
		(void)sigtimedwait(&pipe_signal, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

bool twi_redis_wire_try(redisContext *connection, bool *ret_left)
{
	int done = 0;
	size_t had;

	if (write_quiet(connection, &done) != REDIS_OK)
		return false;
	/*
	 * Reads until no byte is left, because a TLS layer may hold bytes that poll() does not
	 * report.
	 */
	do {
		had = connection->reader->len;
		if (redisBufferRead(connection) != REDIS_OK)
			return false;
	} while (connection->reader->len > had);
	*ret_left = done == 0;
	return true;
}

/* Waits until the file is ready. A signal does not end the wait. */
static bool poll_until(struct pollfd *file, int64_t until_ns)
{
	int64_t left_ns, files;

	do {
		left_ns = until_ns - twi_redis_now_ns();
		files = left_ns < 0 ? 0 : poll(file, 1, (int)(left_ns / MILLISECOND) + 1);
	} while (files < 0 && errno == EINTR);
	return files > 0;
}

bool twi_redis_wire(redisContext *connection, int64_t wait_ns)
{
	struct pollfd file = {.fd = connection->fd, .events = POLLIN};
	int done = 0;
	bool left;

	if (write_quiet(connection, &done) != REDIS_OK)
		return false;
	if (done == 0)
		file.events |= POLLOUT;
	if (!poll_until(&file, twi_redis_now_ns() + wait_ns))
		return false;
	return twi_redis_wire_try(connection, &left);
}
