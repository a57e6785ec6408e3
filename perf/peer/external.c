/* SPDX-License-Identifier: MIT */
/*
 * Runs peers that are programs of their own. Each repeat starts the program anew.
 *
 *     PROGRAM WORKLOAD ops=N producers=N live=N seed=N
 *
 * The program warms up, does the workload, and writes lines of a key and its values:
 *
 *     version TEXT
 *     ns_per_op NUMBER             wall time divided by the number of operations
 *     cpu_ns_per_op NUMBER         CPU time of all threads in the measured part, divided likewise
 *     scheduled COUNT IDSUM        in the measured part, with those that existed at its start
 *     expired COUNT IDSUM
 *     cancelled COUNT IDSUM
 *     unexpired COUNT IDSUM        those that the program cancelled at the end; may be missing
 *     lateness NS COUNT            any number of them; below 0: early
 *     end
 *
 * Sums of ids are modulo 2^64. Any other output, or an exit without `end`, is an error that names
 * the program. The system reports the peak memory of the process.
 */
#include "peer/external.h"

#include "workload/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* If a program runs for REPEAT_MAX_S, an alarm ends this process and the program. */
enum { REPEAT_MAX_S = 600, WORDS_MAX = 32, WORD_BYTES = 32 };

static int complain(const char *name, const char *what, const char *detail)
{
	fprintf(stderr, "tickwheel-perf: %s: %s%s\n", name, what, detail);
	return -EIO;
}

static int take_number(const char *text, double *ret_value)
{
	char *end = NULL;

	*ret_value = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*ret_value) && *ret_value >= 0 ? 0 : -EIO;
}

static int take_tally(const char *text, struct tally *ret_tally)
{
	char end;

	return sscanf(text, "%" SCNu64 " %" SCNu64 "%c", &ret_tally->count, &ret_tally->id_sum,
		      &end) == 2
		       ? 0
		       : -EIO;
}

static int take_lateness(const char *text, struct histogram *lateness)
{
	int64_t value_ns;
	uint64_t count;
	char end;

	if (sscanf(text, "%" SCNd64 " %" SCNu64 "%c", &value_ns, &count, &end) != 2)
		return -EIO;
	histogram_add_many(lateness, value_ns, count);
	return 0;
}

static int take_value(const char *key, const char *value, struct sample *sample)
{
	struct account *account = &sample->account;

	if (strcmp(key, "version") == 0) {
		snprintf(sample->version, sizeof(sample->version), "%s", value);
		return 0;
	}
	if (strcmp(key, "ns_per_op") == 0)
		return take_number(value, &sample->ns_per_op);
	if (strcmp(key, "cpu_ns_per_op") == 0)
		return take_number(value, &sample->cpu_ns_per_op);
	if (strcmp(key, "scheduled") == 0)
		return take_tally(value, &account->scheduled);
	if (strcmp(key, "expired") == 0)
		return take_tally(value, &account->expired);
	if (strcmp(key, "cancelled") == 0)
		return take_tally(value, &account->cancelled);
	if (strcmp(key, "unexpired") == 0)
		return take_tally(value, &account->unexpired);
	if (strcmp(key, "lateness") == 0)
		return take_lateness(value, &sample->lateness_ns);
	return -EIO;
}

/* Splits a line into key and value, and takes the value. Overwrites the space between them. */
static int take_line(const char *name, char *line, struct sample *sample)
{
	char *value;

	value = strchr(line, ' ');
	if (!value)
		return complain(name, "not understood: ", line);
	*value++ = '\0';
	if (take_value(line, value, sample))
		return complain(name, "not understood: ", line);
	return 0;
}

static int check_whole(const char *name, bool ended, const struct sample *sample)
{
	if (!ended)
		return complain(name, "ended without \"end\"", "");
	if (!sample->version[0] || isnan(sample->ns_per_op) || isnan(sample->cpu_ns_per_op) ||
	    !sample->account.scheduled.count)
		return complain(name, "told less than it has to", "");
	return 0;
}

static int read_lines(const char *name, FILE *file, struct sample *sample)
{
	char *line = NULL;
	size_t room = 0;
	bool ended = false;
	int error = 0;

	while (!error && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (ended)
			error = complain(name, "more after \"end\": ", line);
		else if (strcmp(line, "end") == 0)
			ended = true;
		else
			error = take_line(name, line, sample);
	}
	free(line);
	return error ? error : check_whole(name, ended, sample);
}

static _Noreturn void program_main(const struct peer *peer, const struct peer_task *task, int fd)
{
	char words[4][WORD_BYTES];
	const char *argv[WORDS_MAX];
	const uint64_t live =
		task->workload->kind == WORKLOAD_KIND_LIVE_RING ? task->workload->parameter : 0;
	unsigned count = 0;

	while (peer->command[count] && count < WORDS_MAX - 6) {
		argv[count] = peer->command[count];
		count++;
	}
	snprintf(words[0], WORD_BYTES, "ops=%" PRIu64, task->options->ops);
	snprintf(words[1], WORD_BYTES, "producers=%u", task->options->producers);
	snprintf(words[2], WORD_BYTES, "live=%" PRIu64, live);
	snprintf(words[3], WORD_BYTES, "seed=0");
	argv[count++] = task->workload->name;
	for (unsigned i = 0; i < 4; i++)
		argv[count++] = words[i];
	argv[count] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, STDOUT_FILENO) < 0 || dup2(open("/dev/null", O_RDONLY), STDIN_FILENO) < 0)
		_exit(126);
	/* The cast is safe, because execv does not change the words. */
	execv(argv[0], (char *const *)(uintptr_t)argv);
	(void)complain(peer->name, strerror(errno), "");
	_exit(127);
}

static int collect(const struct peer *peer, pid_t program, FILE *file, struct sample *sample)
{
	struct rusage usage = {0};
	int status = 0;
	int error = read_lines(peer->name, file, sample);

	/*
	 * After an error this process no longer reads the pipe. So it kills the program, which
	 * could block on a full pipe for ever.
	 */
	if (error)
		kill(program, SIGKILL);
	while (wait4(program, &status, 0, &usage) < 0 && errno == EINTR)
		;
	sample->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
	if (!error && status != 0)
		error = complain(peer->name, "the program failed", "");
	return error;
}

int external_run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	FILE *file;
	pid_t program;
	int ends[2];
	int error;

	*ret_sample = sample_empty();
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	alarm(REPEAT_MAX_S);
	program = fork();
	if (program == 0)
		program_main(self, task, ends[1]);
	file = program < 0 ? NULL : fdopen(ends[0], "r");
	error = file ? 0 : -errno;
	close(ends[1]);
	if (file) {
		error = collect(self, program, file, ret_sample);
		fclose(file);
	}
	alarm(0);
	return error;
}
