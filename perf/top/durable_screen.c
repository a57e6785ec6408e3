/* SPDX-License-Identifier: MIT */
/*
 * The screen of tickwheel-perf top --durable.
 */
#include "top/durable_screen.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel/durable.h>

enum { PAIR_ROWS = 9, LINES = 18 };

/* Where the figures of the counters begin on the screen, and how wide they are. */
enum { RATE_COLUMN = 14, RATE_WIDTH = 12, HELD_COLUMN = 66, HELD_WIDTH = 14 };

/*
 * A row has two halves. The left one (counted) shows a counter, the right one (held) shows a
 * present value.
 */
struct counted {
	const char *name;
	uint64_t before;
	uint64_t now;
	/* If the counter has grown, the figure has the style TOP_ALARM. */
	bool alarming;
};

struct held {
	const char *name;
	char value[PAGE_CELL_BYTES];
	bool bad;
};

static const char *state_name(uint64_t state)
{
	static const char *const names[] = {
		[TW_DURABLE_STATE_OPEN] = "OPEN",
		[TW_DURABLE_STATE_FAILED] = "FAILED",
		[TW_DURABLE_STATE_CLOCK_STEPPED] = "CLOCK_STEPPED",
		[TW_DURABLE_STATE_FULL] = "FULL",
		[TW_DURABLE_STATE_SLOW] = "SLOW",
		[TW_DURABLE_STATE_CUT] = "CUT",
	};

	return state < sizeof(names) / sizeof(*names) ? names[state] : "?";
}

static void counted_fill(const struct durable_view *view, struct counted *row)
{
	const struct tw_durable_stats *a = &view->before;
	const struct tw_durable_stats *b = &view->now;
	const struct counted all[PAIR_ROWS] = {
		{"scheduled", a->scheduled, b->scheduled, false},
		{"absorbed", a->absorbed, b->absorbed, false},
		{"stored", a->stored, b->stored, false},
		{"operations", a->operations, b->operations, false},
		{"commits", a->commits, b->commits, false},
		{"runs", a->runs, b->runs, false},
		{"  late", a->late, b->late, true},
		{"unknown", a->unknown, b->unknown, true},
		{"dead letters", a->dead, b->dead, true},
	};

	memcpy(row, all, sizeof(all));
}

static void held_fill(const struct durable_view *view, struct held *row)
{
	static const char *const names[PAIR_ROWS] = {
		"state",        "in memory",     "  their bytes", "staged", "log",
		"behind (lag)", "  at the most", "process (RSS)", "CPU",
	};
	const struct tw_durable_stats *now = &view->now;

	for (unsigned i = 0; i < PAIR_ROWS; i++)
		row[i] = (struct held){.name = names[i]};
	row[0].bad = now->state != TW_DURABLE_STATE_OPEN;
	(void)snprintf(row[0].value, PAGE_CELL_BYTES, "%s", state_name(now->state));
	page_grouped(row[1].value, now->in_memory);
	page_bytes(row[2].value, now->memory_bytes);
	page_bytes(row[3].value, now->staged_bytes);
	page_bytes(row[4].value, now->log_bytes);
	page_time(row[5].value, (double)now->lag_ns);
	page_time(row[6].value, (double)now->lag_max_ns);
	page_bytes(row[7].value, view->rss_bytes);
	(void)snprintf(row[8].value, PAGE_CELL_BYTES, "%.1f %%", view->cpu_percent);
}

static void pair_add(struct page *page, const struct durable_view *view,
		     const struct counted *counted, const struct held *held)
{
	char rate[PAGE_CELL_BYTES], total[PAGE_CELL_BYTES];
	struct top_line *line = page_add(
		page, TOP_PLAIN, "%-14s%12s%18s    %-18s%14s", counted->name,
		page_grouped(rate, page_rate(view->interval_s, counted->before, counted->now)),
		page_grouped(total, counted->now), held->name, held->value);
	bool bad = counted->alarming && counted->now > counted->before;

	page_paint(line, bad ? TOP_ALARM : TOP_RATE, RATE_COLUMN, RATE_WIDTH);
	page_paint(line, held->bad ? TOP_ALARM : TOP_PLAIN, HELD_COLUMN, HELD_WIDTH);
}

static void counters_add(struct page *page, const struct durable_view *view)
{
	struct counted counted[PAIR_ROWS];
	struct held held[PAIR_ROWS];

	counted_fill(view, counted);
	held_fill(view, held);
	page_add(page, TOP_HEADING, "%-14s%12s%18s    %-18s%14s", "timers", "a second", "in all",
		 "now", "");
	for (unsigned i = 0; i < PAIR_ROWS; i++)
		pair_add(page, view, &counted[i], &held[i]);
}

static void histograms_add(struct page *page, const struct durable_view *view)
{
	page_add(page, TOP_HEADING, "%-14s%9s%9s%9s%9s%9s%9s%12s", "times", "p50", "p90", "p99",
		 "p99.9", "max", "mean", "number");
	page_percentiles_add(page, "commit", &view->commit);
	page_percentiles_add(page, "acknowledged", &view->ack);
	page_percentiles_add(page, "lateness", &view->lateness);
}

void durable_screen_draw(const struct durable_view *view, unsigned rows, unsigned columns,
			 struct top_text *ret_text)
{
	struct page page;

	page_begin(&page, rows, columns, LINES, ret_text);
	page_title_add(&page, view->title, view->up_s, view->interval_s);
	page_gap_add(&page);
	counters_add(&page, view);
	page_gap_add(&page);
	histograms_add(&page, view);
}
