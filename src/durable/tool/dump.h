/* SPDX-License-Identifier: MIT */
/* Writes a whole file as text, in the format of line.h. */
#ifndef TWI_DURABLE_TOOL_DUMP_H
#define TWI_DURABLE_TOOL_DUMP_H

#include "durable/tool/list.h"

/*
 * Writes timers by bucket and serial, then dead letters by id. At a damaged row returns -EUCLEAN,
 * and writes no last line.
 */
int twi_tool_dump(struct twi_tool_file *file, const struct twi_tool_output *output);

#endif
