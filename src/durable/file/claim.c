/* SPDX-License-Identifier: MIT */
#include "durable/file/claim.h"

#include "base/atomic.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

/* Files that a process has open at once. The model checks use few. */
#ifndef TWI_CLAIM_PLACES
#define TWI_CLAIM_PLACES 1024
#endif

static _Atomic uint64_t claims[TWI_CLAIM_PLACES]; /* [atomic E108] an identity; 0: free */

static uint64_t mixed(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

/* Two files with the same word exclude each other, which one pair in 2^64 does. Never 0. */
static uint64_t identity_of(uint64_t device, uint64_t inode)
{
	return mixed(mixed(mixed((uint64_t)getpid()) ^ device) ^ inode) | 1;
}

/* A free place, which has this identity from now on. -1: there is none. */
static int place_take(uint64_t identity)
{
	for (int place = 0; place < TWI_CLAIM_PLACES; place++) {
		uint64_t none = 0;

		/* E108: before the look at the other places. */
		if (twi_cas_seq_cst(&claims[place], &none, identity))
			return place;
	}
	return -1;
}

static bool elsewhere(uint64_t identity, int own)
{
	for (int place = 0; place < TWI_CLAIM_PLACES; place++) {
		/* E108: after the own claim. */
		if (place != own && twi_load_seq_cst(&claims[place]) == identity)
			return true;
	}
	return false;
}

int twi_claim_take(uint64_t device, uint64_t inode)
{
	uint64_t identity = identity_of(device, inode);
	int place = place_take(identity);

	if (place < 0)
		return -EMFILE;
	if (!elsewhere(identity, place))
		return place;
	twi_claim_drop(place);
	return -EBUSY;
}

void twi_claim_drop(int place)
{
	/* RELAXED: it guards no memory. The kernel's lock orders what the owners of the file write. */
	twi_store_relaxed(&claims[place], UINT64_C(0));
}
