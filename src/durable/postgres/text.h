/* SPDX-License-Identifier: MIT */
/* Texts of SQL with the name of the schema. */
#ifndef TWI_DURABLE_POSTGRES_TEXT_H
#define TWI_DURABLE_POSTGRES_TEXT_H

/* The text with the name in place of each '@'. The caller frees it. NULL: no memory. */
char *twi_postgres_text(const char *text, const char *schema);

#endif
