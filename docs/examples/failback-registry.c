/* SPDX-License-Identifier: MIT */
/*
 * A client of a service registry that may be down. If the client cannot register a URL, it tries
 * again every five seconds, until it succeeds or the URL is unregistered (docs/keyed.md). Each URL
 * has at most one such task. The program runs in virtual time, so a minute of outage takes no real
 * time.
 *
 * The table of keys is the only state: a URL is in the table as long as it must be tried again.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>

#define RETRY_NS TW_S(5)

/* The registry's server: down until `up` is set. */
static struct {
	bool up;
	unsigned registered;
} remote;

static bool remote_register(const char *url)
{
	(void)url;
	remote.registered += remote.up;
	return remote.up;
}

struct registry {
	struct tw_engine *engine;
	struct tw_keyed *failed; /* the key is the URL, the argument a copy of it */
	unsigned tries;
	unsigned released;
};

static struct registry registry;

/* The callback of an entry: tries to register the URL again. As long as it returns a delay, the
 * entry keeps its key, so no second task for the URL can be added. */
static int64_t on_retry(const struct tw_keyed_self *self, void *url)
{
	bool done;

	registry.tries++;
	done = remote_register(url);
	if (done)
		printf("%s: registered, try %" PRIu64 "\n", (char *)url, self->runs);
	return done ? TW_KEYED_END : RETRY_NS;
}

/* Runs once for each task, however it ends. */
static void on_retry_end(const struct tw_keyed_self *self, void *url, enum tw_keyed_end end)
{
	(void)self;
	if (end == TW_KEYED_END_CANCELLED)
		printf("%s: unregistered while it was being tried\n", (char *)url);
	else if (end == TW_KEYED_END_STOPPED)
		printf("%s: given up at the end\n", (char *)url);
	registry.released++;
	free(url);
}

static const struct tw_keyed_kind retry = TW_KEYED_KIND(on_retry, on_retry_end);

/* Adds a task that tries the URL again, unless the URL already has one. */
static void registry_failed(const char *url)
{
	char *copy = strdup(url);
	int outcome = -1;

	if (copy != NULL)
		outcome = tw_keyed_schedule(registry.failed, url, strlen(url), RETRY_NS, &retry,
					    copy, NULL);
	if (outcome == TW_KEYED_DONE) {
		printf("%s: failed, will be tried again\n", url);
		return;
	}
	printf("%s: %s\n", url,
	       outcome == TW_KEYED_PRESENT ? "is being tried already" : "failed, and is forgotten");
	free(copy);
}

static void registry_register(const char *url)
{
	/* Ends a task of an earlier failure, because the URL is tried anew now. */
	(void)tw_keyed_cancel(registry.failed, url, strlen(url), TW_KEYED_ANY);
	if (remote_register(url))
		printf("%s: registered\n", url);
	else
		registry_failed(url);
}

static void registry_unregister(const char *url)
{
	(void)tw_keyed_cancel(registry.failed, url, strlen(url), TW_KEYED_ANY);
}

static void pass(struct tw_clock *clock, int64_t seconds)
{
	for (int64_t i = 0; i < seconds; i++) {
		(void)tw_clock_set(clock, tw_clock_now(clock) + TW_S(1));
		while (tw_engine_poll(registry.engine, 0) > 0)
			;
	}
}

int main(void)
{
	struct tw_options options;
	struct tw_clock *clock;

	if (tw_clock_create_virtual(0, &clock) != 0 ||
	    tw_options_init(&options, sizeof options) != 0)
		return 1;
	options.flags = TW_ENGINE_LOOP;
	options.clock = clock;
	if (tw_engine_create(&options, &registry.engine) != 0 ||
	    tw_keyed_create(registry.engine, NULL, &registry.failed) != 0)
		return 1;

	registry_register("dubbo://10.0.0.1/orders");
	registry_register("dubbo://10.0.0.1/stock");
	registry_register("dubbo://10.0.0.1/users");
	/* Another caller fails with the same URL: no second task is added. */
	registry_failed("dubbo://10.0.0.1/orders");
	pass(clock, 12);
	registry_unregister("dubbo://10.0.0.1/stock");
	pass(clock, 3);
	remote.up = true;
	pass(clock, 10);
	remote.up = false;
	registry_register("dubbo://10.0.0.1/users");
	pass(clock, 3);

	printf("%u tries, %u registered, %" PRId64 " waiting\n", registry.tries, remote.registered,
	       tw_keyed_count(registry.failed));
	if (tw_engine_stop(registry.engine, NULL, NULL, TW_NEVER) != 0 ||
	    tw_keyed_destroy(registry.failed) != 0 || tw_engine_destroy(registry.engine) != 0 ||
	    tw_clock_destroy(clock) != 0)
		return 1;
	printf("%u released\n", registry.released);
	return 0;
}
