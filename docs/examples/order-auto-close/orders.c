/* SPDX-License-Identifier: MIT */
#include "orders.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <tickwheel.h>
#include <tickwheel/durable.h>
#include <tickwheel/durable_file.h>
#include <unistd.h>

static struct tw_engine *engine;
static struct tw_durable *timers;
static int64_t close_after;
static int closed_fd = -1;

static int name_write(char *text, size_t bytes, struct tw_durable_id id)
{
	return snprintf(text, bytes, "%" PRIx64 "-%" PRIx64, id.place, id.serial);
}

static int name_read(const char *text, struct tw_durable_id *ret)
{
	int end = 0;

	return sscanf(text, "%" SCNx64 "-%" SCNx64 "%n", &ret->place, &ret->serial, &end) == 2 &&
	       text[end] == '\0' && ret->serial != 0;
}

/* Writes a line for the order. If a crash repeats this, the reader ignores the second line. */
static int closed_note(struct tw_durable_id id)
{
	char line[ORDER_NAME + 1];
	int length = name_write(line, ORDER_NAME, id);

	line[length++] = '\n';
	return write(closed_fd, line, (size_t)length) == length && fdatasync(closed_fd) == 0 ? 0
											     : -EIO;
}

/* If the process crashes in this function, the timer runs again, with the same id. */
static int on_close(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)payload;
	(void)bytes;
	return closed_note(self->id) == 0 ? TW_RETRY_DONE : TW_RETRY_AGAIN;
}

static const struct tw_retry_schedule again = TW_RETRY_EXPONENTIAL(TW_S(1), TW_S(30), 200, 10);
static const struct tw_durable_kind close_kind = TW_DURABLE_KIND("order-close", on_close, &again);

/* The outcome of the call that is under way. The `context` of each call points to its own
 * answer. */
struct answer {
	int outcome, status;
};

static void on_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++) {
		struct answer *answer = acks[i].context;

		answer->outcome = acks[i].outcome;
		answer->status = acks[i].status;
	}
}

static enum order_code code_of(int error)
{
	return error == -ENOSPC || error == -EAGAIN || error == -ENOMEM ? ORDER_REFUSED
									: ORDER_FAILED;
}

/* Waits for the commit. On return the acknowledgement has come. */
static enum order_code stored(const struct answer *answer)
{
	int error = tw_durable_flush(timers, TW_NEVER);

	if (error < 0 || answer->status < 0)
		return code_of(error < 0 ? error : answer->status);
	return answer->outcome == TW_DURABLE_DONE ? ORDER_DONE : ORDER_GONE;
}

/*
 * An attempt to close the order had begun, and a crash or a full disk interrupted it. Its line may
 * have been written. So the order counts as closed, and the line is written again.
 */
static enum order_code half_closed(struct tw_durable_id id)
{
	return closed_note(id) == 0 ? ORDER_GONE : ORDER_FAILED;
}

enum order_code order_open(struct order *ret)
{
	struct answer answer = {.status = 0};
	struct tw_durable_info info = {.size = sizeof(info)};
	struct tw_durable_spec spec = {
		.size = sizeof(spec),
		.kind = &close_kind,
		.due_ns = close_after,
		.context = &answer,
	};
	struct tw_durable_id id;
	enum order_code code;
	int error = tw_durable_schedule(timers, &spec, &id);

	if (error < 0)
		return code_of(error);
	code = stored(&answer);
	if (code != ORDER_DONE)
		return code;
	name_write(ret->name, ORDER_NAME, id);
	ret->due_ns = tw_durable_find(timers, id, &info, TW_NEVER) == 0 ? info.due_ns : 0;
	return ORDER_DONE;
}

enum order_code order_pay(const char *name)
{
	struct answer answer = {.status = 0};
	enum order_code code;
	struct tw_durable_id id;
	int result;

	if (!name_read(name, &id))
		return ORDER_GONE;
	result = tw_durable_cancel(timers, id, &answer);
	/* The order is closed, or is closing now. */
	if (result == TW_DURABLE_RUNNING || result == TW_DURABLE_ABSENT)
		return ORDER_GONE;
	if (result < 0 && result != -EINPROGRESS)
		return code_of(result);
	code = stored(&answer);
	if (code == ORDER_GONE && answer.outcome == TW_DURABLE_ATTEMPTED)
		return half_closed(id);
	return code;
}

int orders_list(struct order *ret)
{
	struct tw_durable_info infos[ORDERS_LISTED] = {{.size = sizeof(infos[0])}};
	int count = tw_durable_list(timers, NULL, infos, ORDERS_LISTED, TW_S(5));

	for (int i = 0; i < count; i++) {
		name_write(ret[i].name, ORDER_NAME, infos[i].id);
		ret[i].due_ns = infos[i].due_ns;
	}
	return count;
}

const char *orders_state(void)
{
	static const char *const names[] = {"open", "failed", "clock stepped", "full", "slow"};
	struct tw_durable_stats stats;

	return tw_durable_stats_get(timers, &stats, sizeof(stats)) == 0 && stats.state < 5
		       ? names[stats.state]
		       : "?";
}

int orders_begin(const char *file, const char *closed, int64_t close_after_ns)
{
	const struct tw_durable_kind *kinds[] = {&close_kind};
	struct tw_durable_options options;
	int error;

	close_after = close_after_ns;
	closed_fd = open(closed, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (closed_fd < 0)
		return -errno;
	error = tw_engine_create(NULL, &engine);
	if (error == 0)
		error = tw_durable_options_init(&options, sizeof(options));
	if (error == 0)
		error = tw_durable_store_file(file, &options.store);
	if (error != 0)
		return error;
	/* Each request waits for its own commit, so a window would only delay it. */
	options.window_ns = 0;
	options.acked = on_acked;
	/* Allows a file on a file system in memory, for trials. */
	options.level = TW_DURABLE_LEVEL_PROCESS;
	return tw_durable_open(engine, kinds, 1, &options, &timers);
}

void orders_end(void)
{
	(void)tw_durable_close(timers, TW_NEVER);
	(void)tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	(void)tw_engine_destroy(engine);
	close(closed_fd);
}
