/* SPDX-License-Identifier: MIT */
#include "durable/peer/wire.h"

#include "durable/peer/peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	OUT = 4 << 20,
	IN = 1 << 16,
};

static int fd = -1;
static char out[OUT], in[IN];
static size_t out_used, in_from, in_end;

void wire_open(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		keeper_fail(path, strerror(errno));
	out_used = in_from = in_end = 0;
}

void wire_close(void)
{
	close(fd);
}

void wire_put(const char *format, ...)
{
	va_list arguments;
	int bytes;

	va_start(arguments, format);
	bytes = vsnprintf(out + out_used, OUT - out_used, format, arguments);
	va_end(arguments);
	if (bytes < 0 || (size_t)bytes >= OUT - out_used)
		keeper_fail("a request", "it is too long");
	out_used += (size_t)bytes;
}

void wire_bytes(const char *bytes, size_t count)
{
	if (count > OUT - out_used)
		keeper_fail("a request", "it is too long");
	memcpy(out + out_used, bytes, count);
	out_used += count;
}

/*
 * Reads more bytes from the server into the buffer. Ends the process if the server has closed the
 * connection.
 */
static void receive(void)
{
	ssize_t got;

	memmove(in, in + in_from, in_end - in_from);
	in_end -= in_from;
	in_from = 0;
	if (in_end == IN)
		keeper_fail("an answer", "its line is too long");
	got = read(fd, in + in_end, IN - in_end);
	if (got <= 0)
		keeper_fail("the server", got == 0 ? "has closed" : strerror(errno));
	in_end += (size_t)got;
}

/*
 * Sends all requests before any answer is read. If its answers filled the socket, the server might
 * stop reading, and both sides would wait. But the answers to a thousand requests fit into the
 * socket.
 */
void wire_send(void)
{
	for (size_t done = 0; done < out_used;) {
		ssize_t sent = write(fd, out + done, out_used - done);

		if (sent < 0)
			keeper_fail("the server", strerror(errno));
		done += (size_t)sent;
	}
	out_used = 0;
}

const char *wire_line(void)
{
	size_t seen = in_from;

	for (;;) {
		char *end = memchr(in + seen, '\n', in_end - seen);

		if (end != NULL) {
			const char *line = in + in_from;

			end[end > line && end[-1] == '\r' ? -1 : 0] = '\0';
			in_from = (size_t)(end + 1 - in);
			return line;
		}
		seen = in_end - in_from;
		receive();
	}
}

void wire_skip(size_t count)
{
	count += 2;
	while (in_end - in_from < count) {
		count -= in_end - in_from;
		in_from = in_end;
		receive();
	}
	in_from += count;
}
