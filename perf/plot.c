/* SPDX-License-Identifier: MIT */
/* Draws pictures of results, by the script report/plot.py. */
#include "plot.h"

#include "script.h"

#include <stdlib.h>
#include <string.h>

int plot_run(const struct options *options)
{
	size_t count = (size_t)options->operand_count;
	const char **words = calloc(count + 4, sizeof(*words));
	size_t at = 0;
	int code;

	if (!words)
		abort();
	if (options->output_path) {
		words[at++] = "--output";
		words[at++] = options->output_path;
	}
	words[at++] = "--";
	memcpy(&words[at], options->operands, count * sizeof(*words));
	code = script_become("plot", "plot.py", words);
	free(words);
	return code;
}
