/* SPDX-License-Identifier: MIT */
/*
 * The screen of tickwheel-perf top.
 */
#include "top/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CELL_BYTES = 32, PAIR_ROWS = 8, BAR_FROM_COLUMN = 44 };

/* Where the figures of the counters are. */
enum { RATE_COLUMN = 14, RATE_WIDTH = 12, HELD_COLUMN = 66, HELD_WIDTH = 14 };

/* Of the levels of the hierarchical wheel each has slots so many times as wide as the one below. */
enum { LEVEL_STEP_BITS = 6, LEVELS = 11 };

/* Empty ones included. */
enum { LINES_BESIDE_LEVELS = 21 };

struct page {
	struct top_text *text;
	unsigned rows;
	unsigned columns;
	/* Empty lines that there is no room for. */
	unsigned missing;
};

static void blanks_cut(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && text[length - 1] == ' ')
		text[--length] = '\0';
}

/* The next line; cut where the screen ends. Returns NULL if the screen is full. */
static struct top_line *add(struct page *page, enum top_style style, const char *format, ...)
{
	struct top_line *line = &page->text->line[page->text->count];
	va_list arguments;

	if (page->text->count == page->rows)
		return NULL;
	va_start(arguments, format);
	(void)vsnprintf(line->text, page->columns + 1, format, arguments);
	va_end(arguments);
	blanks_cut(line->text);
	memset(line->style, (int)style, sizeof(line->style));
	page->text->count++;
	return line;
}

static void paint(struct top_line *line, enum top_style style, unsigned from, unsigned length)
{
	if (line)
		memset(line->style + from, (int)style, length);
}

/* 1234567: 1,234,567. */
static const char *grouped(char *cell, uint64_t number)
{
	char digits[CELL_BYTES];
	int count = snprintf(digits, sizeof(digits), "%" PRIu64, number);
	int at = 0;

	for (int i = 0; i < count; i++) {
		if (i > 0 && (count - i) % 3 == 0)
			cell[at++] = ',';
		cell[at++] = digits[i];
	}
	cell[at] = '\0';
	return cell;
}

/* Three digits of it, and its unit. */
static const char *scaled(char *cell, double value, const char *const *units, double step)
{
	while (value >= step * 0.9995 && units[1] != NULL) {
		value /= step;
		units++;
	}
	(void)snprintf(cell, CELL_BYTES, "%.*f %s",
		       value >= 99.95 || value == (double)(int)value ? 0
		       : value >= 9.995                              ? 1
								     : 2,
		       value, *units);
	return cell;
}

static const char *time_text(char *cell, double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s", NULL};

	return scaled(cell, ns, units, 1000);
}

static const char *bytes_text(char *cell, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};

	return scaled(cell, (double)bytes, units, 1024);
}

static uint64_t rate(const struct top_view *view, uint64_t before, uint64_t now)
{
	return view->interval_s > 0 ? (uint64_t)((double)(now - before) / view->interval_s + 0.5)
				    : 0;
}

/* The left half: what has happened. The right one: what is. */
struct counted {
	const char *name;
	uint64_t before;
	uint64_t now;
	bool bad;
};

struct held {
	const char *name;
	char value[CELL_BYTES];
	bool bad;
};

static void counted_fill(const struct top_view *view, struct counted *row)
{
	const struct tw_stats *a = &view->before;
	const struct tw_stats *b = &view->now;
	const struct counted all[PAIR_ROWS] = {
		{"scheduled", a->scheduled, b->scheduled, false},
		{"cancelled", a->cancelled, b->cancelled, false},
		{"  in ingress", a->cancelled_early, b->cancelled_early, false},
		{"expired", a->expired, b->expired, false},
		{"rescheduled", a->rescheduled, b->rescheduled, false},
		{"transferred", a->transferred, b->transferred, false},
		{"cascaded", a->cascaded, b->cascaded, false},
		{"rejected", a->rejected, b->rejected, b->rejected > a->rejected},
	};

	memcpy(row, all, sizeof(all));
}

