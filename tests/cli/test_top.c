/* SPDX-License-Identifier: MIT */
/*
 * The screen of tickwheel-perf top: known figures must give exactly these lines, on terminals of
 * several sizes.
 *
 * Seen to fail with these defects: a line is longer than the terminal; a rate is computed over the
 * wrong time; a unit changes at the wrong value; a level is left out; a bar has no style; old
 * rejections cause an alarm.
 */
#include "check.h"
#include "top/screen.h"

#include <stdio.h>
#include <string.h>

static struct top_view view;
static struct top_text text;

/*
 * Fills in the figures of two seconds in which 20,000 timeouts were scheduled, 1,000 ran, and the
 * worker woke up 400 times.
 */
static void view_make(void)
{
	view = (struct top_view){
		.title = "an engine",
		.up_s = 61,
		.interval_s = 2,
		.tick_ns = 1000000,
		.before = {.size = sizeof(struct tw_stats), .scheduled = 1000000, .turns = 10},
		.now = {.size = sizeof(struct tw_stats),
			.scheduled = 1020000,
			.cancelled = 18000,
			.cancelled_early = 3,
			.expired = 1000,
			.pending = 1000999,
			.ingress = 999,
			.unreclaimed = 12,
			.catch_up_ticks = 4,
			.slab_bytes = 8 << 20,
			.wheel_bytes = 1536,
			.turns = 510,
			.woken_by_deadline = 390,
			.woken_by_producer = 8,
			.woken_by_call = 2},
		.lateness = {.size = sizeof(struct tw_histogram)},
		.duration = {.size = sizeof(struct tw_histogram)},
		.levels = {.known = true, .count = 2, .pending = {250000, 750000}},
		.rss_bytes = 1073741824,
		.cpu_percent = 12.34,
	};
	for (int i = 0; i < 1000; i++)
		check_int(tw_histogram_record(&view.lateness, i < 990 ? 200 : 2500000), 0);
}

static void check_text(const char *text_is, const char *expected)
{
	if (strcmp(text_is, expected) != 0)
		fprintf(stderr, "not \"%s\"\nbut \"%s\"\n", expected, text_is);
	check_int(strcmp(text_is, expected), 0);
}

static void check_line(unsigned number, const char *line)
{
	check_true(number < text.count);
	check_text(text.line[number].text, line);
}

Test(top, every_figure_has_its_place)
{
	static const char *const lines[] = {
		"an engine",
		"up 61 s, figures of the last 2.00 s; q ends",
		"",
		"timeouts          a second            in all    now",
		"scheduled           10,000         1,020,000    pending                1,000,999",
		"cancelled            9,000            18,000      in ingress                 999",
		"  in ingress             2                 3    not reclaimed yet             12",
		"expired                500             1,000    late ticks/s                   2",
		"rescheduled              0                 0    timeouts' slabs            8 MiB",
		"transferred              0                 0    wheel                   1.50 KiB",
		"cascaded                 0                 0    process (RSS)              1 GiB",
		"rejected                 0                 0    CPU                       12.3 %",
		"",
		"runs                p50      p90      p99    p99.9      max     mean      number",
		"lateness         200 ns   200 ns   200 ns  2.50 ms  2.50 ms  25.2 us       1,000",
		"duration       none in this time",
		"",
		"wake-ups        by deadline  by producer    by a call    otherwise         turns",
		"a second                195            4            1            0           250",
		"",
		"levels of the wheel                pending",
		"level 0   slots of 1 ms            250,000  ############",
		"level 1   slots of 64 ms           750,000  ####################################",
	};
	unsigned count = sizeof(lines) / sizeof(*lines);

	view_make();
	top_screen_draw(&view, 24, 80, &text);
	check_int(text.count, count);
	for (unsigned i = 0; i < count; i++)
		check_line(i, lines[i]);
}

static void check_style(unsigned line, unsigned from, unsigned length, enum top_style style)
{
	for (unsigned i = from; i < from + length; i++)
		check_int(text.line[line].style[i], style);
}

Test(top, each_part_has_its_style)
{
	view_make();
	top_screen_draw(&view, 24, 80, &text);
	check_style(0, 0, 9, TOP_TITLE);
	check_style(1, 0, 40, TOP_PLAIN);
	check_style(3, 0, 50, TOP_HEADING);
	check_style(4, 0, 14, TOP_PLAIN);
	check_style(4, 14, 12, TOP_RATE);
	check_style(4, 26, 54, TOP_PLAIN);
	check_style(21, 43, 1, TOP_PLAIN);
	check_style(21, 44, 36, TOP_BAR);
}

