/* SPDX-License-Identifier: MIT */
/*
 * Periodic timeouts as servers use them, and what other suites ask of theirs: heartbeat and reconnect
 * (Dubbo, JRaft), the JDK's two rules, JRaft's repeated timer, tokio's interval, wahern's grid.
 *
 * Seen to fail: a skip that goes on from now, a delay that goes on from the point, a burst whose turns do
 * not follow at once.
 */
#include "periodic_scene.h"

#include <pthread.h>

/* A connection that has a heartbeat while it lives, and else is made anew by work that blocks. */
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

/* Blocks, twice in vain. */
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

/* Beats are short, and run on the worker; what blocks gets a thread. */
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
	fixture_settle(peer->fixture);
}

enum { PEERS = 4 };

static void check_beats(const struct peer *peer, int from, int count)
{
	check_int(peer->beats, count);
	check_int(peer->strangers, 0);
	/* On the grid, and each up to a tenth later; not all by the same. */
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

/* A beat's lateness is not what is looked at. */
static void stride_to(struct fixture *fixture, int64_t ms)
{
	while (fixture->now_ns < ms * NS_PER_MS)
		fixture_advance(fixture, 20 * NS_PER_MS);
}

Test(periodic_uses, heartbeat_and_reconnect)
{
	static struct peer peer[PEERS];
	struct fixture fixture;

	peers_open(&fixture, peer);
	stride_to(&fixture, 5500);
	for (int i = 0; i < PEERS; i++)
		check_beats(&peer[i], 0, 5);
	check_true(peer[0].beat_due_ns[0] != peer[1].beat_due_ns[0]);

	/* The first one is lost, and its reconnect blocks a thread for two seconds. */
	peer[0].alive = false;
	stride_to(&fixture, 6500);
	gate_await(&peer[0].gate);
	stride_to(&fixture, 8500);
	check_int(peer[0].tries, 1);
	check_int(peer[0].beats, 5);
	for (int i = 1; i < PEERS; i++)
		check_beats(&peer[i], 0, 8);

	/* It is tried again half a second after the end, which was now. */
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
	/* Since 9502. */
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

Test(periodic_uses, jdk_schedule_at_fixed_rate)
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
	/* Initial delay, then initial delay + period; that one takes longer than a period. */
	step_to(&fixture, 15);
	check_int(log.count, 1);
	fixture_advance_to(&fixture, 16 * NS_PER_MS);
	fixture.now_ns = 51 * NS_PER_MS;
	fixture_settle(&fixture);
	/* Those after it are late, one after the other, and for initial delay + n x period still. */
	check_int(log.count, 5);
	for (int run = 2; run < 5; run++)
		check_int(log.ran_ns[run], 51 * NS_PER_MS);
	step_to(&fixture, 106);
	check_int(log.count, 11);
	for (int run = 0; run < 11; run++)
		check_due_ms(&log, run, 5 + run * 10);
	fixture_close(&fixture);
}

Test(periodic_uses, jdk_schedule_with_fixed_delay)
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
	/* The delay between the end of one and the begin of the next; late, nothing is made up for. */
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

/* tokio's interval, by its numbers: 300 ms, the first at once, and nobody looks from 300 to 950. */
static void tokio(struct fixture *fixture, struct log *log, uint32_t missed)
{
	struct tw_period period = TW_PERIOD_RATE(300 * NS_PER_MS);

	period.first_ns = 0;
	period.missed = missed;
	fixture_open(fixture, NULL);
	log_init(log, fixture);
	must_repeat(fixture, &period, log);
	fixture_advance_to(fixture, 1 * NS_PER_MS);
	check_int(log->count, 1);
	fixture_advance_to(fixture, 100 * NS_PER_MS);
	check_int(log->count, 1);
	fixture_advance_to(fixture, 301 * NS_PER_MS);
	check_int(log->count, 2);
	fixture_advance_to(fixture, 950 * NS_PER_MS);
	check_due_ms(log, 2, 600);
}

static void tokio_next(struct fixture *fixture, struct log *log, int64_t ms)
{
	int before = log->count;

	fixture_advance_to(fixture, ms * NS_PER_MS);
	check_int(log->count, before);
	fixture_advance(fixture, NS_PER_MS);
	check_int(log->count, before + 1);
	check_due_ms(log, before, ms);
}

Test(periodic_uses, tokio_burst)
{
	struct fixture fixture;
	struct log log;

	tokio(&fixture, &log, TW_MISSED_BURST);
	check_int(log.count, 4);
	check_due_ms(&log, 3, 900);
	tokio_next(&fixture, &log, 1200);
	tokio_next(&fixture, &log, 1500);
	fixture_close(&fixture);
}

Test(periodic_uses, tokio_delay)
{
	struct fixture fixture;
	struct log log;

	tokio(&fixture, &log, TW_MISSED_DELAY);
	check_int(log.count, 3);
	tokio_next(&fixture, &log, 1250);
	tokio_next(&fixture, &log, 1550);
	fixture_close(&fixture);
}

Test(periodic_uses, tokio_skip)
{
	struct fixture fixture;
	struct log log;

	tokio(&fixture, &log, TW_MISSED_SKIP);
	check_int(log.count, 3);
	tokio_next(&fixture, &log, 1200);
	tokio_next(&fixture, &log, 1500);
	fixture_close(&fixture);
}

enum { PRIMES = 10 };

struct prime {
	int64_t period_ns;
	struct tw_handle handle;
	struct log log;
};

static void primes_open(struct fixture *fixture, struct prime *prime, uint32_t missed)
{
	static const int number[PRIMES] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};

	fixture_open(fixture, NULL);
	for (int i = 0; i < PRIMES; i++) {
		struct tw_period period = TW_PERIOD_RATE(number[i] * NS_PER_MS);

		period.missed = missed;
		prime[i].period_ns = period.period_ns;
		log_init(&prime[i].log, fixture);
		prime[i].handle = must_repeat(fixture, &period, &prime[i].log);
	}
}

