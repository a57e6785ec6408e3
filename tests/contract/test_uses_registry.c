/* SPDX-License-Identifier: MIT */
/*
 * A typical use of keyed timeouts in servers, in virtual time: a service registry's client keeps
 * its failed registrations by URL. Each is tried again until it succeeds, is unregistered, or the
 * client ends. Whatever ends a registration, it must be released once, and its key must be free
 * afterwards.
 *
 * Seen to fail with this defect: a cancel during a try does not end the registration.
 */
#include "probe.h"

#include <string.h>

#define RETRY_NS (5 * NS_PER_S)

enum { URLS = 6, URL_BYTES = 32 };

/* A registration: its URL, how often it was tried, and its end. */
struct registration {
	char url[URL_BYTES];
	int tries;
	int released;
	enum tw_keyed_end end;
};

/* The registry. Tries fail until `up` is set. The URL in `unregistered_inside` is unregistered
 * during one of its tries. */
static struct {
	struct tw_keyed *failed;
	bool up;
	const char *unregistered_inside;
	int registered;
} registry;

static int64_t on_retry(const struct tw_keyed_self *self, void *arg)
{
	struct registration *registration = arg;

	check_int(registration->released, 0);
	check_int(++registration->tries, (int)self->runs);
	if (registry.unregistered_inside != NULL &&
	    strcmp(registry.unregistered_inside, registration->url) == 0)
		check_int(tw_keyed_cancel(self->table, self->key, self->key_bytes, TW_KEYED_ANY),
			  TW_KEYED_RUNNING);
	registry.registered += registry.up;
	return registry.up ? TW_KEYED_END : RETRY_NS;
}

static void on_retry_end(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct registration *registration = arg;

	check_int(self->key_bytes, strlen(registration->url));
	check_int(memcmp(self->key, registration->url, self->key_bytes), 0);
	registration->released++;
	registration->end = end;
}

static const struct tw_keyed_kind retry = TW_KEYED_KIND(on_retry, on_retry_end);

static int registry_failed(struct registration *registration)
{
	return tw_keyed_schedule(registry.failed, registration->url, strlen(registration->url),
				 RETRY_NS, &retry, registration, NULL);
}

static int registry_unregister(const struct registration *registration)
{
	return tw_keyed_cancel(registry.failed, registration->url, strlen(registration->url),
			       TW_KEYED_ANY);
}

/* Opens the registry with all registrations failed once. */
static void registry_open(struct fixture *fixture, const struct tw_options *options,
			  struct registration *registrations)
{
	fixture_open(fixture, options);
	memset(&registry, 0, sizeof registry);
	check_int(tw_keyed_create(fixture->engine, NULL, &registry.failed), 0);
	for (int i = 0; i < URLS; i++) {
		registrations[i] = (struct registration){.url = "dubbo://10.0.0.1/service-"};
		registrations[i].url[strlen(registrations[i].url)] = (char)('a' + i);
		check_int(registry_failed(&registrations[i]), TW_KEYED_DONE);
	}
}

static void released(const struct registration *registration, enum tw_keyed_end end, int tries)
{
	check_int(registration->released, 1);
	check_int((int)registration->end, (int)end);
	check_int(registration->tries, tries);
}

static void pass(struct fixture *fixture, int seconds)
{
	for (int i = 0; i < 10 * seconds; i++)
		fixture_advance(fixture, NS_PER_S / 10);
}

static void registry_close(struct fixture *fixture)
{
	fixture_stop(fixture);
	check_int(tw_keyed_count(registry.failed), 0);
	check_int(tw_keyed_destroy(registry.failed), 0);
	fixture_close(fixture);
}

/*
 * An outage of 12 s. A URL that fails again must not be added again. One URL is unregistered
 * between two tries, one during its second try, and one is replaced. All others must be registered
 * with their third try.
 */
Test(uses_registry, registry_with_an_outage)
{
	static struct registration registrations[URLS], again, other;
	struct fixture fixture;

	registry_open(&fixture, NULL, registrations);
	again = registrations[0];
	check_int(registry_failed(&again), TW_KEYED_PRESENT);
	check_int(tw_engine_pending(fixture.engine), URLS);

	pass(&fixture, 6);
	check_int(registry_unregister(&registrations[1]), TW_KEYED_DONE);
	released(&registrations[1], TW_KEYED_END_CANCELLED, 1);
	check_int(registry_unregister(&registrations[1]), TW_KEYED_ABSENT);

	registry.unregistered_inside = registrations[2].url;
	pass(&fixture, 5);
	released(&registrations[2], TW_KEYED_END_CANCELLED, 2);

	other = registrations[3];
	other.tries = 0;
	check_int(tw_keyed_replace(registry.failed, other.url, strlen(other.url), RETRY_NS, &retry,
				   &other, NULL),
		  TW_KEYED_REPLACED);
	released(&registrations[3], TW_KEYED_END_REPLACED, 2);
	check_int(tw_keyed_count(registry.failed), URLS - 2);

	registry.up = true;
	pass(&fixture, 6);
	released(&registrations[0], TW_KEYED_END_FIRED, 3);
	released(&registrations[4], TW_KEYED_END_FIRED, 3);
	released(&registrations[5], TW_KEYED_END_FIRED, 3);
	released(&other, TW_KEYED_END_FIRED, 1);
	check_int(registry.registered, URLS - 2);
	check_int(again.released, 0);
	check_int(tw_keyed_count(registry.failed), 0);
	check_int(tw_engine_pending(fixture.engine), 0);

	/* Each key must be free again. */
	registry.up = false;
	for (int i = 0; i < URLS; i++) {
		registrations[i].released = registrations[i].tries = 0;
		check_int(registry_failed(&registrations[i]), TW_KEYED_DONE);
	}
	registry_close(&fixture);
	for (int i = 0; i < URLS; i++)
		released(&registrations[i], TW_KEYED_END_STOPPED, 0);
}

/* Rejects everything. The engine drops the rejected timeouts. */
static size_t reject(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	(void)due;
	(void)count;
	return 0;
}

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg)
{
	(void)self;
	(void)arg;
	*(int *)context += tw_keyed_owns(kind);
}

Test(uses_registry, registry_whose_executor_is_full)
{
	struct tw_options options = fixture_options();
	static int dropped;
	static struct registration registrations[URLS];
	struct fixture fixture;

	options.dispatch = reject;
	options.rejection = TW_REJECTION_DROP;
	options.on_drop = on_drop;
	options.drop_context = &dropped;
	registry_open(&fixture, &options, registrations);
	pass(&fixture, 6);
	for (int i = 0; i < URLS; i++)
		released(&registrations[i], TW_KEYED_END_DROPPED, 0);
	check_int(dropped, URLS);
	check_int(tw_keyed_count(registry.failed), 0);
	check_int(registry_failed(&registrations[0]), TW_KEYED_DONE);
	check_int(registry_unregister(&registrations[0]), TW_KEYED_DONE);
	registry_close(&fixture);
}
