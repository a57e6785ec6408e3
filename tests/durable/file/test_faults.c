/* SPDX-License-Identifier: MIT */
/*
 * The n-th call of a kind to the disk fails, for all n. What the store returns must be true. If a
 * commit returns 0, it is durable. If it returns -EAGAIN or -ENOSPC, it did nothing. If it returns
 * another code, the commit may have been made or not, and the store accepts no further commit: the
 * store is frozen.
 *
 * Seen to fail with these defects: a full disk freezes the store; a failed write does not freeze
 * it; after a rollback the store does not read the bounds of its inbox again; a failed read during
 * the removal of dead letters does not freeze it.
 */
#include "check.h"
#include "cycle.h"

#include <errno.h>
#include <stdlib.h>

enum {
	SESSIONS = 2,
};

static struct cycle cycle;

static uint64_t stride(void)
{
	const char *text = getenv("TESTS_DURABLE_STRIDE");

	return text == NULL ? 1 : strtoull(text, NULL, 10);
}

static void fail_everywhere(enum disk_call call, int error, bool sticky)
{
	bool struck = true;

	cycle_create(&cycle);
	for (uint64_t nth = 1; struck; nth += stride()) {
		cycle_begin(&cycle, nth);
		disk_fail(call, nth, error, sticky);
		(void)cycle_run(&cycle, SESSIONS);
		struck = disk_struck();
		cr_assert(cycle_survives(&cycle), "call %llu: %s", (unsigned long long)nth,
			  cycle.model.failure);
	}
	cycle_destroy(&cycle);
}

Test(faults, failed_write_keeps_what_was_acknowledged)
{
	fail_everywhere(DISK_WRITE, EIO, false);
	fail_everywhere(DISK_WRITE, EIO, true);
}

Test(faults, full_disk_keeps_what_was_acknowledged)
{
	fail_everywhere(DISK_WRITE, ENOSPC, false);
	fail_everywhere(DISK_WRITE, ENOSPC, true);
}

Test(faults, short_write_keeps_what_was_acknowledged)
{
	fail_everywhere(DISK_WRITE, DISK_SHORT, false);
}

Test(faults, interrupted_write_keeps_what_was_acknowledged)
{
	fail_everywhere(DISK_WRITE, EINTR, false);
}

Test(faults, failed_sync_keeps_what_was_acknowledged)
{
	fail_everywhere(DISK_SYNC, EIO, false);
	fail_everywhere(DISK_SYNC, ENOSPC, true);
}

Test(faults, failed_open_keeps_what_was_acknowledged)
{
	fail_everywhere(DISK_OPEN, EIO, false);
	fail_everywhere(DISK_OPEN, EROFS, true);
	fail_everywhere(DISK_OPEN, ENOSPC, false);
	fail_everywhere(DISK_OPEN, EINTR, false);
}

Test(faults, failed_truncate_or_unlink_keeps_what_was_acknowledged)
{
	fail_everywhere(DISK_TRUNCATE, EIO, false);
	fail_everywhere(DISK_UNLINK, EIO, true);
}

Test(faults, failed_read_keeps_what_was_acknowledged)
{
	fail_everywhere(DISK_READ, EIO, false);
	fail_everywhere(DISK_READ, DISK_SHORT, false);
}

/*
 * The disk becomes full at one of the calls, and stays full. Ends must still be written, and new
 * timers must be refused.
 */
Test(faults, full_disk_lets_ends_go_on)
{
	int refused = 0;

	cycle_create(&cycle);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct model *model = &cycle.model;

		cycle_begin(&cycle, seed);
		check_int(model_open(model), 0);
		for (int i = 0; i < 8; i++)
			check_int(model_commit(model), 0);
		disk_fail(DISK_WRITE, 1 + seed, ENOSPC, false);
		for (int i = 0; i < 8; i++) {
			int result = model_commit(model);

			cr_assert(result == 0 || result == -ENOSPC, "%d", result);
			refused += result == -ENOSPC;
			check_int(model_commit_ends(model), 0);
		}
		cr_assert(model_check(model), "seed %llu: %s", (unsigned long long)seed,
			  model->failure);
		model_close(model, true);
	}
	check_at_least(refused, 1);
	cycle_destroy(&cycle);
}
