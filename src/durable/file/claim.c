/* SPDX-License-Identifier: MIT */
#include "durable/file/claim.h"

#include "base/atomic.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

/* How many files a process may have open at once. The model checks set fewer. */
#ifndef TWI_CLAIM_PLACES
#define TWI_CLAIM_PLACES 1024
#endif

/* [atomic E108] identities; 0 marks a free place */
static _Atomic uint64_t claims[TWI_CLAIM_PLACES];
/* [atomic E108] the process that makes the claims; 0 before the first one */
static _Atomic uint64_t claimant;

static uint64_t mixed(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

/*
 * Returns a number for a file, never 0. Two files with the same number would exclude each other.
 * The chance is 1 in 2^63 for each pair.
 */
static uint64_t identity_of(uint64_t device, uint64_t inode)
{
	return mixed(mixed(device) ^ inode) | 1;
}

/* Returns whether the claims in the table are those of an ancestor of this process. */
static bool inherited(void)
{
	uint64_t process = (uint64_t)getpid();

	/* RELAXED: the number publishes nothing. If it is this process's own, it stays. */
	if (twi_load_relaxed(&claimant) == process)
		return false;
	for (int place = 0; place < TWI_CLAIM_PLACES; place++) {
		/*
		 * E108: if another thread of this process has claimed the place meanwhile, its
		 * number is visible with the claim.
		 */
		if (twi_load_seq_cst(&claims[place]) != 0)
			return twi_load_relaxed(&claimant) != process; /* RELAXED: as above */
	}
	/* RELAXED: the claim of this thread, which follows, publishes the number. */
	twi_store_relaxed(&claimant, process);
	return false;
}

/* Writes the identity to a free place, and returns that place. Returns -1 if none is free. */
static int place_take(uint64_t identity)
{
	for (int place = 0; place < TWI_CLAIM_PLACES; place++) {
		uint64_t none = 0;

		/* E108: must come before the loads of the other places. */
		if (twi_cas_seq_cst(&claims[place], &none, identity))
			return place;
	}
	return -1;
}

static bool elsewhere(uint64_t identity, int own)
{
	for (int place = 0; place < TWI_CLAIM_PLACES; place++) {
		/* E108: must come after this thread's own claim. */
		if (place != own && twi_load_seq_cst(&claims[place]) == identity)
			return true;
	}
	return false;
}

int twi_claim_take(uint64_t device, uint64_t inode)
{
	uint64_t identity = identity_of(device, inode);
	int place;

	if (inherited())
		return -ECHILD;
	place = place_take(identity);
	if (place < 0)
		return -EMFILE;
	if (!elsewhere(identity, place))
		return place;
	twi_claim_drop(place);
	return -EBUSY;
}

void twi_claim_drop(int place)
{
	/*
	 * RELAXED: the claim guards no memory. The kernel's lock orders the writes of the file's
	 * owners.
	 */
	twi_store_relaxed(&claims[place], UINT64_C(0));
}
