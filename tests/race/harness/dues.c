/* SPDX-License-Identifier: MIT */
#include "dues.h"

#include "race.h"

#include <sched.h>

/*
 * The ring of due timeouts, or dues. An element of `lies` is true while there is a due in its
 * place. The place is free again when a thread has read the due.
 */
static struct tw_due dues[DUES];
static _Atomic bool lies[DUES];
static _Atomic uint64_t tail, head;
static _Atomic bool closed;

void dues_open(void)
{
	atomic_store(&closed, false);
}

void dues_close(void)
{
	atomic_store(&closed, true);
}

size_t dues_put(const struct tw_due *due, size_t count)
{
	uint64_t end = atomic_load(&tail);
	size_t put;

	for (put = 0; put < count && !atomic_load(&lies[end % DUES]); put++, end++) {
		dues[end % DUES] = due[put];
		atomic_store(&lies[end % DUES], true);
	}
	atomic_store(&tail, end);
	return put;
}

size_t dues_dispatch(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	return dues_put(due, count);
}

static bool due_run(void)
{
	uint64_t first = atomic_load(&head);
	struct tw_due due;

	do {
		if (first == atomic_load(&tail))
			return false;
	} while (!atomic_compare_exchange_weak(&head, &first, first + 1));
	due = dues[first % DUES];
	atomic_store(&lies[first % DUES], false);
	RACE_CHECK(tw_due_run(&due) == 0);
	return true;
}

void *dues_main(void *argument)
{
	bool last;

	do {
		/*
		 * `closed` is read before the loop, so that this thread runs everything that was
		 * put in before the close.
		 */
		last = atomic_load(&closed);
		while (due_run())
			;
		(void)sched_yield();
	} while (!last);
	return argument;
}
