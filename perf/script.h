/* SPDX-License-Identifier: MIT */
/*
 * Finds and runs the Python scripts that belong to the program. In a build folder a script is next
 * to the program. In an installed tree it is in the folder of shared data. The program finds that
 * folder relative to itself, so an installed tree can be moved as a whole.
 */
#ifndef PERF_SCRIPT_H
#define PERF_SCRIPT_H

#include <limits.h>
#include <stdbool.h>

/*
 * Stores the path of a file in the program's folder. Returns false if the system does not report
 * that folder, or if the path is too long.
 */
bool script_beside(const char *name, char ret_path[PATH_MAX]);

/*
 * Replaces the process by `python3 -B SCRIPT WORDS`. With -B Python writes no compiled files next
 * to the script, because the script's folder may not be writable. Returns only if that fails: an
 * exit code, after a message that begins with `command`. `words` must end with NULL.
 */
int script_become(const char *command, const char *script, const char *const *words);

#endif
