/* SPDX-License-Identifier: MIT */
/*
 * Pictures of results, which report/plot.py draws. In a build folder the script is next to the
 * program. In an installed tree it is in the folder of shared data. The program finds that folder
 * relative to itself, so an installed tree can be moved as a whole.
 */
#include "plot.h"

#include "build_info.h"
#include "run/runner.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT "plot.py"

/* The folder of the program, or an empty string if the system does not report it. */
static void folder_of_program(char ret_folder[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);
	char *slash;

	ret_folder[length > 0 ? length : 0] = '\0';
	slash = strrchr(ret_folder, '/');
	if (slash)
		*slash = '\0';
}

static bool script_find(char ret_path[PATH_MAX])
{
	char folder[PATH_MAX];
	int length;

	folder_of_program(folder);
	length = snprintf(ret_path, PATH_MAX, "%s/" SCRIPT, folder);
	if (length < PATH_MAX && access(ret_path, R_OK) == 0)
		return true;
	/* An absolute one is not seen from the program. */
	length = snprintf(ret_path, PATH_MAX, "%s/%s/" SCRIPT,
			  SCRIPT_FOLDER[0] == '/' ? "" : folder, SCRIPT_FOLDER);
	return length < PATH_MAX && access(ret_path, R_OK) == 0;
}

/* -B: writes no compiled files next to the script, because that folder may not be writable. */
static const char **words_make(const struct options *options, const char *script)
{
	size_t count = (size_t)options->operand_count;
	const char **words = calloc(count + 7, sizeof(*words));
	size_t at = 0;

	if (!words)
		abort();
	words[at++] = "python3";
	words[at++] = "-B";
	words[at++] = script;
	if (options->output_path) {
		words[at++] = "--output";
		words[at++] = options->output_path;
	}
	words[at++] = "--";
	memcpy(&words[at], options->operands, count * sizeof(*words));
	return words;
}

int plot_run(const struct options *options)
{
	char script[PATH_MAX];
	const char **words;

	if (!script_find(script)) {
		fputs("tickwheel-perf: plot: " SCRIPT " is neither beside the program nor "
		      "installed with it\n",
		      stderr);
		return EXIT_LOST;
	}
	words = words_make(options, script);
	execvp(words[0], (char *const *)words);
	fprintf(stderr, "tickwheel-perf: plot: cannot start python3: %s\n", strerror(errno));
	free(words);
	return EXIT_LOST;
}
