/* SPDX-License-Identifier: MIT */
#include "attempt.h"

#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEED_SECONDS = 60, EXIT_DIFFERS = 3 };

/* Shared memory in which the child reports the failure. */
static struct failure *told;

static void tell(const struct sequence *sequence, int at, const char *what)
{
	(void)sequence;
	told->at = at;
	snprintf(told->what, sizeof(told->what), "%s", what);
	_exit(EXIT_DIFFERS);
}

static void child_begin(void)
{
	play_failed = tell;
	play_prepare();
}

/* Makes the shared memory, zeroed. If there is none, exits, because the parent cannot do without
 * it. */
static void told_make(void)
{
	if (told == NULL)
		told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	if (told == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	memset(told, 0, sizeof(*told));
}

static pid_t child_make(void)
{
	pid_t child;

	told_make();
	fflush(NULL);
	child = fork();
	if (child < 0) {
		perror("fork");
		exit(2);
	}
	return child;
}

static bool child_await(pid_t child, struct failure *ret_failure)
{
	int status = 0;

	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	*ret_failure = *told;
	if (WIFSIGNALED(status))
		snprintf(ret_failure->what, sizeof(ret_failure->what), "%s (signal %d)",
			 WTERMSIG(status) == SIGALRM ? "it hangs" : "it crashes", WTERMSIG(status));
	else if (WEXITSTATUS(status) != EXIT_DIFFERS)
		snprintf(ret_failure->what, sizeof(ret_failure->what), "exit code %d",
			 WEXITSTATUS(status));
	return false;
}

bool attempt_sequence(const struct sequence *sequence, unsigned seconds,
		      struct failure *ret_failure)
{
	pid_t child = child_make();

	if (child != 0)
		return child_await(child, ret_failure);
	child_begin();
	alarm(seconds);
	play_run(sequence);
	_exit(0);
}

static void seed_play(uint64_t seed)
{
	static struct sequence sequence;
	static uint8_t bytes[SEED_BYTES_MAX];

	told->seed = seed;
	sequence_decode(&sequence, bytes, seed_bytes(seed, bytes));
	alarm(SEED_SECONDS);
	play_run(&sequence);
}

bool attempt_seeds(uint64_t from, uint64_t count, struct failure *ret_failure)
{
	pid_t child = child_make();

	if (child != 0)
		return child_await(child, ret_failure);
	child_begin();
	for (uint64_t seed = from; seed < from + count; seed++)
		seed_play(seed);
	_exit(0);
}
