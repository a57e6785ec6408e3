/* SPDX-License-Identifier: MIT */
/*
 * Lines and figures of a screen of tickwheel-perf top.
 */
#include "top/page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CELL_BYTES = PAGE_CELL_BYTES };

static void blanks_cut(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && text[length - 1] == ' ')
		text[--length] = '\0';
}

struct top_line *page_add(struct page *page, enum top_style style, const char *format, ...)
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

void page_paint(struct top_line *line, enum top_style style, unsigned from, unsigned length)
{
	if (line)
		memset(line->style + from, (int)style, length);
}

const char *page_grouped(char *cell, uint64_t number)
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

/* Writes a value with three digits and its unit. */
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

const char *page_time(char *cell, double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s", NULL};

	return scaled(cell, ns, units, 1000);
}

const char *page_bytes(char *cell, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};

	return scaled(cell, (double)bytes, units, 1024);
}

void page_percentiles_add(struct page *page, const char *name, const struct tw_histogram *histogram)
{
	static const double percents[] = {50, 90, 99, 99.9, 100};
	char cell[5][CELL_BYTES], mean[CELL_BYTES], count[CELL_BYTES];

	if (histogram->count == 0) {
		page_add(page, TOP_PLAIN, "%-14s none in this time", name);
		return;
	}
	for (unsigned i = 0; i < 5; i++)
		page_time(cell[i], (double)tw_histogram_percentile(histogram, percents[i]));
	page_add(page, TOP_PLAIN, "%-14s%9s%9s%9s%9s%9s%9s%12s", name, cell[0], cell[1], cell[2],
		 cell[3], cell[4],
		 page_time(mean, (double)histogram->sum_ns / (double)histogram->count),
		 page_grouped(count, histogram->count));
}

void page_gap_add(struct page *page)
{
	if (page->missing > 0)
		page->missing--;
	else
		page_add(page, TOP_PLAIN, "%s", "");
}

void page_title_add(struct page *page, const char *title, double up_s, double interval_s)
{
	page_add(page, TOP_TITLE, "%s", title);
	page_add(page, TOP_PLAIN, "up %.0f s, figures of the last %.2f s; q ends", up_s,
		 interval_s);
}

uint64_t page_rate(double interval_s, uint64_t before, uint64_t now)
{
	return interval_s > 0 ? (uint64_t)((double)(now - before) / interval_s + 0.5) : 0;
}

void page_begin(struct page *ret_page, unsigned rows, unsigned columns, unsigned wanted,
		struct top_text *text)
{
	*ret_page = (struct page){
		.text = text,
		.rows = rows < TOP_ROWS_MAX ? rows : TOP_ROWS_MAX,
		.columns = columns < TOP_COLUMNS_MAX ? columns : TOP_COLUMNS_MAX,
	};
	if (wanted > ret_page->rows)
		ret_page->missing = wanted - ret_page->rows;
	text->count = 0;
}
