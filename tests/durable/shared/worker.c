/* SPDX-License-Identifier: MIT */
/*
 * One of several processes that share timers, for machines.py.
 *
 *   usage: worker ADDRESS PLACE LOG NAME SESSION_MS
 *
 * It executes the lines of its input:
 *
 *     schedule COUNT KIND SPREAD_MS    COUNT timers, due at random within the spread
 *     cancel ID     unkey KEY          flush                            close
 *
 * For each event it appends a line to LOG, each by one write, so the lines of all processes are
 * whole and in order:
 *
 *     NAME ack ID OUTCOME      NAME cancel ID RESULT      NAME cancelled ID OUTCOME
 *     NAME begin ID ATTEMPT FENCE LATE_US      NAME end ID      NAME effect ID CODE
 *     NAME state STATE      NAME flushed      NAME sessions COUNT
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>
#include <unistd.h>

#define CANCELLED ((void *)1)

static struct worker_place place;
static int log_file;
static struct tw_durable *timers;

static void line(const char *format, ...)
{
	char text[256];
	va_list arguments;
	int length = snprintf(text, sizeof text, "%s ", place.name);

	va_start(arguments, format);
	length += vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
	va_end(arguments);
	if (write(log_file, text, (size_t)length) != length)
		abort();
}

static void id_text(struct tw_durable_id id, char text[48])
{
	snprintf(text, 48, "%" PRId64 "-%" PRIu64, (int64_t)id.place, id.serial);
}

static int64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void begin_log(const struct tw_durable_self *self)
{
	char id[48];

	id_text(self->id, id);
	line("begin %s %" PRIu64 " %" PRIu64 " %" PRId64 "\n", id, self->attempt, self->fence,
	     (wall_ns() - self->due_ns) / 1000);
}

static int on_job(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	char id[48];

	(void)payload;
	(void)bytes;
	begin_log(self);
	id_text(self->id, id);
	line("end %s\n", id);
	return TW_RETRY_DONE;
}

static int on_effect(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	char id[48];
	int code;

	(void)payload;
	(void)bytes;
	begin_log(self);
	id_text(self->id, id);
	code = worker_effect(&place, self, id);
	line("effect %s %d\n", id, code);
	return code == 0 ? TW_RETRY_DONE : TW_RETRY_AGAIN;
}

static const struct tw_retry_schedule schedule =
	TW_RETRY_EXPONENTIAL(TW_MS(50), TW_MS(500), 200, TW_RETRY_JITTER_NONE);
static const struct tw_durable_kind job = TW_DURABLE_KIND("job", on_job, NULL);
static const struct tw_durable_kind effect = TW_DURABLE_KIND("effect", on_effect, &schedule);

static void on_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	char id[48];

	(void)context;
	for (size_t i = 0; i < count; i++) {
		id_text(acks[i].id, id);
		line("%s %s %d\n", acks[i].context == CANCELLED ? "cancelled" : "ack", id,
		     acks[i].outcome);
	}
}

static void on_state(void *context, int state, int error)
{
	(void)context;
	line("state %d %d\n", state, error);
}

static void on_notice(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "%s: %s\n", place.name, text);
}

static void fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", place.name, what, strerror(-error));
	exit(3);
}

static void open_timers(struct tw_engine *engine, const char *session_ms)
{
	const struct tw_durable_kind *kinds[] = {&job, &effect};
	struct tw_durable_options options;
	int error;

	place.session_ns = strtoull(session_ms, NULL, 10) * 1000000;
	place.notice = on_notice;
	tw_durable_options_init(&options, sizeof options);
	options.acked = on_acked;
	if (getenv("TESTS_LEVEL") != NULL)
		options.level = (uint32_t)strtoul(getenv("TESTS_LEVEL"), NULL, 10);
	options.state = on_state;
	error = worker_store(&place, &options.store);
	if (error == 0)
		error = tw_durable_open(engine, kinds, 2, &options, &timers);
	if (error != 0)
		fail("open", error);
}

static void schedule_some(const char *arguments)
{
	char kind[16] = "";
	int count = 0, spread_ms = 0;

	if (sscanf(arguments, "%d %15s %d", &count, kind, &spread_ms) != 3)
		fail(arguments, -EINVAL);
	for (int i = 0; i < count; i++) {
		struct tw_durable_spec spec = {
			.size = sizeof spec,
			.kind = strcmp(kind, "job") == 0 ? &job : &effect,
			.due_ns = (int64_t)(random() % (spread_ms + 1)) * 1000000,
		};
		int error = tw_durable_schedule(timers, &spec, NULL);

		if (error != 0 && error != -EAGAIN)
			fail("schedule", error);
	}
}

static void cancel(const char *text)
{
	struct tw_durable_id id = {0, 0};
	int64_t bucket = 0;

	if (sscanf(text, "%" SCNd64 "-%" SCNu64, &bucket, &id.serial) != 2)
		fail(text, -EINVAL);
	id.place = (uint64_t)bucket;
	line("cancel %" PRId64 "-%" PRIu64 " %d\n", bucket, id.serial,
	     tw_durable_cancel(timers, id, CANCELLED));
}

int main(int count, char **texts)
{
	struct tw_durable_stats stats = {.sessions = 0};
	struct tw_engine *engine;
	char command[128];
	int error;

	if (count != 6)
		return 2;
	place.address = texts[1];
	place.place = texts[2];
	place.name = texts[4];
	log_file = open(texts[3], O_WRONLY | O_APPEND | O_CLOEXEC);
	srandom((unsigned)getpid());
	error = tw_engine_create(NULL, &engine);
	if (error != 0 || log_file < 0)
		fail("begin", error);
	open_timers(engine, texts[5]);
	line("open\n");
	while (fgets(command, sizeof command, stdin) != NULL && strcmp(command, "close\n") != 0) {
		if (strncmp(command, "schedule ", 9) == 0)
			schedule_some(command + 9);
		else if (strncmp(command, "cancel ", 7) == 0)
			cancel(command + 7);
		else if (strncmp(command, "unkey ", 6) == 0)
			(void)tw_durable_cancel_key(timers, command + 6, strcspn(command + 6, "\n"),
						    CANCELLED);
		else if (strcmp(command, "flush\n") == 0)
			line("flushed %d\n", tw_durable_flush(timers, TW_NEVER));
	}
	(void)tw_durable_stats_get(timers, &stats, sizeof stats);
	line("sessions %" PRIu64 "\n", stats.sessions);
	error = tw_durable_close(timers, TW_NEVER);
	line("closed %d\n", error);
	(void)tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	(void)tw_engine_destroy(engine);
	worker_end();
	return error == 0 ? 0 : 3;
}
