/* SPDX-License-Identifier: MIT */
/*
 * The screen of tickwheel-perf top.
 */
#include "top/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CELL_BYTES = PAGE_CELL_BYTES, PAIR_ROWS = 8, BAR_FROM_COLUMN = 44 };

/* Where the figures of the counters begin on the screen, and how wide they are. */
enum { RATE_COLUMN = 14, RATE_WIDTH = 12, HELD_COLUMN = 66, HELD_WIDTH = 14 };

/*
 * The hierarchical wheel: each level's slots are 2^LEVEL_STEP_BITS times as wide as those of the
 * level below.
 */
enum { LEVEL_STEP_BITS = 6, LEVELS = 11 };

/* How many lines the screen has without those of the levels. Empty lines count too. */
enum { LINES_BESIDE_LEVELS = 21 };

static uint64_t rate(const struct top_view *view, uint64_t before, uint64_t now)
{
	return page_rate(view->interval_s, before, now);
}

/*
 * A row has two halves. The left one (counted) shows a counter, the right one (held) shows a
 * present value.
 */
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

/*
 * Returns whether the worker is too slow: more than a tenth of all ticks are late. A few late ticks
 * are no sign of that, because the system causes them.
 */
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
	page_grouped(row[0].value, now->pending);
	page_grouped(row[1].value, now->ingress);
	page_grouped(row[2].value, now->unreclaimed);
	page_grouped(row[3].value, rate(view, view->before.catch_up_ticks, now->catch_up_ticks));
	page_bytes(row[4].value, now->slab_bytes);
	page_bytes(row[5].value, now->wheel_bytes);
	page_bytes(row[6].value, view->rss_bytes);
	(void)snprintf(row[7].value, CELL_BYTES, "%.1f %%", view->cpu_percent);
}

static void counters_add(struct page *page, const struct top_view *view)
{
	struct counted counted[PAIR_ROWS];
	struct held held[PAIR_ROWS];
	char of_rate[CELL_BYTES], total[CELL_BYTES];

	counted_fill(view, counted);
	held_fill(view, held);
	page_add(page, TOP_HEADING, "%-14s%12s%18s    %-18s%14s", "timeouts", "a second", "in all",
		 "now", "");
	for (unsigned i = 0; i < PAIR_ROWS; i++) {
		struct top_line *line = page_add(
			page, TOP_PLAIN, "%-14s%12s%18s    %-18s%14s", counted[i].name,
			page_grouped(of_rate, rate(view, counted[i].before, counted[i].now)),
			page_grouped(total, counted[i].now), held[i].name, held[i].value);

		page_paint(line, counted[i].bad ? TOP_ALARM : TOP_RATE, RATE_COLUMN, RATE_WIDTH);
		page_paint(line, held[i].bad ? TOP_ALARM : TOP_PLAIN, HELD_COLUMN, HELD_WIDTH);
	}
}

static void histograms_add(struct page *page, const struct top_view *view)
{
	page_add(page, TOP_HEADING, "%-14s%9s%9s%9s%9s%9s%9s%12s", "runs", "p50", "p90", "p99",
		 "p99.9", "max", "mean", "number");
	page_percentiles_add(page, "lateness", &view->lateness);
	page_percentiles_add(page, "duration", &view->duration);
}

static void wakeups_add(struct page *page, const struct top_view *view)
{
	const struct tw_stats *a = &view->before;
	const struct tw_stats *b = &view->now;
	char cell[5][CELL_BYTES];

	page_add(page, TOP_HEADING, "%-14s%13s%13s%13s%13s%14s", "wake-ups", "by deadline",
		 "by producer", "by a call", "otherwise", "turns");
	page_add(page, TOP_PLAIN, "%-14s%13s%13s%13s%13s%14s", "a second",
		 page_grouped(cell[0], rate(view, a->woken_by_deadline, b->woken_by_deadline)),
		 page_grouped(cell[1], rate(view, a->woken_by_producer, b->woken_by_producer)),
		 page_grouped(cell[2], rate(view, a->woken_by_call, b->woken_by_call)),
		 page_grouped(cell[3], rate(view, a->woken_otherwise, b->woken_otherwise)),
		 page_grouped(cell[4], rate(view, a->turns, b->turns)));
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
	page_paint(page_add(page, TOP_PLAIN, "level %-3u slots of %-9s%14s  %s", level,
			    page_time(width, width_ns),
			    page_grouped(pending, view->levels.pending[level]), cells),
		   TOP_BAR, BAR_FROM_COLUMN, TOP_COLUMNS_MAX - BAR_FROM_COLUMN);
}

static void levels_add(struct page *page, const struct top_view *view)
{
	const struct top_levels *levels = &view->levels;
	uint64_t most = levels_most(levels);
	char age[CELL_BYTES] = "";

	if (!levels->known) {
		page_add(page, TOP_HEADING, "pending by level: the worker did not tell in time");
		return;
	}
	if (levels->age_s >= 0.5)
		(void)snprintf(age, sizeof(age), "  %.0f s ago", levels->age_s);
	page_add(page, TOP_HEADING, "%-28s%14s%s", "levels of the wheel", "pending", age);
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

void top_screen_draw(const struct top_view *view, unsigned rows, unsigned columns,
		     struct top_text *ret_text)
{
	struct page page;

	page_begin(&page, rows, columns, LINES_BESIDE_LEVELS + levels_shown(&view->levels),
		   ret_text);
	page_title_add(&page, view->title, view->up_s, view->interval_s);
	page_gap_add(&page);
	counters_add(&page, view);
	page_gap_add(&page);
	histograms_add(&page, view);
	page_gap_add(&page);
	wakeups_add(&page, view);
	page_gap_add(&page);
	levels_add(&page, view);
}
