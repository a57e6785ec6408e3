/* SPDX-License-Identifier: MIT */
/*
 * Four threads make many calls to a server that answers some late and some never. How many calls
 * get which outcome depends on the machine. On each machine, each call must end once and be freed
 * once.
 *
 *     rpc-pool [CALLS]      calls of each thread: 5000
 *
 * Seen to fail: if a plain test and store replaces the compare-and-swap (in three of four runs); if
 * call_end does not cancel the timeout; if the finaliser does not drop its reference; if the reader
 * has no reference.
 *
 * Exit code: 0 if each call ended exactly once, none is left in memory, and each answer was right.
 */
#include "client.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, WINDOW = 64, DUELS = 20000, DUEL_S = 3 };
/* The lowest digit of a request says how its caller and the server treat it. */
enum plan { WAITS_FOR_EVER, NEVER_ANSWERED, CANCELLED, RACES };

static _Atomic uint64_t outcomes[4], wrong;

struct request {
	uint64_t value;
	atomic_int ends, outcome;
};

struct caller {
	pthread_t thread;
	struct client *client;
	struct request *requests;
	uint64_t calls;
	unsigned number;
};

static void on_ended(void *arg, enum outcome outcome, uint64_t answer)
{
	struct request *request = arg;

	request->outcome = (int)outcome;
	request->ends++;
	outcomes[outcome]++;
	wrong += outcome == CALL_ANSWERED && answer != ~request->value;
}

/* A random number; each thread has the same sequence in each run of the program. */
static uint64_t dice(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static int64_t limit_of(enum plan plan, uint64_t *state)
{
	if (plan == WAITS_FOR_EVER || plan == CANCELLED)
		return TW_NEVER;
	return TW_US(dice(state) % 3000);
}

/* Keeps a window of calls open. Cancels the oldest one if its plan says so, and releases it. */
static void *caller_run(void *arg)
{
	struct caller *caller = arg;
	struct call *open[WINDOW] = {NULL};
	uint64_t state = caller->number;

	for (uint64_t i = 0; i < caller->calls + WINDOW; i++) {
		struct call **slot = &open[i % WINDOW];
		struct request *request = &caller->requests[i];

		if (*slot != NULL) {
			enum plan plan = (enum plan)(request[-WINDOW].value % 4);

			if (plan == CANCELLED || (plan == RACES && dice(&state) % 2 != 0))
				call_cancel(*slot);
			call_release(*slot);
			*slot = NULL;
		}
		if (i >= caller->calls)
			continue;
		request->value = (i << 8 | caller->number) << 8 | dice(&state) % 4;
		if (client_call(caller->client, request->value,
				limit_of((enum plan)(request->value % 4), &state), on_ended,
				request, slot) != 0)
			wrong++;
	}
	return NULL;
}

static void answer_one(int fd, struct message *held, size_t *count, size_t which)
{
	struct message answer = {held[which].id, ~held[which].value};

	held[which] = held[--*count];
	(void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
}

/* The server: holds up to 100 requests, and answers one of them for each that comes. */
static void *far_end(void *arg)
{
	int fd = *(int *)arg;
	struct pollfd ready = {fd, POLLIN, 0};
	struct message held[100], request;
	size_t count = 0;
	uint64_t state = 1;

	for (;;) {
		if (poll(&ready, 1, 1) == 0 || count == 100) {
			while (count > 0)
				answer_one(fd, held, &count, dice(&state) % count);
			continue;
		}
		if (recv(fd, &request, sizeof(request), MSG_WAITALL) != sizeof(request))
			return NULL;
		if (request.value % 4 == NEVER_ANSWERED || request.value % 4 == CANCELLED)
			continue;
		held[count++] = request;
		if (count > 50)
			answer_one(fd, held, &count, dice(&state) % count);
	}
}

/* Whatever the races did, the call must have ended once, by an outcome that its plan allows. */
static void request_check(const struct request *request)
{
	enum plan plan = (enum plan)(request->value % 4);

	wrong += request->ends != 1;
	wrong += plan == NEVER_ANSWERED && request->outcome == CALL_ANSWERED;
	wrong += plan == CANCELLED && request->outcome != CALL_CANCELLED;
	wrong += plan == WAITS_FOR_EVER && request->outcome == CALL_TIMED_OUT;
}

static void callers_start(struct caller *callers, struct client *client, uint64_t calls)
{
	for (unsigned i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){.client = client, .calls = calls, .number = i};
		callers[i].requests = calloc(calls + WINDOW, sizeof(struct request));
		if (callers[i].requests == NULL ||
		    pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]) != 0)
			abort();
	}
}

