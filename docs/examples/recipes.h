/* SPDX-License-Identifier: MIT */
/*
 * The recipes of docs/tuning.md: the usual timeouts of servers, each in about ten lines. recipes.c
 * runs them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

struct call {
	struct tw_handle deadline;
	bool late;
};

static void call_late(struct tw_handle self, void *arg)
{
	struct call *call = arg;

	(void)self;
	call->late = true; /* here: notify the waiting thread */
}

static const struct tw_kind call_deadline = TW_KIND(call_late, NULL);

static int call_send(struct tw_engine *engine, struct call *call, int64_t limit_ns)
{
	return tw_schedule(engine, limit_ns, &call_deadline, call, &call->deadline);
}

/* Returns false if the answer is late: then call_late has run, or runs now. */
static bool call_answered(struct call *call)
{
	return tw_cancel(call->deadline) == TW_CANCEL_DONE;
}

struct connection {
	struct tw_handle idle;
	bool open;
};

static void connection_idle(struct tw_handle self, void *arg)
{
	struct connection *connection = arg;

	(void)self;
	connection->open = false; /* here: close it */
}

static const struct tw_kind idle = TW_KIND(connection_idle, NULL);

static int connection_accept(struct tw_engine *engine, struct connection *connection)
{
	connection->open = true;
	return tw_schedule(engine, TW_S(30), &idle, connection, &connection->idle);
}

static void connection_packet(struct connection *connection)
{
	tw_reschedule(connection->idle, TW_S(30));
}

static int64_t session_expired(const struct tw_keyed_self *self, void *arg)
{
	(void)arg;
	printf("session %.*s expired\n", (int)self->key_bytes, (const char *)self->key);
	return TW_KEYED_END;
}

static const struct tw_keyed_kind session = TW_KEYED_KIND(session_expired, NULL);

static int session_touch(struct tw_keyed *sessions, const char *id)
{
	return tw_keyed_replace(sessions, id, strlen(id), TW_S(20), &session, NULL, NULL);
}

static void frame(struct tw_handle self, void *arg)
{
	uint64_t *frames = arg;

	(void)self;
	++*frames;
}

static const struct tw_kind frame_kind = TW_KIND(frame, NULL);

static int frames_start(struct tw_engine *engine, uint64_t *frames, struct tw_handle *ret_handle)
{
	struct tw_period period = TW_PERIOD_RATE(TW_S(1) / 60);

	period.missed = TW_MISSED_SKIP; /* late frames are skipped; the grid does not shift */
	return tw_schedule_periodic(engine, &period, &frame_kind, frames, ret_handle);
}

static int try_delivery(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	(void)self, (void)arg;
	return attempt < 4 ? TW_RETRY_AGAIN : TW_RETRY_DONE;
}

static void delivery_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	(void)arg;
	printf("%s after %" PRIu64 " attempts\n",
	       end == TW_RETRY_END_DONE ? "delivered" : "given up", attempts);
}

static const struct tw_retry_schedule backoff =
	TW_RETRY_EXPONENTIAL(TW_MS(100), TW_S(10), 200, TW_RETRY_JITTER_FULL);
static const struct tw_retry_kind delivery =
	TW_RETRY_KIND(try_delivery, delivery_ended, &backoff, 8);
