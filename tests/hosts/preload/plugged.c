/* SPDX-License-Identifier: MIT */
/* A program that only links the library plugin.c. */
#include <stdio.h>

extern int plugin_runs;

int main(void)
{
	puts(plugin_runs > 0 ? "the timer has run" : "the timer has not run");
	return 0;
}
