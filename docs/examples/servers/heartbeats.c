/* SPDX-License-Identifier: MIT */
/*
 * Heartbeats of 50,000 connections: each has one periodic timeout, from its accept to its close.
 * Every packet reschedules the timeout, so it expires only after silence. After 20 s of silence the
 * server asks the peer for a sign of life. After the third question without an answer, it treats
 * the peer as dead.
 *
 * The program simulates twenty minutes of the network in virtual time: peers talk, fall silent,
 * answer, and die.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <tickwheel.h>

enum { CONNECTIONS = 50000, SECONDS = 1200, SILENCE_S = 20, QUESTIONS = 3 };

struct connection {
	struct tw_handle heartbeat;
	int64_t dies_at_s; /* the peer dies then, without notice */
	unsigned unanswered;
	bool answer_comes;
	bool open;
};

static struct connection connections[CONNECTIONS];
static int64_t now_s;
static uint64_t packets, questions, detected, wrongly, latest_s, still_open;

static void on_packet(struct connection *connection)
{
	packets++;
	connection->unanswered = 0;
	/*
	 * The reschedule needs no new timeout and no cancel; it usually does only two stores. It
	 * cannot fail, because the connection is open.
	 */
	tw_reschedule(connection->heartbeat, TW_S(SILENCE_S));
}

static void on_silence(struct tw_handle self, void *arg)
{
	struct connection *connection = arg;

	(void)self;
	if (connection->unanswered == QUESTIONS) {
		/*
		 * A callback may cancel its own timeout. No further run begins, and `on_closed`
		 * follows.
		 */
		tw_cancel(connection->heartbeat);
		return;
	}
	connection->unanswered++;
	questions++;
	connection->answer_comes = now_s < connection->dies_at_s;
}

static void on_closed(void *arg, enum tw_end end)
{
	struct connection *connection = arg;
	uint64_t took_s = (uint64_t)(now_s - connection->dies_at_s);

	connection->open = false;
	if (end == TW_END_UNEXPIRED) {
		still_open++;
		return;
	}
	if (connection->dies_at_s > now_s) {
		wrongly++;
		return;
	}
	detected++;
	latest_s = took_s > latest_s ? took_s : latest_s;
}

static const struct tw_kind heartbeat = TW_KIND(on_silence, on_closed);

/* A random number; the sequence is the same in each run of the program. */
static uint64_t dice(void)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return state >> 33;
}

static int accept_all(struct tw_engine *engine)
{
	const struct tw_period silence = TW_PERIOD_DELAY(TW_S(SILENCE_S));

	for (int i = 0; i < CONNECTIONS; i++) {
		struct connection *connection = &connections[i];
		bool lives = dice() % 4 != 0;

		connection->open = true;
		connection->dies_at_s = lives ? INT64_MAX : (int64_t)(dice() % (SECONDS - 120));
		if (tw_schedule_periodic(engine, &silence, &heartbeat, connection,
					 &connection->heartbeat) != 0)
			return -1;
	}
	return 0;
}

/* Plays the packets of one second: answers to questions, and packets that peers send by
 * themselves. */
static void second_play(void)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		struct connection *connection = &connections[i];
		bool alive = connection->open && now_s < connection->dies_at_s;

		if (alive && (connection->answer_comes || dice() % 30 == 0))
			on_packet(connection);
		connection->answer_comes = false;
	}
}

int main(void)
{
	uint64_t died = 0;
	struct tw_options options;
	struct tw_engine *engine;
	struct tw_clock *clock;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_clock_create_virtual(0, &clock) != 0)
		return 1;
	options.clock = clock;
	if (tw_engine_create(&options, &engine) != 0 || accept_all(engine) != 0)
		return 1;
	for (now_s = 1; now_s <= SECONDS; now_s++) {
		tw_clock_set(clock, TW_S(now_s));
		tw_engine_poll(engine, 0);
		second_play();
	}
	for (int i = 0; i < CONNECTIONS; i++)
		died += connections[i].dies_at_s != INT64_MAX;
	/* The server ends. The stop hands back the timeouts of open connections; on_closed runs
	 * once for each. */
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	printf("%" PRIu64 " packets, %" PRIu64 " questions\n", packets, questions);
	printf("%" PRIu64 " died, %" PRIu64 " noticed after %" PRIu64 " s at most, %" PRIu64
	       " wrongly, %" PRIu64 " open\n",
	       died, detected, latest_s, wrongly, still_open);
	tw_engine_destroy(engine);
	tw_clock_destroy(clock);
	return died == detected && wrongly == 0 && still_open + detected == CONNECTIONS ? 0 : 1;
}
