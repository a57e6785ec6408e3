/* SPDX-License-Identifier: MIT */
/*
 * RELAXED, all: a word is all that is told. It guards no memory, because each store has its own;
 * and the kernel's lock orders what the processes write.
 */
#include "durable/file/claim.h"

#include "base/atomic.h"

#include <errno.h>
#include <unistd.h>

enum {
	/* Files that a process opens in its whole life. A power of two, since a hash is cut to it. */
	PLACES = 4096,
};

static struct {
	_Atomic uint64_t identity; /* [atomic] 0: free; set once */
	_Atomic uint32_t held;     /* [atomic] 1: a store has it open */
} claims[PLACES];

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

/* The place of this identity, or -1. */
static int find(uint64_t identity)
{
	for (uint64_t step = 0; step < PLACES; step++) {
		uint64_t place = ((identity >> 1) + step) % PLACES;
		uint64_t seen = 0;

		if (twi_cas_relaxed(&claims[place].identity, &seen, identity) || seen == identity)
			return (int)place;
	}
	return -1;
}

int twi_claim_take(uint64_t device, uint64_t inode)
{
	int place = find(identity_of(device, inode));
	uint32_t none = 0;

	if (place < 0)
		return -EMFILE;
	return twi_cas_relaxed(&claims[place].held, &none, 1U) ? place : -EBUSY;
}

void twi_claim_drop(int place)
{
	twi_store_relaxed(&claims[place].held, 0U);
}
