/* SPDX-License-Identifier: MIT */
/* An executor on the loop's own thread: callbacks run after the
 * poll, when the loop has time. */
#include "check.h"

enum { INBOX_MAX = 2 };

struct inbox {
	size_t count;
	struct tw_due due[INBOX_MAX];
};

/* The dispatch hook. */
static size_t inbox_take(void *context, const struct tw_due *due,
			 size_t count)
{
	struct inbox *inbox = context;
	size_t taken = 0;

	while (taken < count && inbox->count < INBOX_MAX)
		inbox->due[inbox->count++] = due[taken++];
	return taken;
}

/* example: tw_due_run */
/* Runs each timeout that the dispatch hook has accepted, once. */
static void inbox_run(struct inbox *inbox)
{
	for (size_t i = 0; i < inbox->count; i++) {
		int code = tw_due_run(&inbox->due[i]);

		if (code < 0)
			fprintf(stderr, "not run: %s\n",
				tw_strerror(code));
	}
	inbox->count = 0;
}
/* end */

static void on_job(struct tw_handle self, void *arg)
{
	int *runs = arg;

	(void)self;
	++*runs;
}

static const struct tw_kind job = TW_KIND(on_job, NULL);

int main(void)
{
	struct inbox inbox = {0};
	struct tw_options options = bench_options();
	struct bench bench;
	int runs = 0;

	options.flags = TW_ENGINE_LOOP;
	options.dispatch = inbox_take;
	options.dispatch_context = &inbox;
	options.rejection = TW_REJECTION_REQUEUE;
	bench = bench_open(options);
	/* This thread becomes the owner of the loop. */
	CHECK(tw_loop_enter(bench.engine) == 0);
	for (int i = 0; i < INBOX_MAX + 1; i++)
		CHECK(tw_schedule(bench.engine, TW_MS(10), &job,
				  &runs, NULL) == 0);
	bench_pass(&bench, TW_MS(12));
	CHECK(inbox.count == INBOX_MAX && runs == 0);
	inbox_run(&inbox);
	CHECK(runs == INBOX_MAX);
	bench_pass(&bench, TW_MS(2));
	inbox_run(&inbox);
	CHECK(runs == INBOX_MAX + 1);
	bench_stop(&bench);
	bench_close(&bench);
	return 0;
}
