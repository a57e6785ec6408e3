/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-model [option...] [harness...]
 *
 * A harness is named by its own name, or by the name of its file. Without a name all harnesses run.
 * Each runs in a process of its own. The exit code is 1 if one failed.
 *
 *     --list               print the names, and what each harness proves
 *     --first              end at the first failure
 *     --preemptions N      use this bound instead of the harness's own
 *     --weak N             use this bound instead of the harness's own
 *     --deeper N           raise both bounds by N
 *     --runs N             make at most N exhaustive runs
 *     --random N           make N random runs (0: none)
 *     --seed S             the seed of the random runs
 *     --replay CHOICES     repeat one run with the choices that a failure printed; print its steps
 */
#include "runtime/explore.h"
#include "runtime/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct model_harness *const __start_model_harness[]; /* defined by the linker */
extern const struct model_harness *const __stop_model_harness[];

struct options {
	bool preemptions_set, weak_set, random_set, list, first;
	unsigned deeper;
	struct explore_bounds bounds;
};

static bool number_read(int argc, char **argv, int *at, const char *name, uint64_t *ret_number)
{
	if (strcmp(argv[*at], name) != 0 || *at + 1 == argc)
		return false;
	*ret_number = strtoull(argv[++*at], NULL, 10);
	return true;
}

static bool option_read(int argc, char **argv, int *at, struct options *ret)
{
	uint64_t number;

	if (number_read(argc, argv, at, "--preemptions", &number)) {
		ret->preemptions_set = true;
		ret->bounds.preemptions = (unsigned)number;
	} else if (number_read(argc, argv, at, "--weak", &number)) {
		ret->weak_set = true;
		ret->bounds.weak = (unsigned)number;
	} else if (number_read(argc, argv, at, "--deeper", &number)) {
		ret->deeper = (unsigned)number;
	} else if (number_read(argc, argv, at, "--random", &ret->bounds.random_runs)) {
		ret->random_set = true;
	} else if (strcmp(argv[*at], "--replay") == 0 && *at + 1 < argc) {
		ret->bounds.replay = argv[++*at];
	} else if (strcmp(argv[*at], "--list") == 0) {
		ret->list = true;
	} else if (strcmp(argv[*at], "--first") == 0) {
		ret->first = true;
	} else {
		return number_read(argc, argv, at, "--runs", &ret->bounds.runs_max) ||
		       number_read(argc, argv, at, "--seed", &ret->bounds.seed);
	}
	return true;
}

static void harness_run(const struct model_harness *harness, const struct options *options)
{
	struct explore_bounds bounds = options->bounds;

	if (!options->preemptions_set)
		bounds.preemptions = harness->preemptions + options->deeper;
	if (!options->weak_set)
		bounds.weak = harness->weak + options->deeper;
	if (!options->random_set)
		bounds.random_runs = harness->random_runs;
	if (harness->setup != NULL)
		harness->setup();
	explore(harness, &bounds);
}

/* Runs the harness in a process of its own, because a failure ends the process. */
static bool harness_passes(const struct model_harness *harness, const struct options *options)
{
	int status = 0;
	pid_t child;

	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		harness_run(harness, options);
		(void)fflush(NULL);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
		printf("failed %s\n", harness->name);
		return false;
	}
	return true;
}

/*
 * Returns whether the harness belongs to the file: one of "folder/ingress.c" belongs to "ingress".
 */
static bool of_file(const struct model_harness *harness, const char *name)
{
	const char *slash = strrchr(harness->file, '/');
	const char *stem = slash != NULL ? slash + 1 : harness->file;
	size_t bytes = strcspn(stem, ".");

	return strlen(name) == bytes && memcmp(stem, name, bytes) == 0;
}

static bool wanted(const struct model_harness *harness, int count, char **names)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(harness->name, names[i]) == 0 || of_file(harness, names[i]))
			return true;
	}
	return count == 0;
}

static int harnesses_run(int count, char **names, const struct options *options)
{
	const struct model_harness *const *at;
	int ran = 0, failed = 0;

	for (at = __start_model_harness; at < __stop_model_harness; at++) {
		if (options->first && failed > 0)
			break;
		if (!wanted(*at, count, names))
			continue;
		ran++;
		if (options->list)
			printf("%-24s %s\n", (*at)->name, (*at)->proves);
		else
			failed += !harness_passes(*at, options);
	}
	if (ran == 0)
		printf("no harness of that name\n");
	return ran == 0 || failed > 0;
}

int main(int argc, char **argv)
{
	struct options options = {.bounds = {.seed = 1}};
	int at = 1;

	while (at < argc && strncmp(argv[at], "--", 2) == 0) {
		if (!option_read(argc, argv, &at, &options)) {
			fprintf(stderr, "%s: what is %s?\n", argv[0], argv[at]);
			return 2;
		}
		at++;
	}
	memory_init();
	fibers_init();
	return harnesses_run(argc - at, argv + at, &options);
}
