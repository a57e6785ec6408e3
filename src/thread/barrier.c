/* SPDX-License-Identifier: MIT */
#include "thread/barrier.h"

#include "base/compiler.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool able; /* [const] after load */

static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool twi_barrier_register(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static TWI_CONSTRUCTOR void load(void)
{
	able = twi_barrier_register();
}

bool twi_barrier_able(void)
{
	return able;
}

bool twi_barrier_all(void)
{
	return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
