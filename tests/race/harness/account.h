/* SPDX-License-Identifier: MIT */
/*
 * A check of all node blocks, the account. When a program has destroyed its engines and ends, each
 * block that was carved from a slab must be free, and must be in the pool once. A block that is
 * missing has leaked. The amount of memory would not show the leak, because slabs are never given
 * back.
 */
#ifndef RACE_ACCOUNT_H
#define RACE_ACCOUNT_H

enum { ACCOUNT_EXIT_CODE = 65 };

/*
 * Makes this process check the account when it exits. A child that it forks after this call makes
 * the check, too.
 */
void account_begin(void);

/*
 * Makes the check now, and ends the process with ACCOUNT_EXIT_CODE if a block is missing, or in the
 * pool twice. Does nothing while another thread still has blocks, while engines are alive, or in a
 * forked child that has not taken the library over. Takes all free blocks, so the program must not
 * schedule afterwards.
 */
void account_judge(void);

/*
 * Returns how many engines are alive. A program that does not define this function must have
 * destroyed all of them.
 */
int account_engines(void) __attribute__((weak));

#endif