static void callers_check(struct caller *callers)
{
	for (unsigned i = 0; i < THREADS; i++) {
		for (uint64_t j = 0; j < callers[i].calls; j++)
			request_check(&callers[i].requests[j]);
		free(callers[i].requests);
	}
}

static _Atomic(struct call *) duel_call;
static atomic_bool duel_begins;

/* Spins first, because on a busy machine a thread that yields does not run again for
 * milliseconds. */
static void duel_pause(unsigned *spins)
{
	if (++*spins % 65536 == 0)
		sched_yield();
}

/* The second thread of the duels. `duel_call` is the call to cancel, NULL between two duels, and
 * the client's address at the end. */
static void *duel_second(void *arg)
{
	struct call *call;
	uint64_t state = 1;
	unsigned spins = 0;

	while ((call = duel_call) != arg) {
		if (call == NULL) {
			duel_pause(&spins);
			continue;
		}
		duel_begins = true;
		for (uint64_t i = dice(&state) % 200; i > 0; i--)
			atomic_signal_fence(memory_order_seq_cst);
		call_cancel(call);
		duel_call = NULL;
	}
	return NULL;
}

/* Lets two threads cancel the same call at the same moment, many times; fewer times if that takes
 * long. */
static void duel_run(struct client *client)
{
	static struct request requests[DUELS];
	struct call *call;
	pthread_t second;
	unsigned spins = 0;
	time_t end = time(NULL) + DUEL_S;

	if (pthread_create(&second, NULL, duel_second, client) != 0)
		abort();
	for (int i = 0; i < DUELS && time(NULL) < end; i++) {
		requests[i].value = CANCELLED;
		if (client_call(client, CANCELLED, TW_NEVER, on_ended, &requests[i], &call) != 0)
			abort();
		duel_begins = false;
		duel_call = call;
		while (!duel_begins)
			duel_pause(&spins);
		call_cancel(call);
		while (duel_call != NULL)
			duel_pause(&spins);
		call_release(call);
		request_check(&requests[i]);
	}
	duel_call = (struct call *)client;
	pthread_join(second, NULL);
}

static int run(struct tw_engine *engine, uint64_t calls, int *ends)
{
	static struct caller callers[THREADS];
	struct client *client = client_create(engine, ends[0]);
	pthread_t other;

	if (client == NULL || pthread_create(&other, NULL, far_end, &ends[1]) != 0)
		return 2;
	callers_start(callers, client, calls);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(callers[i].thread, NULL);
	duel_run(client);
	/* Cancels the calls that are still open. */
	client_destroy(client);
	pthread_join(other, NULL);
	close(ends[1]);
	callers_check(callers);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000;
	struct tw_engine *engine;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
	    tw_engine_create(NULL, &engine) != 0 || run(engine, calls, ends) != 0)
		return 2;
	fprintf(stderr, "%" PRIu64 " answered, %" PRIu64 " timed out, %" PRIu64 " cancelled\n",
		outcomes[CALL_ANSWERED], outcomes[CALL_TIMED_OUT], outcomes[CALL_CANCELLED]);
	printf("%" PRIu64 " calls, %" PRIu64 " wrong, %" PRId64 " not freed\n", THREADS * calls,
	       wrong, calls_alive());
	if (tw_engine_stop(engine, NULL, NULL, TW_NEVER) != 0 || tw_engine_destroy(engine) != 0)
		return 2;
	return wrong != 0 || calls_alive() != 0;
}
