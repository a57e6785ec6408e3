/* SPDX-License-Identifier: MIT */
/*
 * The signals that the library's threads block: all except those that report a fault of the thread
 * itself. Those must reach the program's crash handler.
 */
#ifndef TWI_THREAD_SIGNALS_H
#define TWI_THREAD_SIGNALS_H

#include <signal.h>
#include <stddef.h>

static inline void twi_signals_fill(sigset_t *ret_set)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

	(void)sigfillset(ret_set);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		(void)sigdelset(ret_set, faults[i]);
}

#endif
