/* SPDX-License-Identifier: MIT */
/* Makes texts of SQL with the name of the schema. */
#ifndef TWI_DURABLE_POSTGRES_TEXT_H
#define TWI_DURABLE_POSTGRES_TEXT_H

/*
 * Returns the text with the name instead of each '@', which the caller frees. Returns NULL if there
 * is no memory.
 */
char *twi_postgres_text(const char *text, const char *schema);

#endif