/* What is next is the first point that is not over, whatever was left out. */
static void prime_check(const struct prime *prime, int64_t now_ns, uint32_t missed)
{
	struct tw_timeout seen = {.size = sizeof(seen)};
	const struct log *log = &prime->log;

	check_int(tw_timeout_get(prime->handle, &seen), 0);
	check_int(seen.deadline_ns % prime->period_ns, 0);
	check_at_least(seen.deadline_ns, now_ns);
	check_at_most(seen.deadline_ns,
		      now_ns > 0 ? now_ns + prime->period_ns - 1 : prime->period_ns);
	if (log->count > 0)
		check_int(log->due_ns[(log->count - 1) % RUNS] % prime->period_ns, 0);
	if (missed == TW_MISSED_BURST)
		check_int(log->count, now_ns > 0 ? (now_ns - 1) / prime->period_ns : 0);
}

/* wahern's: the clock by jumps of any size, and primes. */
static void primes(uint32_t missed)
{
	static struct prime prime[PRIMES];
	uint64_t random = 12345;
	struct fixture fixture;

	primes_open(&fixture, prime, missed);
	while (fixture.now_ns < 1000 * NS_PER_MS) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
		fixture_advance(&fixture, (int64_t)(random >> 59) * NS_PER_MS);
		for (int i = 0; i < PRIMES; i++)
			prime_check(&prime[i], fixture.now_ns, missed);
	}
	fixture_close(&fixture);
}

Test(periodic_uses, primes_stay_on_the_grid)
{
	primes(TW_MISSED_BURST);
	primes(TW_MISSED_SKIP);
}

Test(periodic_uses, jraft_twenty_a_second)
{
	static const struct tw_period period = TW_PERIOD_RATE(50 * NS_PER_MS);
	struct fixture fixture;
	struct tw_handle handle;
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	handle = must_repeat(&fixture, &period, &log);
	step_to(&fixture, 1001);
	check_int(log.count, 20);
	/* Stop holds the count. */
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	step_to(&fixture, 2000);
	check_int(log.count, 20);
	fixture_close(&fixture);
}

Test(periodic_uses, jraft_reset_keeps_postponing)
{
	static const struct tw_period period = TW_PERIOD_RATE(100 * NS_PER_MS);
	struct fixture fixture;
	struct tw_handle handle;
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	handle = must_repeat(&fixture, &period, &log);
	for (int i = 0; i < 10; i++) {
		fixture_advance(&fixture, 80 * NS_PER_MS);
		check_int(tw_reschedule(handle, 100 * NS_PER_MS), TW_RESCHEDULE_DONE);
	}
	check_int(log.count, 0);
	/* At 800: from there on the grid is 900, 1000, ... */
	step_to(&fixture, 1201);
	check_int(log.count, 4);
	for (int run = 0; run < 4; run++)
		check_due_ms(&log, run, 900 + run * 100);
	fixture_close(&fixture);
}
