/* SPDX-License-Identifier: MIT */
/*
 * Periodic timeouts as servers use them, in virtual time: heartbeats, reconnects with blocking
 * work, and the JDK's two rules for repeated tasks.
 *
 * Seen to fail with these defects: a delay counts from the start of a run; with TW_MISSED_BURST,
 * points are left out; the first run comes only after a whole period; a run comes in spite of a
 * cancel (heartbeat); a run begins before the previous one has ended (reconnect).
 */
#include "../unit/periodic/periodic_scene.h"

#include <pthread.h>

/* A connection. While it is alive, it has a heartbeat. Otherwise blocking work tries to connect
 * it again. */
struct peer {
	struct fixture *fixture;
	struct gate gate;
	struct tw_handle heartbeat, reconnect;
	atomic_bool alive;
	atomic_int beats, tries, strangers;
	int64_t beat_due_ns[16];
	uint64_t seed;
	pthread_t thread;
};

static void on_reconnect(struct tw_handle self, void *arg);
static void on_beat(struct tw_handle self, void *arg);

static const struct tw_kind beat_kind = TW_KIND(on_beat, NULL);
static const struct tw_kind reconnect_kind = TW_KIND(on_reconnect, NULL);

static void heartbeat_begin(struct peer *peer)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_S);

	period.missed = TW_MISSED_SKIP;
	period.jitter_ppm = 100000;
	period.seed = peer->seed;
	if (tw_schedule_periodic(peer->fixture->engine, &period, &beat_kind, peer,
				 &peer->heartbeat) != 0)
		atomic_fetch_add(&peer->strangers, 1);
}

static void reconnect_begin(struct peer *peer)
{
	struct tw_period period = TW_PERIOD_DELAY(NS_PER_S / 2);

	period.first_ns = 0;
	if (tw_schedule_periodic(peer->fixture->engine, &period, &reconnect_kind, peer,
				 &peer->reconnect) != 0)
		atomic_fetch_add(&peer->strangers, 1);
}

static void on_beat(struct tw_handle self, void *arg)
{
	struct tw_timeout seen = {.size = sizeof(seen)};
	struct peer *peer = arg;

	if (!same_handle(self, peer->heartbeat) || tw_timeout_get(self, &seen) != 0)
		atomic_fetch_add(&peer->strangers, 1);
	if (peer->alive) {
		peer->beat_due_ns[atomic_fetch_add(&peer->beats, 1) % 16] = seen.deadline_ns;
		return;
	}
	if (tw_cancel(self) != TW_CANCEL_STOPPED)
		atomic_fetch_add(&peer->strangers, 1);
	reconnect_begin(peer);
}

/* Blocks until the test opens the gate. The first two tries fail. */
static void on_reconnect(struct tw_handle self, void *arg)
{
	struct peer *peer = arg;
	int tries = atomic_fetch_add(&peer->tries, 1) + 1;

	sem_post(&peer->gate.entered);
	while (sem_wait(&peer->gate.leave) != 0)
		;
	if (tries < 3)
		return;
	if (tw_cancel(self) != TW_CANCEL_STOPPED)
		atomic_fetch_add(&peer->strangers, 1);
	peer->alive = true;
	heartbeat_begin(peer);
}

static void *reconnect_main(void *argument)
{
	struct tw_due *due = argument;

	return tw_due_run(due) == 0 ? due->arg : NULL;
}

/* Beats are short, so the hook leaves them to the worker. A reconnect blocks, so it gets a
 * thread. */
static struct tw_due blocking;

static size_t peers_dispatch(void *context, const struct tw_due *due, size_t count)
{
	struct peer *peer = due->arg;

	(void)context;
	(void)count;
	if (due->kind != &reconnect_kind)
		return 0;
	blocking = *due;
	if (pthread_create(&peer->thread, NULL, reconnect_main, &blocking) != 0)
		return 0;
	return 1;
}

static void reconnect_await(struct peer *peer)
{
	void *result = NULL;

	gate_open(&peer->gate);
	check_int(pthread_join(peer->thread, &result), 0);
	check_true(result == peer);
	fixture_flush(peer->fixture);
}

enum { PEERS = 4 };

static void check_beats(const struct peer *peer, int from, int count)
{
	check_int(peer->beats, count);
	check_int(peer->strangers, 0);
	/* Each beat must be on the grid of one second, up to a tenth of a second later. */
	for (int beat = from; beat < count; beat++) {
		check_at_least(peer->beat_due_ns[beat], (beat + 1) * NS_PER_S);
		check_at_most(peer->beat_due_ns[beat], (beat + 1) * NS_PER_S + NS_PER_S / 10);
	}
}

