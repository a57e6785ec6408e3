/* SPDX-License-Identifier: MIT */
/* The worker's thread as the system shows it: name, signal mask, CPUs, scheduling class. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

static bool read_line(const char *task, const char *file, char *text, int size)
{
	char path[300];
	FILE *stream;
	bool good;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, file);
	stream = fopen(path, "r");
	if (!stream)
		return false;
	good = fgets(text, size, stream) != NULL;
	fclose(stream);
	text[strcspn(text, "\n")] = '\0';
	return good;
}

/* Returns the id of the thread of this process that has the name, or 0. */
static pid_t find_task(const char *name)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	char text[64];
	pid_t found = 0;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && read_line(entry->d_name, "comm", text, 64) &&
		    strcmp(text, name) == 0)
			found = (pid_t)atoi(entry->d_name);
	if (folder)
		closedir(folder);
	return found;
}

static uint64_t blocked_signals(pid_t task)
{
	char path[64];
	char line[256];
	unsigned long long mask = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)task);
	stream = fopen(path, "r");
	while (stream && fgets(line, sizeof(line), stream))
		if (strncmp(line, "SigBlk:", 7) == 0)
			mask = strtoull(line + 7, NULL, 16);
	if (stream)
		fclose(stream);
	return mask;
}

/* Opens an engine and starts its worker. Returns the worker's id. */
static pid_t open_running(struct fixture *fixture, const struct tw_options *options)
{
	fixture_open(fixture, options);
	check_int(tw_engine_start(fixture->engine), 0);
	fixture_advance(fixture, NS_PER_MS);
	return find_task(options->thread_name);
}

Test(worker_thread, worker_thread_has_its_name)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;

	check_int(find_task("tickwheel"), 0);
	check_true(open_running(&fixture, &options) != 0);
	fixture_close(&fixture);
	/* For a moment after the join, the system may still list the thread. */
	while (find_task("tickwheel") != 0)
		sched_yield();
}

Test(worker_thread, has_the_name_asked_for)
{
	struct tw_options options = fixture_options();
	char name[] = "fifteen-letters";
	struct fixture fixture;

	options.thread_name = name;
	fixture_open(&fixture, &options);
	memset(name, 'x', strlen(name));
	check_int(tw_engine_start(fixture.engine), 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_true(find_task("fifteen-letters") != 0);
	fixture_close(&fixture);
}

static void check_name(const char *asked, const char *expected)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;

	options.thread_name = asked;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	fixture_advance(&fixture, NS_PER_MS);
	cr_assert(find_task(expected) != 0, "no thread is named '%s'", expected);
	fixture_close(&fixture);
}

/*
 * Seen to fail with these defects: a long name is rejected; it is cut in the middle of a character;
 * a last character that would fit is cut off.
 */
Test(worker_thread, long_name_is_cut_before_a_character_that_does_not_fit)
{
	check_name("0123456789abcdef", "0123456789abcde");
	check_name("0123456789abcd\xc3\xa9", "0123456789abcd");
	check_name("0123456789abc\xe2\x82\xac", "0123456789abc");
	check_name("0123456789abc\xc3\xa9z", "0123456789abc\xc3\xa9");
	check_name("0123456789ab\xf0\x9f\x95\x90", "0123456789ab");
	check_name("0123456789a\xf0\x9f\x95\x90.", "0123456789a\xf0\x9f\x95\x90");
	/* These bytes are not UTF-8. */
	check_name("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
		   "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80");
}

Test(worker_thread, blocks_the_signals_of_the_server)
{
	const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE,
			       SIGALRM, SIGTERM, SIGCHLD, SIGTSTP, SIGIO,   SIGWINCH};
	struct tw_options options = fixture_options();
	struct fixture fixture;
	uint64_t mask;
	size_t i;

	mask = blocked_signals(open_running(&fixture, &options));
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		check_true(mask >> (signals[i] - 1) & 1);
	fixture_close(&fixture);
}

Test(worker_thread, leaves_the_mask_of_the_starter)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	sigset_t before;
	sigset_t after;
	int number;

	sigprocmask(SIG_SETMASK, NULL, &before);
	open_running(&fixture, &options);
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (number = 1; number < 32; number++)
		check_int(sigismember(&before, number), sigismember(&after, number));
	fixture_close(&fixture);
}

static atomic_int handled_by;

static void on_signal(int number)
{
	(void)number;
	atomic_store(&handled_by, (int)gettid());
}

/* The process's handler must run on a thread that does not block the signal, so never on the
 * worker. */
Test(worker_thread, handlers_do_not_run_on_it)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	int i;

	signal(SIGUSR1, on_signal);
	open_running(&fixture, &options);
	for (i = 0; i < 100; i++) {
		atomic_store(&handled_by, 0);
		kill(getpid(), SIGUSR1);
		check_true(wait_until_at_least(&handled_by, 1));
		check_int(handled_by, gettid());
		fixture_advance(&fixture, NS_PER_MS);
	}
	fixture_close(&fixture);
}

Test(worker_thread, runs_where_it_is_told)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	cpu_set_t allowed;
	cpu_set_t asked;
	cpu_set_t actual;
	size_t cpu = 0;

	check_int(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&asked);
	CPU_SET(cpu, &asked);
	options.cpu_set = &asked;
	options.cpu_set_bytes = sizeof(asked);
	check_int(sched_getaffinity(open_running(&fixture, &options), sizeof(actual), &actual), 0);
	check_int(CPU_COUNT(&actual), 1);
	check_true(CPU_ISSET(cpu, &actual));
	fixture_close(&fixture);
}

/* Checks that the start fails. Then the engine must have no thread and no timeout, and stop must
 * work. */
static void check_start_fails(const struct tw_options *options, int error)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, options);
	probe_init(&probe, fixture.engine);
	check_int(tw_engine_start(fixture.engine), error);
	check_int(tw_schedule(fixture.engine, 1, &probe_final_kind, &probe, NULL), error);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(find_task("tickwheel"), 0);
	fixture_close(&fixture);
	check_int(probe.finalised, 0);
}

Test(worker_thread, start_on_a_missing_cpu_fails)
{
	struct tw_options options = fixture_options();
	cpu_set_t asked;

	CPU_ZERO(&asked);
	CPU_SET(CPU_SETSIZE - 1, &asked);
	options.cpu_set = &asked;
	options.cpu_set_bytes = sizeof(asked);
	check_start_fails(&options, -EINVAL);
}

Test(worker_thread, scheduling_class_without_the_right)
{
	const struct rlimit none = {0, 0};
	struct tw_options options = fixture_options();

	check_int(setrlimit(RLIMIT_RTPRIO, &none), 0);
	if (geteuid() == 0)
		check_int(setresuid(65534, 65534, 65534), 0);
	options.scheduling_policy = SCHED_FIFO;
	options.scheduling_priority = 1;
	check_start_fails(&options, -EPERM);
}

Test(worker_thread, normal_scheduling_class_needs_no_right)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;

	options.scheduling_policy = SCHED_OTHER;
	check_int(sched_getscheduler(open_running(&fixture, &options)), SCHED_OTHER);
	fixture_close(&fixture);
}

Test(worker_thread, batch_scheduling_class_is_rejected)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine;

	options.scheduling_policy = SCHED_BATCH;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
}

Test(worker_thread, callbacks_run_on_it)
{
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	/* A callback holds the worker, and the worker's thread must not be this one. */
	check_true(find_task("tickwheel") != gettid());
	gate_open(&gate);
	fixture_close(&fixture);
}
