/* SPDX-License-Identifier: MIT */
#include "thread/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

int twi_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until_ns)
{
	struct timespec until = {.tv_sec = until_ns / TWI_NS_PER_S,
				 .tv_nsec = until_ns % TWI_NS_PER_S};
	long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
			      until_ns == INT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);

	return result < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

void twi_futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int64_t twi_until_ns(int64_t timeout_ns)
{
	if (timeout_ns == INT64_MAX)
		return INT64_MAX;
	return twi_deadline_after(twi_monotonic_ns(), timeout_ns);
}
