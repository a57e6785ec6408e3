/* SPDX-License-Identifier: MIT */
/*
 * A timeout is cancelled between two batches of one slot, and the scan has already passed its
 * entry. The slot's last entry, which is due and not yet seen, fills the hole. That entry used to
 * be left behind until the slot's next revolution.
 *
 * Seen to fail with this defect: a remove does not move the scan back.
 */
#include "../wheel/fixture.h"

#include <criterion/criterion.h>

enum { SLOTS = 16, DUE_TICK = 5, FAR_TICK = DUE_TICK + 1000 * SLOTS };

Test(catch_up, a_hole_behind_the_scan_hides_no_entry)
{
	static struct wheel_fixture fixture;
	struct twi_node *far = NULL;
	uint64_t taken;

	wheel_open(&fixture, SLOTS);
	/* The slot's first chunk is not due before a later revolution. The batch has space for
	 * only one of the two chunks that are due. */
	for (int i = 0; i < TWI_CHUNK_ENTRIES; i++)
		far = wheel_insert(&fixture, FAR_TICK);
	for (int i = 0; i < 2 * TWI_CHUNK_ENTRIES; i++)
		wheel_insert(&fixture, DUE_TICK);
	twi_wheel_advance(fixture.wheel, DUE_TICK, &fixture.batch);
	taken = fixture.batch.count;
	cr_assert_eq(taken, TWI_CHUNK_ENTRIES);
	twi_wheel_remove(fixture.wheel, far);
	taken += wheel_advance(&fixture, DUE_TICK, NULL, NULL);
	cr_assert_eq(taken, 2 * TWI_CHUNK_ENTRIES);
	wheel_judge(&fixture);
	wheel_close(&fixture);
}
