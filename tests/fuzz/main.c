/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target as a plain program. `fuzz FILE...` runs the target on each file, or on each file of
 * a folder. Without arguments it reads the standard input. If afl-clang-fast has built it, AFL++
 * gives it one input after another instead.
 */
#include "target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES_MAX = 1 << 20 };

#ifdef __AFL_COMPILER

#include <unistd.h>

__AFL_FUZZ_INIT();

/* the number of inputs after which AFL++ starts a new process */
enum { INPUTS = 10000 };

static void inputs_try(void)
{
	const uint8_t *bytes;

	__AFL_INIT();
	bytes = __AFL_FUZZ_TESTCASE_BUF;
	while (__AFL_LOOP(INPUTS))
		(void)LLVMFuzzerTestOneInput(bytes, (size_t)__AFL_FUZZ_TESTCASE_LEN);
}

#else

static int stream_try(FILE *file)
{
	static uint8_t bytes[BYTES_MAX];
	size_t count = fread(bytes, 1, sizeof(bytes), file);

	return ferror(file) ? 1 : LLVMFuzzerTestOneInput(bytes, count);
}

static void inputs_try(void)
{
	if (stream_try(stdin) != 0)
		exit(1);
}

static int file_try(const char *path)
{
	FILE *file = fopen(path, "re");
	int error;

	if (file == NULL) {
		perror(path);
		return 1;
	}
	error = stream_try(file);
	fclose(file);
	return error;
}

/* Runs the target on each file of a folder. Returns how many files passed, or -1. */
static int folder_try(const char *path)
{
	struct dirent **entries;
	char name[4096];
	int count = scandir(path, &entries, NULL, alphasort);
	int tried = 0;

	for (int i = 0; i < count && tried >= 0; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_type == DT_REG)
			tried = file_try(name) == 0 ? tried + 1 : -1;
	}
	for (int i = 0; i < count; i++)
		free(entries[i]);
	if (count >= 0)
		free(entries);
	return count < 0 ? file_try(path) == 0 ? 1 : -1 : tried;
}

#endif

int main(int argc, char **argv)
{
#ifndef __AFL_COMPILER
	for (int i = 1; i < argc; i++) {
		int tried = folder_try(argv[i]);

		if (tried <= 0)
			return 1;
		printf("%s: %d inputs\n", argv[i], tried);
	}
#endif
	(void)argv;
	if (argc < 2)
		inputs_try();
	return 0;
}
