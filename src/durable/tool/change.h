/* SPDX-License-Identifier: MIT */
/* The commands that write: to a file that no process has open, or to a copy. */
#ifndef TWI_DURABLE_TOOL_CHANGE_H
#define TWI_DURABLE_TOOL_CHANGE_H

#include "durable/tool/file.h"

/*
 * Ends a timer, or removes a dead letter. Returns 0, -ENOENT if there is none, -EBUSY if the file
 * is open, or a code.
 */
int twi_tool_cancel(struct twi_tool_file *file, const char *path, struct tw_durable_id id);
/* Makes a dead letter a timer that is due now. Returns the codes of twi_tool_cancel. */
int twi_tool_revive(struct twi_tool_file *file, const char *path, struct tw_durable_id id);

/*
 * Marks a kind as paused in the file, or removes the mark. The next process that opens the file
 * acts on the mark. Returns the codes of twi_tool_cancel.
 */
int twi_tool_pause(struct twi_tool_file *file, const char *path, const char *kind, bool paused);

/*
 * Returns the number of the process that has the file open, or 0 if there is no such process or its
 * number is not known.
 */
int twi_tool_holder(const char *path);

/*
 * Copies the state of the file at one moment. Returns 0, -EEXIST if the copy's name is taken, or a
 * code.
 */
int twi_tool_backup(struct twi_tool_file *file, const char *copy);

#endif
