/* SPDX-License-Identifier: MIT */
/* Heartbeats at a fixed rate, and probes that become rarer while
 * the peer does not answer. */
#include "check.h"

struct peer {
	struct tw_handle heartbeat;
	int64_t wait_ns;
	int beats;
	bool answers;
};

static void on_heartbeat(struct tw_handle self, void *arg)
{
	struct peer *peer = arg;

	(void)self;
	peer->beats++;
}

/* example: tw_schedule_periodic */
static const struct tw_kind heartbeat = TW_KIND(on_heartbeat, NULL);

/* Sends a heartbeat each 5 s, until the handle is cancelled. */
static int peer_watch(struct tw_engine *engine, struct peer *peer)
{
	struct tw_period period = TW_PERIOD_RATE(TW_S(5));

	period.missed = TW_MISSED_SKIP;
	return tw_schedule_periodic(engine, &period, &heartbeat,
				    peer, &peer->heartbeat);
}
/* end */

/* example: tw_period_next */
/* The callback of a chain. While there is no answer, each interval
 * is twice as long as the last. */
static void on_probe(struct tw_handle self, void *arg)
{
	struct peer *peer = arg;
	int code;

	peer->wait_ns = peer->answers ? TW_S(1) : 2 * peer->wait_ns;
	code = tw_period_next(self, peer->wait_ns);
	if (code < 0)
		fprintf(stderr, "probe: %s\n", tw_strerror(code));
}
/* end */

static const struct tw_kind probe = TW_KIND(on_probe, NULL);

/* example: tw_period_set */
/* Polls a peer. After an error it polls once a minute, until it is
 * scheduled anew. */
static void on_poll(struct tw_handle self, void *arg)
{
	struct peer *peer = arg;

	peer->beats++;
	if (!peer->answers)
		(void)tw_period_set(self, TW_MINUTES(1));
}
/* end */

static const struct tw_kind poll = TW_KIND(on_poll, NULL);

static void polls_show(struct bench *bench)
{
	static const struct tw_period each =
		TW_PERIOD_RATE(TW_S(1));
	struct peer peer = {.answers = true};

	CHECK(tw_schedule_periodic(bench->engine, &each, &poll,
				   &peer, &peer.heartbeat) == 0);
	for (int i = 0; i < 4; i++)
		bench_pass(bench, TW_S(1));
	CHECK(peer.beats == 3);
	peer.answers = false;
	for (int i = 0; i < 40; i++)
		bench_pass(bench, TW_S(1));
	CHECK(peer.beats == 4);
	for (int i = 0; i < 30; i++)
		bench_pass(bench, TW_S(1));
	CHECK(peer.beats == 5);
	CHECK(tw_cancel(peer.heartbeat) == TW_CANCEL_DONE);
}

static void heartbeats_show(struct bench *bench)
{
	struct peer peer = {0};

	CHECK(peer_watch(bench->engine, &peer) == 0);
	for (int i = 0; i < 21; i++)
		bench_pass(bench, TW_S(1));
	CHECK(peer.beats == 4);
	CHECK(tw_cancel(peer.heartbeat) == TW_CANCEL_DONE);
	bench_pass(bench, TW_S(10));
	CHECK(peer.beats == 4);
}

static void probes_show(struct bench *bench)
{
	struct tw_period period = TW_PERIOD_DELAY(TW_S(1));
	struct peer peer = {.wait_ns = TW_S(1)};
	struct tw_handle chain;

	CHECK(tw_schedule_periodic(bench->engine, &period, &probe,
				   &peer, &chain) == 0);
	for (int i = 0; i < 160; i++)
		bench_pass(bench, TW_MS(100));
	CHECK(peer.wait_ns ==
	      TW_S(16)); /* about 1, 3, 7 and 15 s from the beginning */
	peer.answers = true;
	bench_pass(bench, TW_S(17));
	CHECK(peer.wait_ns == TW_S(1));
	CHECK(tw_cancel(chain) == TW_CANCEL_DONE);
}

int main(void)
{
	struct bench bench = bench_open(bench_options());

	heartbeats_show(&bench);
	polls_show(&bench);
	probes_show(&bench);
	bench_stop(&bench);
	bench_close(&bench);
	return 0;
}