/* In two seconds there are 2,000 ticks of 1 ms. */
Test(top, late_ticks_beyond_a_tenth_and_new_rejections_are_alarms)
{
	view_make();
	view.now.catch_up_ticks = 200;
	top_screen_draw(&view, 24, 80, &text);
	check_style(7, 66, 14, TOP_PLAIN);
	check_style(11, 14, 12, TOP_RATE);
	view.now.catch_up_ticks = 201;
	view.now.rejected = 1;
	top_screen_draw(&view, 24, 80, &text);
	check_style(7, 66, 14, TOP_ALARM);
	check_style(11, 14, 12, TOP_ALARM);
	view.before.rejected = 1;
	view.before.catch_up_ticks = 1;
	top_screen_draw(&view, 24, 80, &text);
	check_style(7, 66, 14, TOP_PLAIN);
	check_style(11, 14, 12, TOP_RATE);
}

/* No figure may make a line too long. */
Test(top, no_line_is_longer_than_the_terminal)
{
	static const unsigned sizes[][2] = {{24, 80}, {1, 1}, {0, 0}, {10, 40}, {200, 1000}};

	view_make();
	view.now.scheduled = UINT64_MAX;
	view.now.catch_up_ticks = UINT64_MAX;
	view.interval_s = 1e-9;
	view.levels.count = TOP_LEVELS_MAX;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		top_screen_draw(&view, sizes[i][0], sizes[i][1], &text);
		check_true(text.count <= sizes[i][0] && text.count <= TOP_ROWS_MAX);
		for (unsigned k = 0; k < text.count; k++)
			check_true(strlen(text.line[k].text) <= sizes[i][1]);
	}
}

/* A wide terminal has longer bars. A count of one must still be visible. */
Test(top, bars_fill_a_wide_terminal_and_show_a_single_timeout)
{
	view_make();
	view.levels.pending[0] = 1;
	top_screen_draw(&view, 24, 120, &text);
	check_line(21, "level 0   slots of 1 ms                  1  #");
	check_int((int)strlen(text.line[22].text), 120);
	view.levels.pending[0] = 0;
	top_screen_draw(&view, 24, 120, &text);
	check_line(21, "level 0   slots of 1 ms                  0");
}

/* A short screen loses its empty lines first, so that no level is left out. */
Test(top, levels_on_a_short_screen)
{
	view_make();
	view.levels.count = 7;
	view.levels.age_s = 12;
	top_screen_draw(&view, 24, 80, &text);
	check_int(text.count, 24);
	check_line(2, "timeouts          a second            in all    now");
	check_line(16, "levels of the wheel                pending  12 s ago");
	check_line(23, "level 6   slots of 68719477 s             0");
	top_screen_draw(&view, 26, 80, &text);
	check_int(text.count, 26);
	check_line(2, "timeouts          a second            in all    now");
	check_line(25, "level 6   slots of 68719477 s             0");
}

Test(top, missing_levels_are_explained)
{
	view_make();
	view.levels.known = false;
	top_screen_draw(&view, 24, 80, &text);
	check_int(text.count, 21);
	check_line(20, "pending by level: the worker did not tell in time");
}

Test(top, units_change_where_three_digits_end)
{
	static const struct {
		uint64_t bytes;
		const char *said;
	} rows[] = {
		{0, "       0 B"},     {1, "       1 B"},      {1023, "1023 B"},
		{1024, "    1 KiB"},   {1100, " 1.07 KiB"},    {10700, " 10.4 KiB"},
		{107000, "  104 KiB"}, {1500000, " 1.43 MiB"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *line;

		view_make();
		view.rss_bytes = rows[i].bytes;
		top_screen_draw(&view, 24, 80, &text);
		line = text.line[10].text;
		check_text(line + strlen(line) - strlen(rows[i].said), rows[i].said);
	}
}

Test(top, lines_of_a_dump)
{
	struct top_levels levels = {.known = true};

	top_levels_take(&levels, "level 0: 12");
	top_levels_take(&levels, "level 3: 18446744073709551615");
	top_levels_take(&levels, "slot 17 of level 1: 9");
	top_levels_take(&levels, "wheel: 21 in it, tick 5");
	top_levels_take(&levels, "level 16: 1");
	top_levels_take(&levels, "level x: 1");
	top_levels_take(&levels, "");
	check_int(levels.count, 4);
	check_true(levels.pending[0] == 12 && levels.pending[1] == 0 && levels.pending[2] == 0);
	check_true(levels.pending[3] == UINT64_MAX);
}
