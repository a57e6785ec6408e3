/* SPDX-License-Identifier: MIT */
/**
 * @file version.h
 * The version of the headers, and of the library that is really loaded.
 */
#ifndef TICKWHEEL_VERSION_H
#define TICKWHEEL_VERSION_H

#include <tickwheel/export.h>

/** The first part of the version. */
#define TW_VERSION_MAJOR 0
/** The second part of the version. */
#define TW_VERSION_MINOR 1
/** The third part of the version. */
#define TW_VERSION_PATCH 0

/** The version as one number that can be compared: major × 1,000,000 + minor × 1,000 + patch. */
#define TW_VERSION (TW_VERSION_MAJOR * 1000000 + TW_VERSION_MINOR * 1000 + TW_VERSION_PATCH)

TW_BEGIN_DECLS

/**
 * Returns the version of the loaded library, to compare with TW_VERSION.
 *
 * Units: see TW_VERSION.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: the number, always positive.
 * Since: 0.1.0.
 */
TW_API int tw_version(void);

/**
 * Returns the version of the loaded library as text, "major.minor.patch".
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the text, never NULL.
 * Since: 0.1.0.
 */
TW_API const char *tw_version_string(void);

TW_END_DECLS

#endif
