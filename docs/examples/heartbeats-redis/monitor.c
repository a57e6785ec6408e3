/* SPDX-License-Identifier: MIT */
/*
 * A monitor of nodes that send heartbeats. Any number of monitors share a Redis server, and each
 * may be killed. A node sends each heartbeat to any of them.
 *
 *     monitor ADDRESS LIMIT_MS    obeys lines of its input: "beat NODE", "bye NODE"
 *
 *     ok NODE           the heartbeat is stored, or the node is forgotten
 *     late NODE         the node is being reported: send again
 *     silent NODE ID    no heartbeat came within the limit
 *
 * Each node has one durable timer, whose key is the node's name. A heartbeat schedules the timer,
 * or reschedules it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>
#include <tickwheel/durable_redis.h>
#include <time.h>

struct request {
	char node[32];
	int64_t due_ns;
};

static struct tw_durable *timers;

/* Ends the program if a call has failed. -EINPROGRESS is no failure: an acknowledgement follows. */
static void need(const char *what, int code)
{
	if (code >= 0 || code == -EINPROGRESS)
		return;
	fprintf(stderr, "monitor: %s: %s\n", what, tw_strerror(code));
	exit(1);
}

/* If a run is repeated because its monitor was killed, it has the same id. */
static int on_silent(const struct tw_durable_self *self, const void *node, size_t bytes)
{
	printf("silent %.*s %" PRIu64 "\n", (int)bytes, (const char *)node, self->id.serial);
	return TW_RETRY_DONE;
}

static const struct tw_durable_kind silent = TW_DURABLE_KIND("node.silent", on_silent, NULL);

static void answer(struct request *request, const char *word)
{
	printf("%s %s\n", word, request->node);
	free(request);
}

/* If a monitor has already scheduled a timer for the node, the outcome of the schedule is PRESENT.
 * Then the timer is rescheduled. */
static void on_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++) {
		struct request *request = acks[i].context;

		if (acks[i].outcome == TW_DURABLE_PRESENT)
			need("reschedule",
			     tw_durable_reschedule(timers, acks[i].id, request->due_ns, request));
		else if (request->due_ns == 0)
			answer(request, acks[i].outcome == TW_DURABLE_RUNNING ? "late" : "ok");
		else
			answer(request, acks[i].outcome == TW_DURABLE_DONE ? "ok" : "late");
	}
}

static struct request *request_make(const char *node, int64_t due_ns)
{
	struct request *request = calloc(1, sizeof *request);

	if (request == NULL)
		need("request", -ENOMEM);
	snprintf(request->node, sizeof request->node, "%s", node);
	request->due_ns = due_ns;
	return request;
}

static void beat(const char *node, int64_t limit_ns)
{
	struct timespec now;
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.flags = TW_DURABLE_AT,
		.kind = &silent,
		.payload = node,
		.payload_bytes = (uint32_t)strlen(node),
		.key = node,
		.key_bytes = (uint32_t)strlen(node),
	};

	clock_gettime(CLOCK_REALTIME, &now);
	spec.due_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + limit_ns;
	spec.context = request_make(node, spec.due_ns);
	need("schedule", tw_durable_schedule(timers, &spec, NULL));
}

static void bye(const char *node)
{
	need("cancel", tw_durable_cancel_key(timers, node, strlen(node), request_make(node, 0)));
}

static void timers_open(struct tw_engine *engine, const char *address)
{
	const struct tw_durable_kind *kinds[] = {&silent};
	struct tw_durable_redis_options server;
	struct tw_durable_options options;

	need("options", tw_durable_redis_options_init(&server, sizeof server));
	server.address = address;
	server.prefix = "monitors";
	/* When a monitor was killed, another one runs its timers after this time. */
	server.session_ns = TW_S(2);
	server.poll_ns = TW_MS(200);
	need("options", tw_durable_options_init(&options, sizeof options));
	options.acked = on_acked;
	need("store", tw_durable_store_redis(&server, &options.store));
	need("open", tw_durable_open(engine, kinds, 1, &options, &timers));
}

int main(int count, char **texts)
{
	struct tw_engine *engine;
	char line[64], node[32];

	if (count != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	need("engine", tw_engine_create(NULL, &engine));
	timers_open(engine, texts[1]);
	while (fgets(line, sizeof line, stdin) != NULL) {
		if (sscanf(line, "beat %31s", node) == 1)
			beat(node, TW_MS(atol(texts[2])));
		else if (sscanf(line, "bye %31s", node) == 1)
			bye(node);
	}
	need("close", tw_durable_close(timers, TW_S(10)));
	need("stop", tw_engine_stop(engine, NULL, NULL, TW_NEVER));
	need("destroy", tw_engine_destroy(engine));
	return 0;
}
