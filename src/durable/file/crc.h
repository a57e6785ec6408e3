/* SPDX-License-Identifier: MIT */
/*
 * CRC-32C (Castagnoli): the checksum of a row. SQLite has none for the pages of a database, so
 * without it a damaged page could change a payload or a deadline unseen.
 */
#ifndef TWI_DURABLE_FILE_CRC_H
#define TWI_DURABLE_FILE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what `crc` stands for (0 at the start), followed by these bytes. */
uint32_t twi_crc32c(uint32_t crc, const void *bytes, size_t count);
/* The same, followed by a number, whose lowest byte comes first on each machine. */
uint32_t twi_crc32c_number(uint32_t crc, uint64_t number);
/* The checksum of three numbers with a sign. */
uint32_t twi_crc32c_numbers(int64_t first, int64_t second, int64_t third);

#endif
