/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a file is whole: its pages, the checksum of each row, and the references between
 * rows.
 */
#ifndef TWI_DURABLE_TOOL_CHECK_H
#define TWI_DURABLE_TOOL_CHECK_H

#include "durable/tool/file.h"

#include <stdio.h>

struct twi_tool_checked {
	uint64_t rows, defects;
};

/* Writes a line for each defect. Returns 0, or an error if the check could not continue. */
int twi_tool_check(struct twi_tool_file *file, FILE *out, struct twi_tool_checked *ret);

#endif