/* A few late ticks are the system's. If more than a tenth of all are late, the worker is too slow. */
static bool falls_behind(const struct top_view *view)
{
	uint64_t late = view->now.catch_up_ticks - view->before.catch_up_ticks;

	return (double)late * (double)view->tick_ns > view->interval_s * 1e9 / 10;
}

static void held_fill(const struct top_view *view, struct held *row)
{
	static const char *const names[PAIR_ROWS] = {
		"pending",         "  in ingress", "not reclaimed yet", "late ticks/s",
		"timeouts' slabs", "wheel",        "process (RSS)",     "CPU",
	};
	const struct tw_stats *now = &view->now;

	for (unsigned i = 0; i < PAIR_ROWS; i++)
		row[i] = (struct held){.name = names[i]};
	row[3].bad = falls_behind(view);
	grouped(row[0].value, now->pending);
	grouped(row[1].value, now->ingress);
	grouped(row[2].value, now->unreclaimed);
	grouped(row[3].value, rate(view, view->before.catch_up_ticks, now->catch_up_ticks));
	bytes_text(row[4].value, now->slab_bytes);
	bytes_text(row[5].value, now->wheel_bytes);
	bytes_text(row[6].value, view->rss_bytes);
	(void)snprintf(row[7].value, CELL_BYTES, "%.1f %%", view->cpu_percent);
}

static void counters_add(struct page *page, const struct top_view *view)
{
	struct counted counted[PAIR_ROWS];
	struct held held[PAIR_ROWS];
	char of_rate[CELL_BYTES], total[CELL_BYTES];

	counted_fill(view, counted);
	held_fill(view, held);
	add(page, TOP_HEADING, "%-14s%12s%18s    %-18s%14s", "timeouts", "a second", "in all",
	    "now", "");
	for (unsigned i = 0; i < PAIR_ROWS; i++) {
		struct top_line *line =
			add(page, TOP_PLAIN, "%-14s%12s%18s    %-18s%14s", counted[i].name,
			    grouped(of_rate, rate(view, counted[i].before, counted[i].now)),
			    grouped(total, counted[i].now), held[i].name, held[i].value);

		paint(line, counted[i].bad ? TOP_ALARM : TOP_RATE, RATE_COLUMN, RATE_WIDTH);
		paint(line, held[i].bad ? TOP_ALARM : TOP_PLAIN, HELD_COLUMN, HELD_WIDTH);
	}
}

static void percentiles_add(struct page *page, const char *name,
			    const struct tw_histogram *histogram)
{
	static const double percents[] = {50, 90, 99, 99.9, 100};
	char cell[5][CELL_BYTES], mean[CELL_BYTES], count[CELL_BYTES];

	if (histogram->count == 0) {
		add(page, TOP_PLAIN, "%-14s none in this time", name);
		return;
	}
	for (unsigned i = 0; i < 5; i++)
		time_text(cell[i], (double)tw_histogram_percentile(histogram, percents[i]));
	add(page, TOP_PLAIN, "%-14s%9s%9s%9s%9s%9s%9s%12s", name, cell[0], cell[1], cell[2],
	    cell[3], cell[4], time_text(mean, (double)histogram->sum_ns / (double)histogram->count),
	    grouped(count, histogram->count));
}

static void histograms_add(struct page *page, const struct top_view *view)
{
	add(page, TOP_HEADING, "%-14s%9s%9s%9s%9s%9s%9s%12s", "runs", "p50", "p90", "p99", "p99.9",
	    "max", "mean", "number");
	percentiles_add(page, "lateness", &view->lateness);
	percentiles_add(page, "duration", &view->duration);
}

static void wakeups_add(struct page *page, const struct top_view *view)
{
	const struct tw_stats *a = &view->before;
	const struct tw_stats *b = &view->now;
	char cell[5][CELL_BYTES];

	add(page, TOP_HEADING, "%-14s%13s%13s%13s%13s%14s", "wake-ups", "by deadline",
	    "by producer", "by a call", "otherwise", "turns");
	add(page, TOP_PLAIN, "%-14s%13s%13s%13s%13s%14s", "a second",
	    grouped(cell[0], rate(view, a->woken_by_deadline, b->woken_by_deadline)),
	    grouped(cell[1], rate(view, a->woken_by_producer, b->woken_by_producer)),
	    grouped(cell[2], rate(view, a->woken_by_call, b->woken_by_call)),
	    grouped(cell[3], rate(view, a->woken_otherwise, b->woken_otherwise)),
	    grouped(cell[4], rate(view, a->turns, b->turns)));
}

