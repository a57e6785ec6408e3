/* SPDX-License-Identifier: MIT */
/*
 * Typical uses of single timeouts in servers, in virtual time: the timeout of a request, of an idle
 * connection, and of an election; an event loop without a thread; and a test in virtual time.
 *
 * Seen to fail with these defects: a cancel reports done for an expired timeout; a stale handle
 * cancels the timeout that now has its memory; a reschedule does not replace the earlier deadline;
 * an election does not wait as long as its callback has chosen; a loop gets its next due time a
 * tick too late or too early.
 */
#include "footprint.h"
#include "probe.h"
#include "random.h"
#include "slowdown.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

enum { REQUESTS = 1000, LOST_EVERY = 100, LOST = REQUESTS / LOST_EVERY };

/* A call that waits for its answer. Either the thread with the answer or the timeout ends it,
 * whichever comes first. */
struct request {
	struct tw_handle handle;
	atomic_int answered, timed_out;
	int64_t ended_ns;
	struct fixture *fixture;
};

static struct request requests[REQUESTS];

static void on_timed_out(struct tw_handle self, void *arg)
{
	struct request *request = arg;

	(void)self;
	request->ended_ns = tw_engine_now(request->fixture->engine);
	atomic_fetch_add(&request->timed_out, 1);
}

static const struct tw_kind request_kind = TW_KIND(on_timed_out, NULL);

/* The answers that a network thread receives: those of every LOST_EVERY-th request if `late` is
 * set, otherwise those of all other requests. */
struct answers {
	bool late;
	int outcomes[5]; /* how often cancel returned each result */
};

static void *answers_main(void *argument)
{
	struct answers *answers = argument;

	for (int i = 0; i < REQUESTS; i++) {
		int found;

		if ((i % LOST_EVERY == 0) != answers->late)
			continue;
		found = tw_cancel(requests[i].handle);
		if (found >= 0 && found < 5)
			answers->outcomes[found]++;
		if (found == TW_CANCEL_DONE)
			atomic_fetch_add(&requests[i].answered, 1);
	}
	return NULL;
}

static struct answers answers_arrive(bool late)
{
	struct answers answers = {.late = late};
	pthread_t network;

	check_int(pthread_create(&network, NULL, answers_main, &answers), 0);
	check_int(pthread_join(network, NULL), 0);
	return answers;
}

static void requests_send(struct fixture *fixture)
{
	for (int i = 0; i < REQUESTS; i++) {
		requests[i] = (struct request){.fixture = fixture};
		check_int(tw_schedule(fixture->engine, NS_PER_S, &request_kind, &requests[i],
				      &requests[i].handle),
			  0);
	}
}

/* Cancels with the handles of ended timeouts. They must not affect the current requests. */
static void check_stale(struct fixture *fixture)
{
	static struct tw_handle old[REQUESTS];
	struct tw_handle again;

	for (int i = 0; i < REQUESTS; i++)
		old[i] = requests[i].handle;
	requests_send(fixture);
	for (int i = 0; i < REQUESTS; i++) {
		int found = tw_cancel(old[i]);

		check_true(found == TW_CANCEL_STALE || found == TW_CANCEL_CANCELLED ||
			   found == TW_CANCEL_EXPIRED);
	}
	check_int(tw_engine_pending(fixture->engine), REQUESTS);
	again = requests[REQUESTS - 1].handle;
	check_int(tw_cancel(again), TW_CANCEL_DONE);
	check_true(make_stale(fixture, again));
	check_int(tw_cancel(again), TW_CANCEL_STALE);
	check_int(tw_engine_pending(fixture->engine), REQUESTS - 1);
}

/*
 * There are a thousand requests, each with a timeout of a second. After 300 ms another thread
 * answers all but ten of them.
 */
