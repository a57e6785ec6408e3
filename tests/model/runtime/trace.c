/* SPDX-License-Identifier: MIT */
#include "runtime/trace.h"

#include "runtime/explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	STEPS_KEPT = 1 << 12,
	STEPS_PRINTED = 400,
	SYMBOLS = 8,
	SYMBOL_BYTES = 256,
	SAID_BYTES = 4096,
};

struct step {
	const char *what;
	const void *address;
	const void *pc;
	uint64_t value;
	int order; /* the memory order; -1: none */
	unsigned from_newest;
	unsigned fiber;
};

static struct {
	struct step step[STEPS_KEPT];
	size_t count;
	char symbol[SYMBOLS][SYMBOL_BYTES];
	unsigned symbol_next;
	char said[SAID_BYTES];
} state MODEL_STATE;

extern char __executable_start[], etext[], __data_start[], _end[]; /* defined by the linker */

void trace_begin(void)
{
	state.count = 0;
}

void trace_access(const char *what, const void *address, int order, uint64_t value,
		  unsigned from_newest, const void *pc)
{
	state.step[state.count++ % STEPS_KEPT] = (struct step){
		.what = what,
		.address = address,
		.pc = pc,
		.value = value,
		.order = order,
		.from_newest = from_newest,
		.fiber = fiber_self()->number,
	};
}

void trace_event(const char *what, const void *address, uint64_t value, const void *pc)
{
	trace_access(what, address, -1, value, 0, pc);
}

void trace_say(const char *format, ...)
{
	size_t used = strlen(state.said);
	va_list list;

	va_start(list, format);
	(void)vsnprintf(state.said + used, SAID_BYTES - used, format, list);
	va_end(list);
	used = strlen(state.said);
	(void)snprintf(state.said + used, SAID_BYTES - used, "\n");
}

static const char *order_text(int order)
{
	static const char *const texts[] = {"relaxed", "consume", "acquire",
					    "release", "acq_rel", "seq_cst"};

	return order >= 0 && order < 6 ? texts[order] : "";
}

/* Reads the output of a command. If the command fails, the text stays empty. */
static void command_read(const char *command, char *ret_text)
{
	FILE *stream = popen(command, "r");
	size_t bytes = 0;

	if (stream != NULL) {
		bytes = fread(ret_text, 1, SYMBOL_BYTES - 1, stream);
		(void)pclose(stream);
	}
	ret_text[bytes] = '\0';
}

/*
 * Changes "function\nfolder/file.c:12" to "function (folder/file.c:12)". Keeps only the path's last
 * two parts.
 */
static void place_shorten(char *text)
{
	char *file = strchr(text, '\n');
	char copy[SYMBOL_BYTES];
	char *end, *cut;

	if (file == NULL)
		return;
	*file++ = '\0';
	end = strpbrk(file, "\n ");
	if (end != NULL)
		*end = '\0';
	cut = strrchr(file, '/');
	while (cut != NULL && cut > file && cut[-1] != '/')
		cut--;
	(void)snprintf(copy, sizeof copy, "%.100s (%.120s)", text, cut != NULL ? cut : file);
	memcpy(text, copy, sizeof copy);
}

/* Finds the name in the debug information, if the programs that read it are installed. */
const char *trace_symbol(const void *address)
{
	const char *at = address;
	char *text = state.symbol[state.symbol_next++ % SYMBOLS];
	char command[SYMBOL_BYTES];
	bool code = at >= __executable_start && at < etext;

	if (code) {
		(void)snprintf(command, sizeof command,
			       "addr2line -f -e /proc/%d/exe %#llx 2>/dev/null", (int)getpid(),
			       (unsigned long long)(uintptr_t)(at - 1));
		command_read(command, text);
		place_shorten(text);
	} else if (at >= __data_start && at < _end) {
		(void)snprintf(command, sizeof command,
			       "nm -n /proc/%d/exe 2>/dev/null | awk '$1 <= \"%016llx\" { s = $3 } "
			       "END { printf \"%%s\", s }'",
			       (int)getpid(), (unsigned long long)(uintptr_t)at);
		command_read(command, text);
	}
	if ((!code && (at < __data_start || at >= _end)) || text[0] == '\0')
		(void)snprintf(text, SYMBOL_BYTES, "%p", address);
	return text;
}

static void step_print(const struct step *step)
{
	printf("  fiber %u: %-8s", step->fiber, step->what);
	if (step->address != NULL)
		printf(" %p", step->address);
	printf(" %s", order_text(step->order));
	if (step->order >= 0)
		printf(" %#llx", (unsigned long long)step->value);
	if (step->from_newest > 0)
		printf(" [%u behind the newest]", step->from_newest);
	printf("%s%s\n", step->pc != NULL ? "   " : "",
	       step->pc != NULL ? trace_symbol(step->pc) : "");
}

void trace_print(void)
{
	size_t from = state.count > STEPS_PRINTED ? state.count - STEPS_PRINTED : 0;

	if (from > 0)
		printf("  (%zu steps before these)\n", from);
	for (size_t i = from; i < state.count; i++)
		step_print(&state.step[i % STEPS_KEPT]);
	printf("%s", state.said);
	(void)fflush(stdout);
}

void model_fail(const char *format, ...)
{
	char text[SAID_BYTES];
	va_list list;

	fibers.running = false;
	va_start(list, format);
	(void)vsnprintf(text, sizeof text, format, list);
	va_end(list);
	trace_print();
	printf("%s\n", text);
	explore_print_choices();
	(void)fflush(NULL);
	_exit(1);
}
