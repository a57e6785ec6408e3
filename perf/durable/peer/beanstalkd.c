/* SPDX-License-Identifier: MIT */
/* The keeper beanstalkd, which stores timers in its binary log. */
#include "durable/peer/peer.h"
#include "durable/peer/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t *ids;
static size_t count_of, room;

static void id_push(uint64_t id)
{
	if (count_of == room) {
		room = 2 * room + KEEPER_BATCH;
		ids = realloc(ids, room * sizeof *ids);
		if (ids == NULL)
			keeper_fail("ids", "no memory");
	}
	ids[count_of++] = id;
}

static uint64_t number_of(const char *line, const char *answer)
{
	size_t length = strlen(answer);

	if (strncmp(line, answer, length) != 0)
		keeper_fail("beanstalkd", line);
	return strtoull(line + length, NULL, 10);
}

static void schedule(size_t count, int64_t due_s)
{
	int64_t delay_s = due_s - (int64_t)time(NULL);

	for (size_t i = 0; i < count; i++)
		wire_put("put 0 %" PRId64 " 60 %d\r\n%s\r\n", delay_s > 0 ? delay_s : 0,
			 KEEPER_PAYLOAD, keeper_payload);
	wire_send();
	for (size_t i = 0; i < count; i++)
		id_push(number_of(wire_line(), "INSERTED "));
}

static void delete_all(const uint64_t *which, size_t count)
{
	for (size_t i = 0; i < count; i++)
		wire_put("delete %" PRIu64 "\r\n", which[i]);
	wire_send();
	for (size_t i = 0; i < count; i++)
		(void)number_of(wire_line(), "DELETED");
}

static void cancel(size_t count)
{
	count_of -= count;
	delete_all(ids + count_of, count);
}

static size_t take(size_t most)
{
	uint64_t taken[KEEPER_BATCH];
	size_t count = 0;

	for (size_t i = 0; i < most; i++)
		wire_put("reserve-with-timeout 0\r\n");
	wire_send();
	for (size_t i = 0; i < most; i++) {
		const char *line = wire_line();

		if (strcmp(line, "TIMED_OUT") == 0)
			continue;
		taken[count++] = number_of(line, "RESERVED ");
		wire_skip(KEEPER_PAYLOAD);
	}
	delete_all(taken, count);
	return count;
}

/*
 * Waits for an answer to a request. The server answers only when it has read its log, so the open
 * includes that time.
 */
static void open_beanstalkd(const char *address)
{
	wire_open(address);
	wire_put("list-tube-used\r\n");
	wire_send();
	(void)number_of(wire_line(), "USING ");
}

const struct keeper keeper_beanstalkd = {"beanstalkd", open_beanstalkd, schedule, cancel,
					 take,         wire_close};
