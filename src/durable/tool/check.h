/* SPDX-License-Identifier: MIT */
/* Whether a file is whole: its pages, the checksum of each row, and what ties rows together. */
#ifndef TWI_DURABLE_TOOL_CHECK_H
#define TWI_DURABLE_TOOL_CHECK_H

#include "durable/tool/file.h"

#include <stdio.h>

struct twi_tool_checked {
	uint64_t rows, defects;
};

/* Writes a line for each defect. An error: the check could not go on. */
int twi_tool_check(struct twi_tool_file *file, FILE *out, struct twi_tool_checked *ret);

#endif
