/* SPDX-License-Identifier: MIT */
/*
 * The keeper "log", the lower bound of the cost: appends a record to a file for each timer, and
 * syncs once for each batch.
 */
#include "durable/peer/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = KEEPER_PAYLOAD + 32 };

static int fd;

static void open_log(const char *address)
{
	char path[512];

	snprintf(path, sizeof path, "%s/log", address);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		keeper_fail(path, strerror(errno));
}

static void schedule(size_t count, int64_t due_s)
{
	static char records[KEEPER_BATCH * RECORD];

	for (size_t i = 0; i < count; i++) {
		memcpy(records + i * RECORD, &due_s, sizeof due_s);
		memcpy(records + i * RECORD + 32, keeper_payload, KEEPER_PAYLOAD);
	}
	if (write(fd, records, count * RECORD) != (ssize_t)(count * RECORD) || fdatasync(fd) != 0)
		keeper_fail("log", strerror(errno));
}

static void close_log(void)
{
	close(fd);
}

const struct keeper keeper_log = {"log", open_log, schedule, NULL, NULL, close_log};
