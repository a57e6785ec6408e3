/* SPDX-License-Identifier: MIT */
/*
 * The claims of a process on its files. The test uses numbers instead of files.
 *
 * Seen to fail with these defects: twi_claim_drop() frees no place, so that 5,000 files in turn
 * find none; twi_claim_take() looks at the other places before it writes its own claim, so that two
 * threads both get the file; a claim is not dropped where it must be.
 */
#include "check.h"
#include "slowdown.h"

#include "durable/file/claim.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { FILES_AT_ONCE = 1024, FILES_IN_TURN = 5000, ROUNDS = 100000 };

Test(claim, one_file_is_claimed_once)
{
	int place = twi_claim_take(1, 2);

	cr_assert(place >= 0);
	check_int(twi_claim_take(1, 2), -EBUSY);
	cr_assert(twi_claim_take(2, 1) >= 0);
	twi_claim_drop(place);
	cr_assert(twi_claim_take(1, 2) >= 0);
}

Test(claim, files_one_after_the_other_have_no_bound)
{
	for (uint64_t file = 1; file <= FILES_IN_TURN; file++) {
		int place = twi_claim_take(1, file);

		cr_assert(place >= 0, "file %llu: %d", (unsigned long long)file, place);
		twi_claim_drop(place);
	}
}

Test(claim, files_at_once_have_a_bound)
{
	for (uint64_t file = 1; file <= FILES_AT_ONCE; file++)
		cr_assert(twi_claim_take(1, file) >= 0);
	check_int(twi_claim_take(1, FILES_AT_ONCE + 1), -EMFILE);
	twi_claim_drop(7);
	check_int(twi_claim_take(1, FILES_AT_ONCE + 1), 7);
}

static atomic_int owners;
static atomic_ulong claimed, both, ready;

static void *claimant(void *arg)
{
	(void)arg;
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < 2)
		continue;
	for (uint64_t i = 0; i < slowed(ROUNDS); i++) {
		int place = twi_claim_take(3, 4);

		if (place < 0)
			continue;
		if (atomic_fetch_add(&owners, 1) != 0)
			atomic_fetch_add(&both, 1);
		atomic_fetch_add(&claimed, 1);
		atomic_fetch_sub(&owners, 1);
		twi_claim_drop(place);
	}
	return NULL;
}

Test(claim, two_threads_never_have_one_file)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		check_int(pthread_create(&threads[i], NULL, claimant, NULL), 0);
	for (int i = 0; i < 2; i++)
		check_int(pthread_join(threads[i], NULL), 0);
	check_int(atomic_load(&both), 0);
	cr_assert(twi_claim_take(3, 4) >= 0);
}
