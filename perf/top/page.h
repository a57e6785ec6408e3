/* SPDX-License-Identifier: MIT */
/*
 * A screen of tickwheel-perf top is made line by line. Each call adds a line, as long as the screen
 * is not full.
 */
#ifndef PERF_TOP_PAGE_H
#define PERF_TOP_PAGE_H

#include <stdint.h>
#include <tickwheel.h>

enum {
	/* The largest screen. A larger terminal stays empty beyond these limits. */
	TOP_ROWS_MAX = 64,
	TOP_COLUMNS_MAX = 240,
	PAGE_CELL_BYTES = 32,
};

/* The terminal chooses the colours. */
enum top_style {
	TOP_PLAIN,
	TOP_TITLE,
	TOP_HEADING,
	/* A figure of the last interval. */
	TOP_RATE,
	TOP_BAR,
	/* A figure into which the operator should look. */
	TOP_ALARM,
	TOP_STYLES
};

struct top_line {
	char text[TOP_COLUMNS_MAX + 1];
	/* The style of each character: an enum top_style. */
	uint8_t style[TOP_COLUMNS_MAX + 1];
};

struct top_text {
	unsigned count;
	struct top_line line[TOP_ROWS_MAX];
};

struct page {
	struct top_text *text;
	unsigned rows;
	unsigned columns;
	/* How many empty lines must be left out, because the screen has too few rows. */
	unsigned missing;
};

/* Begins a page. `wanted`: how many lines will be added, empty ones included. */
void page_begin(struct page *ret_page, unsigned rows, unsigned columns, unsigned wanted,
		struct top_text *text);

/* Adds a line, and cuts it at the end of the screen. Returns NULL if the screen is full. */
struct top_line *page_add(struct page *page, enum top_style style, const char *format, ...);

/* Sets the style of a part of a line. If `line` is NULL, does nothing. */
void page_paint(struct top_line *line, enum top_style style, unsigned from, unsigned length);

/* Adds an empty line, if the screen has enough rows. */
void page_gap_add(struct page *page);

void page_title_add(struct page *page, const char *title, double up_s, double interval_s);

/* Adds a line with percentiles, mean and number of a histogram. */
void page_percentiles_add(struct page *page, const char *name,
			  const struct tw_histogram *histogram);

/*
 * Each writes a figure into a cell of PAGE_CELL_BYTES, and returns the cell. page_grouped writes
 * 1234567 as 1,234,567; the others write three digits and a unit.
 */
const char *page_grouped(char *cell, uint64_t number);
const char *page_time(char *cell, double ns);
const char *page_bytes(char *cell, uint64_t bytes);

/* Returns how much a counter grew per second. */
uint64_t page_rate(double interval_s, uint64_t before, uint64_t now);

#endif
