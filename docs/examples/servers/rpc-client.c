/* SPDX-License-Identifier: MIT */
/*
 * A client of two replicas over TCP, in one thread with an event loop. Each call has a time limit.
 * If the first replica is slow, the call is also sent to the other one (hedged). If no answer comes
 * within the time limit, the call is tried again. A call is a task of a queue of retries. The
 * answer or the time limit completes its attempt. If both come, the second completion returns
 * -ESTALE. The client then asks a replica that has not answered to drop the call.
 */
#include "rpc-replica.h"

#include <poll.h>
#include <stdio.h>
#include <tickwheel.h>

static struct call {
	struct tw_retry_handle attempt;
	struct tw_handle hedge, limit;
	unsigned asked; /* a bit for each replica */
} calls[CALLS];
static struct replica replicas[REPLICAS] = {{.number = 0}, {.number = 1}};
static unsigned hedged, repeated, answered, given_up;

/* A failed send is ignored. If no answer comes, the hedge or the time limit ends the wait. */
static void call_send(struct call *call, uint32_t replica, uint32_t what)
{
	struct message message = {(uint32_t)(call - calls), what};

	(void)!send(replicas[replica].client, &message, sizeof(message), MSG_NOSIGNAL);
	call->asked &= ~(1U << replica);
	call->asked |= (what == REQUEST ? 1U : 0U) << replica;
}

/*
 * Ends an attempt: cancels its timers, and asks each replica that has not answered to drop the
 * call.
 */
static void attempt_end(struct call *call)
{
	tw_cancel(call->hedge);
	tw_cancel(call->limit);
	for (uint32_t i = 0; i < REPLICAS; i++)
		if ((call->asked >> i & 1) != 0)
			call_send(call, i, DROP);
}

static void on_hedge(struct tw_handle self, void *arg)
{
	struct call *call = arg;

	(void)self;
	hedged++;
	call_send(call, (uint32_t)(call - calls + 1) % REPLICAS, REQUEST);
}

static void on_limit(struct tw_handle self, void *arg)
{
	struct call *call = arg;

	(void)self;
	attempt_end(call);
	tw_retry_complete(call->attempt, TW_RETRY_AGAIN);
}

static const struct tw_kind hedge = TW_KIND(on_hedge, NULL), limit = TW_KIND(on_limit, NULL);

static int call_try(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct call *call = arg;
	struct tw_run run = {.size = sizeof(run)};

	repeated += attempt > 1;
	call->attempt = self;
	call_send(call, (uint32_t)(call - calls) % REPLICAS, REQUEST);
	if (tw_run_get(&run) != 0 ||
	    tw_schedule(run.engine, TW_MS(50), &hedge, call, &call->hedge) != 0 ||
	    tw_schedule(run.engine, TW_MS(500), &limit, call, &call->limit) != 0)
		return TW_RETRY_GIVE_UP;
	return TW_RETRY_PENDING;
}

static void call_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	(void)attempts;
	attempt_end(arg);
	*(end == TW_RETRY_END_DONE ? &answered : &given_up) += 1;
}

static const struct tw_retry_schedule backoff =
	TW_RETRY_EXPONENTIAL(TW_MS(20), TW_MS(100), 200, TW_RETRY_JITTER_EQUAL);
static const struct tw_retry_kind call_kind = TW_RETRY_KIND(call_try, call_ended, &backoff, 3);

/* Returns false if the connection or the replica at its other end is broken. */
static bool answer_read(uint32_t replica)
{
	struct message answer;

	if (recv(replicas[replica].client, &answer, sizeof(answer), MSG_WAITALL) !=
		    sizeof(answer) ||
	    answer.call >= CALLS)
		return false;
	calls[answer.call].asked &= ~(1U << replica);
	tw_retry_complete(calls[answer.call].attempt, TW_RETRY_DONE);
	return true;
}

static void serve(struct tw_engine *engine)
{
	struct pollfd ready[] = {{replicas[0].client, POLLIN, 0},
				 {replicas[1].client, POLLIN, 0},
				 {tw_engine_fd(engine), POLLIN, 0}};

	while (answered + given_up < CALLS && poll(ready, REPLICAS + 1, -1) > 0) {
		for (uint32_t i = 0; i < REPLICAS; i++)
			if (ready[i].revents != 0 && !answer_read(i))
				ready[i].fd = -1;
		if (ready[REPLICAS].revents != 0)
			tw_engine_poll(engine, 0);
	}
}

int main(void)
{
	unsigned left = 0;
	struct tw_options options;
	struct tw_engine *engine;
	struct tw_retry *queue;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_engine_create(&options, &engine) != 0 ||
	    tw_retry_create(engine, NULL, &queue) != 0 || !replica_open(&replicas[0]) ||
	    !replica_open(&replicas[1]))
		return 1;
	for (int id = 0; id < CALLS; id++)
		if (tw_retry_submit(queue, TW_MS(id), &call_kind, &calls[id], NULL) != 0)
			return 1;
	serve(engine);
	for (int i = 0; i < REPLICAS; i++)
		left += replica_close(&replicas[i]);
	printf("%u answered, %u given up, %u left with a replica\n", answered, given_up, left);
	if (tw_engine_stop(engine, NULL, NULL, TW_NEVER) != 0 || tw_retry_destroy(queue) != 0 ||
	    tw_engine_destroy(engine) != 0)
		return 1;
	return hedged == 0 || repeated == 0;
}
