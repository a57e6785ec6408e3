/* SPDX-License-Identifier: MIT */
#include "script.h"

#include "build_info.h"
#include "run/runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Stores the folder of the program, or an empty string if the system does not report it. */
static void folder_of_program(char ret_folder[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);
	char *slash;

	ret_folder[length > 0 ? length : 0] = '\0';
	slash = strrchr(ret_folder, '/');
	if (slash)
		*slash = '\0';
}

bool script_beside(const char *name, char ret_path[PATH_MAX])
{
	char folder[PATH_MAX];

	folder_of_program(folder);
	return folder[0] != '\0' && snprintf(ret_path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

static bool script_find(const char *script, char ret_path[PATH_MAX])
{
	char folder[PATH_MAX];

	if (script_beside(script, ret_path) && access(ret_path, R_OK) == 0)
		return true;
	folder_of_program(folder);
	/* If SCRIPT_FOLDER is absolute, it is not relative to the program's folder. */
	return snprintf(ret_path, PATH_MAX, "%s/%s/%s", SCRIPT_FOLDER[0] == '/' ? "" : folder,
			SCRIPT_FOLDER, script) < PATH_MAX &&
	       access(ret_path, R_OK) == 0;
}

static size_t words_count(const char *const *words)
{
	size_t count = 0;

	while (words[count])
		count++;
	return count;
}

int script_become(const char *command, const char *script, const char *const *words)
{
	size_t count = words_count(words);
	const char **all = calloc(count + 4, sizeof(*all));
	char path[PATH_MAX];

	if (!all)
		abort();
	if (!script_find(script, path)) {
		fprintf(stderr,
			"tickwheel-perf: %s: %s is neither beside the program nor installed with "
			"it\n",
			command, script);
		free(all);
		return EXIT_LOST;
	}
	all[0] = "python3";
	all[1] = "-B";
	all[2] = path;
	memcpy(&all[3], words, count * sizeof(*words));
	execvp(all[0], (char *const *)all);
	fprintf(stderr, "tickwheel-perf: %s: cannot start python3: %s\n", command, strerror(errno));
	free(all);
	return EXIT_LOST;
}
