/* SPDX-License-Identifier: MIT */
/*
 * The account of node blocks: when a program ends and has destroyed its engines, each block that was
 * carved off a slab is free, and free once. A block that is missing has leaked; memory alone would
 * not show it, because slabs are never given back.
 */
#ifndef RACE_ACCOUNT_H
#define RACE_ACCOUNT_H

enum { ACCOUNT_EXIT_CODE = 65 };

/* From here on the account is judged when the process, or a child that it forks, calls exit. */
void account_begin(void);

/*
 * Judges the account now, and ends the process with ACCOUNT_EXIT_CODE when it is not even. It is not
 * judged while another thread still has blocks, while engines are alive, or in a forked child
 * that has not taken the library over. Takes all free blocks: nothing is scheduled afterwards.
 */
void account_judge(void);

/* How many engines are alive. A program that does not define it has destroyed all of them. */
int account_engines(void) __attribute__((weak));

#endif
