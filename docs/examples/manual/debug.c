/* SPDX-License-Identifier: MIT */
/* The log hook, names of outcomes, the state of an engine as text,
 * and the version. */
#include "check.h"

static bool logged;

static void file_write(void *file, const char *text, size_t bytes)
{
	fwrite(text, 1, bytes, file);
}

static void log_write(void *context, enum tw_log_level level,
		      const char *text)
{
	(void)context, (void)level;
	logged = true;
	fprintf(stderr, "%s\n", text);
}

/* example: tw_log_set */
static const struct tw_log log_to_stderr = {.hook = log_write};

/* Call it at the beginning of main. log_write prints one line. */
static void log_begin(void)
{
	if (tw_log_set(&log_to_stderr) < 0)
		fputs("no messages of the timers\n", stderr);
}
/* end */

/* example: tw_engine_dump */
/* For the operator; file_write is a hook that calls fwrite. */
static void timers_dump(struct tw_engine *engine, FILE *file)
{
	int code =
		tw_engine_dump(engine, file_write, file, TW_S(1));

	if (code < 0) /* -ETIMEDOUT: a callback blocks the worker */
		fprintf(file, "not all: %s\n", tw_strerror(code));
}
/* end */

/* example: tw_strerror */
static bool succeeded(const char *doing, int code)
{
	if (code < 0)
		fprintf(stderr, "%s: %s\n", doing,
			tw_strerror(code));
	return code >= 0;
}
/* end */

/* example: tw_cancel_outcome_name tw_reschedule_outcome_name */
/* Both calls return an outcome or a code; each of these has a
 * name. */
static void timeout_end(struct tw_handle timeout)
{
	int moved = tw_reschedule(timeout, TW_MS(10));
	int cancelled = tw_cancel(timeout);

	printf("moved: %s\n", tw_reschedule_outcome_name(moved));
	printf("cancelled: %s\n",
	       tw_cancel_outcome_name(cancelled));
}
/* end */

/* example: tw_state_name */
static void timeout_report(struct tw_handle timeout)
{
	int state = tw_timeout_state(timeout);

	printf("timeout: %s\n", tw_state_name(state));
}
/* end */

static int freed;

static void request_free(void *request)
{
	free(request);
	freed++;
}

/* example: tw_end_name */
/* A finaliser: runs once, however the timeout has ended. */
static void on_end(void *arg, enum tw_end end)
{
	printf("request: %s\n", tw_end_name((int)end));
	request_free(arg);
}
/* end */

/* example: tw_version tw_version_string */
/* The loaded library may be older than the headers. */
static bool library_fits(void)
{
	if (tw_version() >= TW_VERSION)
		return true;
	fprintf(stderr, "tickwheel %s is too old\n",
		tw_version_string());
	return false;
}
/* end */

static void on_late(struct tw_handle self, void *arg)
{
	(void)self, (void)arg;
}

static const struct tw_kind late = TW_KIND(on_late, on_end);

int main(void)
{
	struct bench bench;
	struct tw_handle timeout;
	FILE *file = tmpfile();

	log_begin();
	CHECK(library_fits());
	bench = bench_open(bench_options());
	CHECK(succeeded("schedule",
			tw_schedule(bench.engine, TW_S(1), &late,
				    malloc(1), &timeout)));
	CHECK(file != NULL);
	timers_dump(bench.engine, file);
	CHECK(ftell(file) > 0 && fclose(file) == 0);
	timeout_report(timeout);
	timeout_end(timeout);
	CHECK(freed == 1 &&
	      strcmp(tw_state_name(tw_timeout_state(timeout)),
		     "cancelled") == 0);
	bench_stop(&bench);
	CHECK(!succeeded("schedule",
			 tw_schedule(bench.engine, 0, &late, NULL,
				     NULL)) &&
	      !logged);
	bench_close(&bench);
	return 0;
}
