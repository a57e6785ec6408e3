/* SPDX-License-Identifier: MIT */
/*
 * The screen of tickwheel-perf top --durable: known figures must give exactly these lines.
 *
 * Seen to fail with these defects: two counters are exchanged; a rate is computed over the wrong
 * time; old dead letters cause an alarm; a state has no alarm.
 */
#include "check.h"
#include "top/durable_screen.h"

#include <stdio.h>
#include <string.h>
#include <tickwheel/durable.h>

static struct durable_view view;
static struct top_text text;

/* Fills in the figures of two seconds in which 20,000 timers were scheduled and 300 ran. */
static void view_make(void)
{
	view = (struct durable_view){
		.title = "a set",
		.up_s = 61,
		.interval_s = 2,
		.before = {.scheduled = 1000000, .dead = 4, .late = 7},
		.now = {.scheduled = 1020000,
			.absorbed = 18000,
			.stored = 2000,
			.operations = 2300,
			.commits = 20,
			.runs = 300,
			.late = 7,
			.dead = 4,
			.in_memory = 1234567,
			.memory_bytes = 8 << 20,
			.staged_bytes = 1536,
			.log_bytes = 1024,
			.lag_ns = 1500000,
			.lag_max_ns = UINT64_C(2000000000)},
		.commit = {.size = sizeof(struct tw_histogram)},
		.ack = {.size = sizeof(struct tw_histogram)},
		.lateness = {.size = sizeof(struct tw_histogram)},
		.rss_bytes = 1073741824,
		.cpu_percent = 12.34,
	};
	for (int i = 0; i < 1000; i++)
		check_int(tw_histogram_record(&view.ack, i < 990 ? 200 : 2500000), 0);
}

static void check_line(unsigned number, const char *line)
{
	check_true(number < text.count);
	if (strcmp(text.line[number].text, line) != 0)
		fprintf(stderr, "not \"%s\"\nbut \"%s\"\n", line, text.line[number].text);
	check_int(strcmp(text.line[number].text, line), 0);
}

static void check_style(unsigned line, unsigned from, unsigned length, enum top_style style)
{
	for (unsigned i = from; i < from + length; i++)
		check_int(text.line[line].style[i], style);
}

Test(durable_screen, every_figure_has_its_place)
{
	static const char *const lines[] = {
		"a set",
		"up 61 s, figures of the last 2.00 s; q ends",
		"",
		"timers            a second            in all    now",
		"scheduled           10,000         1,020,000    state                       OPEN",
		"absorbed             9,000            18,000    in memory              1,234,567",
		"stored               1,000             2,000      their bytes              8 MiB",
		"operations           1,150             2,300    staged                  1.50 KiB",
		"commits                 10                20    log                        1 KiB",
		"runs                   150               300    behind (lag)             1.50 ms",
		"  late                   0                 7      at the most                2 s",
		"unknown                  0                 0    process (RSS)              1 GiB",
		"dead letters             0                 4    CPU                       12.3 %",
		"",
		"times               p50      p90      p99    p99.9      max     mean      number",
		"commit         none in this time",
		"acknowledged     200 ns   200 ns   200 ns  2.50 ms  2.50 ms  25.2 us       1,000",
		"lateness       none in this time",
	};
	unsigned count = sizeof(lines) / sizeof(*lines);

	view_make();
	durable_screen_draw(&view, 24, 80, &text);
	check_int(text.count, count);
	for (unsigned i = 0; i < count; i++)
		check_line(i, lines[i]);
}

Test(durable_screen, counts_that_have_risen_are_alarms)
{
	view_make();
	durable_screen_draw(&view, 24, 80, &text);
	check_style(4, 14, 12, TOP_RATE);
	check_style(4, 66, 14, TOP_PLAIN);
	for (unsigned line = 10; line <= 12; line++)
		check_style(line, 14, 12, TOP_RATE);
	view.now.late = 8;
	view.now.unknown = 1;
	view.now.dead = 5;
	view.now.runs = 301;
	durable_screen_draw(&view, 24, 80, &text);
	check_style(9, 14, 12, TOP_RATE);
	for (unsigned line = 10; line <= 12; line++)
		check_style(line, 14, 12, TOP_ALARM);
}

Test(durable_screen, each_state_but_open_is_an_alarm)
{
	static const char *const names[] = {"OPEN", "FAILED", "CLOCK_STEPPED", "FULL", "SLOW",
					    "CUT",  "?"};

	for (unsigned state = 0; state < sizeof(names) / sizeof(*names); state++) {
		const char *line = text.line[4].text;

		view_make();
		view.now.state = state;
		durable_screen_draw(&view, 24, 80, &text);
		check_int(strcmp(line + strlen(line) - strlen(names[state]), names[state]), 0);
		check_style(4, 66, 14, state == TW_DURABLE_STATE_OPEN ? TOP_PLAIN : TOP_ALARM);
	}
}

Test(durable_screen, small_terminals_get_what_they_hold)
{
	view_make();
	durable_screen_draw(&view, 15, 30, &text);
	check_int(text.count, 15);
	for (unsigned i = 0; i < text.count; i++)
		check_at_most(strlen(text.line[i].text), 30);
	check_line(2, "timers            a second");
}
