/* SPDX-License-Identifier: MIT */
/* Makes a new file from a dump. */
#ifndef TWI_DURABLE_TOOL_LOAD_H
#define TWI_DURABLE_TOOL_LOAD_H

/*
 * Reads the dump, and makes the file. `dump` is the name of a file, or "-" for the standard input.
 * The new file is written under another name (PATH-load) and renamed when it is whole and durable.
 * So after a failure there is no file of the name PATH. Returns 0, or -ECANCELED after it has
 * printed the reason.
 */
int twi_tool_load(const char *path, const char *dump);

#endif
