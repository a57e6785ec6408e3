/* SPDX-License-Identifier: MIT */
/*
 * Writes known counters and histograms for check_print.py.
 * usage: print-sample FORMAT engines|histogram|greatest
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

static const char *const formats[] = {
	[TW_PRINT_TEXT] = "text",
	[TW_PRINT_JSON] = "json",
	[TW_PRINT_PROMETHEUS] = "prometheus",
	[TW_PRINT_PERCENTILES] = "percentiles",
};

/*
 * Writes a piece of the output. Leaves out a piece that is empty or has more than the documented
 * 512 bytes, so that the check of the output fails.
 */
static void on_text(void *context, const char *text, size_t bytes)
{
	if (bytes > 0 && bytes <= 512)
		fwrite(text, 1, bytes, context);
}

static struct tw_histogram lateness, duration, greatest;

/*
 * Records the values 1 to 10,000 ns once each, one value beyond all buckets, and the greatest
 * possible value.
 */
static void fill(void)
{
	lateness.size = duration.size = greatest.size = sizeof lateness;
	for (uint64_t value_ns = 1; value_ns <= 10000; value_ns++)
		tw_histogram_record(&lateness, value_ns);
	tw_histogram_record(&duration, UINT64_C(5000) * 1000000000);
	tw_histogram_record(&greatest, UINT64_MAX);
}

static int engines_print(uint32_t format)
{
	struct tw_stats stats = {.size = sizeof stats, .latest_ns = 1500000000};
	struct tw_stats other = stats;
	const struct tw_reading readings[] = {
		{"plain", &stats, &lateness, &duration},
		{"back\\slash \"quote\"\nline\x01", &other, NULL, &duration},
		{NULL, &other, NULL, NULL},
	};
	uint64_t *field = &stats.scheduled;

	for (size_t i = 0; &field[i] < (uint64_t *)(&stats + 1); i++)
		if (&field[i] != &stats.latest_ns)
			field[i] = i + 100;
	return tw_stats_print(readings, 3, format, on_text, stdout);
}

int main(int argc, char **argv)
{
	uint32_t format = 0;

	/* Uses the environment's locale, which may have a decimal comma. */
	setlocale(LC_ALL, "");
	if (argc != 3)
		return 2;
	while (format < TW_PRINT_PERCENTILES && strcmp(formats[format], argv[1]) != 0)
		format++;
	fill();
	if (strcmp(argv[2], "engines") == 0)
		return engines_print(format) != 0;
	return tw_histogram_print(strcmp(argv[2], "greatest") == 0 ? &greatest : &lateness,
				  "a:metric_1", format, on_text, stdout) != 0;
}
