/* SPDX-License-Identifier: MIT */
/*
 * CRC-32C (Castagnoli): the checksum of a row. SQLite has no checksums for the pages of a database.
 * So without this one, a damaged page could change a payload or a deadline, and nothing would
 * report it.
 */
#ifndef TWI_DURABLE_FILE_CRC_H
#define TWI_DURABLE_FILE_CRC_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the checksum of some bytes that follow earlier ones. `crc` is the checksum of the earlier
 * bytes, or 0 if there are none.
 */
uint32_t twi_crc32c(uint32_t crc, const void *bytes, size_t count);
/*
 * Returns the checksum with a number added, as eight bytes with the lowest first on every machine.
 */
uint32_t twi_crc32c_number(uint32_t crc, uint64_t number);
/* Returns the checksum of three signed numbers. */
uint32_t twi_crc32c_numbers(int64_t first, int64_t second, int64_t third);

#endif