Test(uses, request_timeout_ends_unanswered_requests_only)
{
	struct answers answers;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	requests_send(&fixture);
	fixture_advance(&fixture, 300 * NS_PER_MS);
	answers = answers_arrive(false);
	check_int(answers.outcomes[TW_CANCEL_DONE], REQUESTS - LOST);
	check_int(tw_engine_pending(fixture.engine), LOST);
	fixture_advance_to(&fixture, NS_PER_S);
	check_int(requests[0].timed_out, 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_engine_pending(fixture.engine), 0);
	answers = answers_arrive(true);
	check_int(answers.outcomes[TW_CANCEL_EXPIRED], LOST);
	for (int i = 0; i < REQUESTS; i++) {
		check_int(requests[i].timed_out, i % LOST_EVERY == 0);
		check_int(requests[i].answered, i % LOST_EVERY != 0);
		if (i % LOST_EVERY == 0)
			check_int(requests[i].ended_ns, NS_PER_S + NS_PER_MS);
	}
	check_stale(&fixture);
	fixture_close(&fixture);
}

enum { CONNECTIONS = 100, PACKETS = 360, SILENT_FROM = PACKETS / 2 };

#define IDLE_NS (60 * NS_PER_S)
#define PACKET_NS (10 * NS_PER_S)

/*
 * In an hour, each connection must be closed a minute after its last packet. Each packet moves the
 * deadline of the connection's one timeout. After half an hour every second connection falls
 * silent.
 */
Test(uses, idle_timeout_fires_a_minute_after_the_last_packet)
{
	static struct probe probe[CONNECTIONS];
	static struct tw_handle handle[CONNECTIONS];
	struct fixture fixture;
	struct tw_stats before;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < CONNECTIONS; i++)
		handle[i] = probe_schedule(&fixture, &probe[i], IDLE_NS);
	fixture_flush(&fixture);
	before = stats_of(fixture.engine);
	for (int packet = 1; packet <= PACKETS; packet++) {
		fixture_advance(&fixture, PACKET_NS);
		for (int i = 0; i < CONNECTIONS; i++)
			if (i % 2 == 0 || packet <= SILENT_FROM)
				check_int(tw_reschedule(handle[i], IDLE_NS), TW_RESCHEDULE_DONE);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		check_int(probe[i].runs, i % 2);
		if (i % 2 == 1)
			check_int(probe[i].ran_at_ns,
				  SILENT_FROM * PACKET_NS + IDLE_NS + PACKET_NS);
	}
	/* The 27,000 packets must cause no cancel, no new timeout and no entry in ingress. */
	check_int(stats_of(fixture.engine).scheduled, before.scheduled);
	check_int(stats_of(fixture.engine).cancelled, 0);
	check_int(stats_of(fixture.engine).transferred, before.transferred);
	fixture_close(&fixture);
}

/* Checks one connection to the tick: only the last of its packets must count. */
Test(uses, idle_timeout_to_the_tick)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, 100 * NS_PER_MS);
	for (int packet = 0; packet < 1000; packet++) {
		fixture_advance(&fixture, 7 * NS_PER_MS);
		check_int(tw_reschedule(handle, 100 * NS_PER_MS), TW_RESCHEDULE_DONE);
	}
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_int(probe.runs, 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(tw_reschedule(handle, 100 * NS_PER_MS), TW_RESCHEDULE_EXPIRED);
	fixture_close(&fixture);
}

enum { NODES = 3, ELECTIONS_NOTED = 16 };

#define STEP_NS (5 * NS_PER_MS)

/* A follower that begins an election when it has heard nothing of the leader for one to two
 * seconds. */
struct node {
	struct fixture *fixture;
	struct tw_handle handle;
	struct random random;
	int elections;
	int64_t at_ns[ELECTIONS_NOTED];
};

static int64_t election_ns(struct node *node)
{
	return NS_PER_S + (int64_t)random_below(&node->random, (uint64_t)NS_PER_S);
}

static void on_election(struct tw_handle self, void *arg)
{
	struct node *node = arg;

	if (node->elections < ELECTIONS_NOTED)
		node->at_ns[node->elections] = tw_engine_now(node->fixture->engine);
	node->elections++;
	(void)tw_period_next(self, election_ns(node));
}

