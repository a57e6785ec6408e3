/* SPDX-License-Identifier: MIT */
/* A whole file as text: see line.h. */
#ifndef TWI_DURABLE_TOOL_DUMP_H
#define TWI_DURABLE_TOOL_DUMP_H

#include "durable/tool/list.h"

/* Timers by bucket and serial, then dead letters by id. -EUCLEAN at a damaged row: without a last line. */
int twi_tool_dump(struct twi_tool_file *file, const struct twi_tool_output *output);

#endif
