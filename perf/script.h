/* SPDX-License-Identifier: MIT */
/*
 * Scripts of Python that belong to the program. In a build folder a script is next to the program. In
 * an installed tree it is in the folder of shared data. The program finds that folder relative to
 * itself, so an installed tree can be moved as a whole.
 */
#ifndef PERF_SCRIPT_H
#define PERF_SCRIPT_H

#include <limits.h>
#include <stdbool.h>

/* The path of a file beside the program; false if the system does not report where that is, or the path is too
 * long. */
bool script_beside(const char *name, char ret_path[PATH_MAX]);

/*
 * Becomes `python3 -B SCRIPT WORDS`. -B: writes no compiled files next to the script, because that folder may not be
 * writable. Returns an exit code only if that fails, after a message that begins with `command`. `words` ends with NULL.
 */
int script_become(const char *command, const char *script, const char *const *words);

#endif