static const struct tw_kind election_kind = TW_KIND(on_election, NULL);

static void node_begin(struct node *node, struct fixture *fixture, uint64_t seed)
{
	struct tw_period period = TW_PERIOD_DELAY(NS_PER_S);

	*node = (struct node){.fixture = fixture, .random = {seed}};
	period.first_ns = election_ns(node);
	check_int(
		tw_schedule_periodic(fixture->engine, &period, &election_kind, node, &node->handle),
		0);
}

/*
 * Checks that the first election comes one to two seconds after `since_ns`, each later one as long
 * after the previous one, and that the waits differ.
 */
static void check_elections(const struct node *node, int64_t since_ns)
{
	check_true(node->at_ns[2] - node->at_ns[1] != node->at_ns[3] - node->at_ns[2]);
	check_at_least(node->elections, 4);
	for (int i = 0; i < node->elections && i < ELECTIONS_NOTED; i++) {
		check_at_least(node->at_ns[i] - since_ns, NS_PER_S);
		check_at_most(node->at_ns[i] - since_ns, 2 * NS_PER_S + STEP_NS);
		since_ns = node->at_ns[i];
	}
}

/* The leader sends ten heartbeats a second for ten seconds. Then it is silent for ten seconds,
 * and no node wins the election. */
Test(uses, election_timeout_fires_only_if_the_leader_is_silent)
{
	struct node node[NODES];
	struct fixture fixture;
	int64_t heard_ns;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < NODES; i++)
		node_begin(&node[i], &fixture, (uint64_t)i + 1);
	for (int beat = 0; beat < 100; beat++) {
		fixture_advance(&fixture, NS_PER_S / 10);
		for (int i = 0; i < NODES; i++)
			check_int(tw_reschedule(node[i].handle, election_ns(&node[i])),
				  TW_RESCHEDULE_DONE);
	}
	heard_ns = fixture.now_ns;
	for (int i = 0; i < NODES; i++)
		check_int(node[i].elections, 0);
	while (fixture.now_ns < heard_ns + 10 * NS_PER_S)
		fixture_advance(&fixture, STEP_NS);
	for (int i = 0; i < NODES; i++) {
		check_elections(&node[i], heard_ns);
		check_true(node[i].at_ns[0] != node[(i + 1) % NODES].at_ns[0]);
	}
	fixture_close(&fixture);
}

static void loop_open(struct fixture *fixture)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(fixture, &options);
	check_int(tw_engine_start(fixture->engine), 0);
}

enum { TIMEOUTS = 200 };

/* Schedules timeouts at random times within ten seconds. Returns how many different ticks they
 * have. */
static int timeouts_schedule(struct fixture *fixture, struct probe probe[TIMEOUTS],
			     int64_t due_ns[TIMEOUTS])
{
	static bool taken[10001];
	struct random random = {5};
	int ticks = 0;

	memset(taken, 0, sizeof taken);
	for (int i = 0; i < TIMEOUTS; i++) {
		int64_t ms = (int64_t)random_below(&random, 10000);

		ticks += !taken[ms];
		taken[ms] = true;
		due_ns[i] = (ms + 1) * NS_PER_MS;
		/* The loop wakes up at a tick boundary, so the deadline is just after one. */
		(void)probe_schedule(fixture, &probe[i], ms * NS_PER_MS + 1);
	}
	return ticks;
}

/* The loop asks for the next due time, sleeps until then, and polls. It must wake up only when
 * timeouts are due. The engine must have no thread. */
