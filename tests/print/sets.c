/* SPDX-License-Identifier: MIT */
/*
 * Writes known counters and histograms of durable sets for check_print.py. usage: print-sets FORMAT
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>
#include <tickwheel/durable.h>

static void on_text(void *context, const char *text, size_t bytes)
{
	if (bytes > 0 && bytes <= 512)
		fwrite(text, 1, bytes, context);
}

int main(int argc, char **argv)
{
	static const char *const formats[] = {"text", "json", "prometheus"};
	static struct tw_histogram commit = {.size = sizeof commit};
	struct tw_durable_stats stats = {0}, other = {.state = TW_DURABLE_STATE_SLOW};
	const struct tw_durable_reading readings[] = {
		{"plain", &stats, sizeof stats, &commit, &commit, &commit},
		{"back\\slash \"quote\"\nline\x01", &other, sizeof other, NULL, &commit, NULL},
		{NULL, &other, sizeof other, NULL, NULL, NULL},
	};
	uint64_t *field = &stats.scheduled;
	uint32_t format = 0;

	setlocale(LC_ALL, "");
	for (size_t i = 0; &field[i] < (uint64_t *)(&stats + 1); i++)
		field[i] = i + 100;
	stats.lag_ns = 1500000000;
	stats.state = TW_DURABLE_STATE_FULL;
	for (uint64_t value_ns = 1; value_ns <= 10000; value_ns++)
		tw_histogram_record(&commit, value_ns);
	while (argc == 2 && format < 3 && strcmp(formats[format], argv[1]) != 0)
		format++;
	return tw_durable_stats_print(readings, 3, format, on_text, stdout) != 0;
}