static void peers_open(struct fixture *fixture, struct peer *peer)
{
	struct tw_options options = fixture_options();

	options.dispatch = peers_dispatch;
	fixture_open(fixture, &options);
	for (int i = 0; i < PEERS; i++) {
		peer[i] = (struct peer){.fixture = fixture, .alive = true, .seed = (uint64_t)i + 1};
		gate_init(&peer[i].gate);
		heartbeat_begin(&peer[i]);
	}
}

/* Moves the clock in coarse steps, because the test does not check the lateness of a beat. */
static void stride_to(struct fixture *fixture, int64_t ms)
{
	while (fixture->now_ns < ms * NS_PER_MS)
		fixture_advance(fixture, 20 * NS_PER_MS);
}

Test(uses_periodic, heartbeat_and_reconnect)
{
	static struct peer peer[PEERS];
	struct fixture fixture;

	peers_open(&fixture, peer);
	stride_to(&fixture, 5500);
	for (int i = 0; i < PEERS; i++)
		check_beats(&peer[i], 0, 5);
	check_true(peer[0].beat_due_ns[0] != peer[1].beat_due_ns[0]);

	/* The first connection is lost, and its reconnect blocks a thread for two seconds. */
	peer[0].alive = false;
	stride_to(&fixture, 6500);
	gate_await(&peer[0].gate);
	stride_to(&fixture, 8500);
	check_int(peer[0].tries, 1);
	check_int(peer[0].beats, 5);
	for (int i = 1; i < PEERS; i++)
		check_beats(&peer[i], 0, 8);

	/* The previous try ends now. The next one must come half a second later. */
	for (int try = 2; try <= 3; try++) {
		reconnect_await(&peer[0]);
		fixture_advance(&fixture, NS_PER_S / 2);
		check_int(peer[0].tries, try - 1);
		fixture_advance(&fixture, NS_PER_MS);
		gate_await(&peer[0].gate);
		check_int(peer[0].tries, try);
	}
	reconnect_await(&peer[0]);
	check_int(tw_timeout_state(peer[0].reconnect), TW_STATE_CANCELLED);
	check_int(tw_engine_pending(fixture.engine), PEERS);
	stride_to(&fixture, 12700);
	check_int(peer[0].tries, 3);
	/* The heartbeat began again at 9,502 ms, so there are three more beats. */
	check_int(peer[0].beats, 5 + 3);
	for (int i = 1; i < PEERS; i++)
		check_beats(&peer[i], 0, 12);

	for (int i = 0; i < PEERS; i++)
		check_int(tw_cancel(peer[i].heartbeat), TW_CANCEL_DONE);
	stride_to(&fixture, 15000);
	check_beats(&peer[1], 0, 12);
	check_int(peer[0].beats, 8);
	fixture_close(&fixture);
	check_int(fixture.back.count, 0);
}

Test(uses_periodic, jdk_schedule_at_fixed_rate)
{
	struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	struct fixture fixture;
	struct log log;

	period.first_ns = 5 * NS_PER_MS;
	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	log.takes_ns = 35 * NS_PER_MS;
	log.long_run = 1;
	must_repeat(&fixture, &period, &log);
	/* Runs are due after the initial delay, then after initial delay + period. The second
	 * run takes longer than a period. */
	step_to(&fixture, 15);
	check_int(log.count, 1);
	fixture_advance_to(&fixture, 16 * NS_PER_MS);
	fixture.now_ns = 51 * NS_PER_MS;
	fixture_flush(&fixture);
	/* The missed runs come late, one after the other. They are still due at initial delay +
	 * n x period. */
	check_int(log.count, 5);
	for (int run = 2; run < 5; run++)
		check_int(log.ran_ns[run], 51 * NS_PER_MS);
	step_to(&fixture, 106);
	check_int(log.count, 11);
	for (int run = 0; run < 11; run++)
		check_due_ms(&log, run, 5 + run * 10);
	fixture_close(&fixture);
}

Test(uses_periodic, jdk_schedule_with_fixed_delay)
{
	struct tw_period period = TW_PERIOD_DELAY(10 * NS_PER_MS);
	struct fixture fixture;
	struct log log;
	int64_t ran_ms = 5 + 1;

	period.first_ns = 5 * NS_PER_MS;
	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	log.takes_ns = 4 * NS_PER_MS;
	must_repeat(&fixture, &period, &log);
	/* The delay counts from the end of one run to the start of the next. Missed runs are not
	 * made up for. */
	for (int run = 0; run < 10; run++) {
		fixture_advance_to(&fixture, (ran_ms - 1) * NS_PER_MS);
		check_int(log.count, run);
		ran_ms += run % 3 == 2 ? 25 : 0;
		fixture_advance_to(&fixture, ran_ms * NS_PER_MS);
		check_int(log.count, run + 1);
		check_int(log.ran_ns[run], ran_ms * NS_PER_MS);
		ran_ms += 4 + 10 + 1;
	}
	fixture_close(&fixture);
}
