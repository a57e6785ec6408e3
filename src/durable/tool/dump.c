/* SPDX-License-Identifier: MIT */
#include "durable/tool/dump.h"

#include "durable/tool/line.h"
#include "durable/tool/print.h"
#include "durable/tool/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct dump {
	struct twi_tool_file *file;
	const struct twi_tool_output *output;
	struct twi_tool_progress progress;
	uint64_t seen, written;
};

static int print_head(struct twi_tool_file *file, FILE *out)
{
	const struct twi_meta *meta = &file->meta;
	struct tw_durable_clock clock;
	int result = twi_clock_get(&file->database, &clock);

	if (result != 0 && result != -ENOENT)
		return result;
	fprintf(out, "{\"tickwheel_durable_dump\":%d,\"serial\":%" PRId64 ",\"clean\":%s",
		TWI_TOOL_FORMAT, meta->serial, meta->clean != 0 ? "true" : "false");
	if (meta->wall_ns != INT64_MIN)
		fprintf(out, ",\"highest_ns\":%" PRId64, meta->wall_ns);
	if (result == 0) {
		fputs(",\"boot\":", out);
		twi_tool_json_text(out, clock.boot, strlen(clock.boot));
		fprintf(out, ",\"base_ns\":%" PRId64 ",\"step_ns\":%" PRId64, clock.base_ns,
			clock.step_ns);
	}
	fputs(",\"kinds\":", out);
	twi_tool_print_kinds(out, &file->kinds, false);
	if (twi_tool_any_paused(&file->kinds)) {
		fputs(",\"paused\":", out);
		twi_tool_print_kinds(out, &file->kinds, true);
	}
	fputs("}\n", out);
	return 0;
}

static int entry_print(void *to, const struct twi_tool_entry *entry)
{
	struct dump *dump = to;
	const struct twi_tool_output *output = dump->output;

	if (entry->error != 0)
		return entry->error;
	twi_tool_progress(&dump->progress, ++dump->seen);
	if (!twi_tool_wanted(&dump->file->kinds, output->kind, entry->row.kind))
		return 0;
	twi_tool_print(output->out, &dump->file->kinds, &entry->row,
		       entry->row.dead ? &entry->ended_ns : NULL, true);
	dump->written++;
	return 0;
}

int twi_tool_dump(struct twi_tool_file *file, const struct twi_tool_output *output)
{
	struct dump dump = {.file = file, .output = output};
	int result = twi_tool_progress_rows(&dump.progress, file);

	if (result == 0)
		result = print_head(file, output->out);
	if (result == 0)
		result = twi_tool_walk(file, TWI_TOOL_PENDING, entry_print, &dump);
	if (result == 0)
		result = twi_tool_walk(file, TWI_TOOL_DEAD, entry_print, &dump);
	twi_tool_progress_end(&dump.progress);
	if (result == 0)
		fprintf(output->out, "{\"rows\":%" PRIu64 "}\n", dump.written);
	return result;
}