Test(uses, event_loop_that_asks_wakes_up_only_for_due_timeouts)
{
	static struct probe probe[TIMEOUTS];
	static int64_t due_ns[TIMEOUTS];
	long long threads = footprint_entries("/proc/self/task");
	int ticks, wakes = 0;
	struct fixture fixture;
	int64_t next_ns;

	loop_open(&fixture);
	ticks = timeouts_schedule(&fixture, probe, due_ns);
	check_int(footprint_entries("/proc/self/task"), threads);
	while ((next_ns = tw_engine_next_due(fixture.engine)) != TW_NEVER) {
		check_at_least(next_ns, fixture.now_ns);
		fixture.now_ns = next_ns;
		check_int(tw_clock_set(fixture.clock, next_ns), 0);
		wakes++;
		check_at_least(tw_engine_poll(fixture.engine, 0), 1);
	}
	for (int i = 0; i < TIMEOUTS; i++)
		check_int(probe[i].ran_at_ns, due_ns[i]);
	check_int(wakes, ticks);
	fixture_close(&fixture);
}

static bool readable(struct tw_engine *engine)
{
	struct pollfd fd = {.fd = (int)tw_engine_fd(engine), .events = POLLIN};

	check_at_least(fd.fd, 0);
	return poll(&fd, 1, 0) == 1;
}

/* Checks that exactly the due timeouts have run. */
static void check_ran(const struct probe *probe, const int64_t *due_ns, int64_t now_ns)
{
	int wrong = 0;

	for (int i = 0; i < TIMEOUTS; i++)
		wrong += probe[i].runs != (due_ns[i] <= now_ns);
	check_int(wrong, 0);
}

/* A poll(2) loop watches the engine's descriptor. The descriptor must be readable when a timeout
 * is due. */
Test(uses, descriptor_of_an_event_loop_is_readable_when_due)
{
	static struct probe probe[TIMEOUTS];
	static int64_t due_ns[TIMEOUTS];
	struct fixture fixture;

	loop_open(&fixture);
	(void)timeouts_schedule(&fixture, probe, due_ns);
	for (int64_t ms = 0; ms <= 2000; ms++) {
		check_int(tw_clock_set(fixture.clock, ms * NS_PER_MS), 0);
		fixture.now_ns = ms * NS_PER_MS;
		while (readable(fixture.engine))
			check_at_least(tw_engine_poll(fixture.engine, 0), 0);
		check_ran(probe, due_ns, fixture.now_ns);
	}
	fixture_close(&fixture);
}

/* A service in virtual time: half an hour with one request each second. Each request needs an
 * answer within a tenth of a second. The time of the answer is random. */
struct service {
	struct fixture fixture;
	struct random random;
	uint64_t digest;
	int answered;
	atomic_int lost;
};

static void on_lost(struct tw_handle self, void *arg)
{
	struct service *service = arg;

	(void)self;
	service->digest = service->digest * 31 + (uint64_t)tw_engine_now(service->fixture.engine);
	atomic_fetch_add(&service->lost, 1);
}

static const struct tw_kind lost_kind = TW_KIND(on_lost, NULL);

static void service_pass(struct service *service, uint64_t seed, int seconds)
{
	*service = (struct service){.random = {seed}};
	fixture_open(&service->fixture, NULL);
	for (int second = 0; second < seconds; second++) {
		struct tw_handle handle =
			must_schedule(service->fixture.engine, NS_PER_S / 10, &lost_kind, service);
		int64_t after_ns = (int64_t)random_below(&service->random, 200) * NS_PER_MS;

		fixture_advance_to(&service->fixture, second * NS_PER_S + after_ns);
		service->answered += tw_cancel(handle) == TW_CANCEL_DONE;
		fixture_advance_to(&service->fixture, (second + 1) * NS_PER_S);
	}
	fixture_close(&service->fixture);
}

/* Runs the service twice and expects the same result. A run with other answer times must give
 * another result. */
Test(uses, service_in_virtual_time_gives_the_same_result_twice)
{
	static struct service service, same, other;
	int seconds = (int)slowed(1800);

	service_pass(&service, 1, seconds);
	check_int(service.answered + service.lost, seconds);
	check_at_least(service.lost, seconds / 3);
	check_at_most(service.lost, 2 * seconds / 3);
	service_pass(&same, 1, seconds);
	check_int(same.lost, service.lost);
	check_true(same.digest == service.digest);
	service_pass(&other, 2, seconds);
	check_true(other.digest != service.digest);
}
