/* SPDX-License-Identifier: MIT */
/*
 * Explores the protocol of durable timers on a server that machines share
 * (docs/internals/durable-shared.md). Visits all states that two processes, their server and their
 * users can reach with a bounded number of faults.
 *
 * usage: durable-protocol [--timers 1|2] [--faults 0..3] [--cancels 0..2] [--without RULE]
 *
 * Exit code 0: all properties hold in all states. With --without, the search must find a property
 * that is broken without that rule. Then the exit code is 0, and a shortest trace is printed.
 *
 * The model is simpler than the protocol:
 *
 * - A run ends its timer. There are no retries, dead letters, keys, moves, kinds or pauses of
 * kinds.
 * - A batch has at most one operation for each timer. A claim takes all free rows.
 * - A timer that a process schedules is due soon. Timers that another program writes into the table
 *   are free rows.
 * - Heartbeats that come in time are no steps. If a process pauses for longer than its session's
 *   time, its lease ends at once. From then on the session may expire at any moment, or be renewed
 *   before it does.
 * - At most one request of each process can be left over after a broken connection, and take effect
 *   later.
 * - The reply to a request comes with its commit, unless the connection breaks. A later reply would
 *   change nothing, because no other process sees when it comes.
 * - The first statement of a request is done when it is sent, unless it has to wait for a lock.
 */
#include "explorer/search.h"
#include "explorer/trace.h"
#include "options.h"
#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
	printf("usage: protocol [--timers 1|2] [--faults 0..%d] [--cancels 0..%d] [--without "
	       "RULE]\n"
	       "rules:\n",
	       FAULTS_MOST, TIMERS);
	rules_print();
	return 2;
}

static bool number_set(uint8_t *to, const char *text, int least, int most)
{
	int number = atoi(text);

	*to = (uint8_t)number;
	return number >= least && number <= most;
}

static bool option_set(const char *name, const char *value, bool *ret_without)
{
	if (strcmp(name, "--timers") == 0)
		return number_set(&options.timers, value, 1, TIMERS);
	if (strcmp(name, "--faults") == 0)
		return number_set(&options.faults, value, 0, FAULTS_MOST);
	if (strcmp(name, "--cancels") == 0)
		return number_set(&options.cancels, value, 0, TIMERS);
	*ret_without = true;
	return strcmp(name, "--without") == 0 && rule_leave_out(value);
}

static bool explore(void)
{
	struct found found;
	struct table table;

	table_init(&table);
	search_all(&table, &found);
	if (found.property == PROPERTY_NONE)
		search_ends(&table, &found);
	if (found.property != PROPERTY_NONE) {
		int count = trace_print(&table, &found);

		printf("found after %d steps: %s\n", count, property_text(found.property));
	}
	printf("%u states%s\n", table.count, found.property == PROPERTY_NONE ? ", all good" : "");
	table_free(&table);
	return found.property != PROPERTY_NONE;
}

int main(int argc, char **argv)
{
	bool without = false;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || !option_set(argv[i], argv[i + 1], &without))
			return usage();
	}
	return explore() == without ? 0 : 1;
}
