/* SPDX-License-Identifier: MIT */
/* Makes texts of SQL with the name of the schema. */
#ifndef TWI_DURABLE_POSTGRES_TEXT_H
#define TWI_DURABLE_POSTGRES_TEXT_H

/*
 * Returns a copy of the text with the schema's name instead of each '@'. The caller frees the copy.
 * Returns NULL if there is no memory.
 */
char *twi_postgres_text(const char *text, const char *schema);

#endif