static unsigned levels_shown(const struct top_levels *levels)
{
	return levels->count < LEVELS ? levels->count : LEVELS;
}

static uint64_t levels_most(const struct top_levels *levels)
{
	uint64_t most = 1;

	for (unsigned i = 0; i < levels->count; i++)
		if (levels->pending[i] > most)
			most = levels->pending[i];
	return most;
}

static void bar(const struct page *page, char *cells, uint64_t part, uint64_t most)
{
	unsigned room = page->columns > BAR_FROM_COLUMN ? page->columns - BAR_FROM_COLUMN : 0;
	unsigned length = (unsigned)((double)part / (double)most * (double)room + 0.5);

	if (length == 0 && part > 0 && room > 0)
		length = 1;
	memset(cells, '#', length);
	cells[length] = '\0';
}

static void level_add(struct page *page, const struct top_view *view, unsigned level, uint64_t most)
{
	double width_ns = (double)view->tick_ns * (double)(UINT64_C(1) << level * LEVEL_STEP_BITS);
	char width[CELL_BYTES], pending[CELL_BYTES], cells[TOP_COLUMNS_MAX + 1];

	bar(page, cells, view->levels.pending[level], most);
	paint(add(page, TOP_PLAIN, "level %-3u slots of %-9s%14s  %s", level,
		  time_text(width, width_ns), grouped(pending, view->levels.pending[level]), cells),
	      TOP_BAR, BAR_FROM_COLUMN, TOP_COLUMNS_MAX - BAR_FROM_COLUMN);
}

static void gap_add(struct page *page)
{
	if (page->missing > 0)
		page->missing--;
	else
		add(page, TOP_PLAIN, "%s", "");
}

static void levels_add(struct page *page, const struct top_view *view)
{
	const struct top_levels *levels = &view->levels;
	uint64_t most = levels_most(levels);
	char age[CELL_BYTES] = "";

	if (!levels->known) {
		add(page, TOP_HEADING, "pending by level: the worker did not tell in time");
		return;
	}
	if (levels->age_s >= 0.5)
		(void)snprintf(age, sizeof(age), "  %.0f s ago", levels->age_s);
	add(page, TOP_HEADING, "%-28s%14s%s", "levels of the wheel", "pending", age);
	for (unsigned i = 0; i < levels_shown(levels); i++)
		level_add(page, view, i, most);
}

void top_levels_take(struct top_levels *levels, const char *line)
{
	unsigned level;
	uint64_t pending;

	if (sscanf(line, "level %u: %" SCNu64, &level, &pending) != 2 || level >= TOP_LEVELS_MAX)
		return;
	levels->pending[level] = pending;
	if (level >= levels->count)
		levels->count = level + 1;
}

static void title_add(struct page *page, const struct top_view *view)
{
	add(page, TOP_TITLE, "%s", view->title);
	add(page, TOP_PLAIN, "up %.0f s, figures of the last %.2f s; q ends", view->up_s,
	    view->interval_s);
}

void top_screen_draw(const struct top_view *view, unsigned rows, unsigned columns,
		     struct top_text *ret_text)
{
	struct page page = {
		.text = ret_text,
		.rows = rows < TOP_ROWS_MAX ? rows : TOP_ROWS_MAX,
		.columns = columns < TOP_COLUMNS_MAX ? columns : TOP_COLUMNS_MAX,
	};

	unsigned wanted = LINES_BESIDE_LEVELS + levels_shown(&view->levels);

	if (wanted > page.rows)
		page.missing = wanted - page.rows;
	ret_text->count = 0;
	title_add(&page, view);
	gap_add(&page);
	counters_add(&page, view);
	gap_add(&page);
	histograms_add(&page, view);
	gap_add(&page);
	wakeups_add(&page, view);
	gap_add(&page);
	levels_add(&page, view);
}
