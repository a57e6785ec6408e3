/* SPDX-License-Identifier: MIT */
/**
 * @file export.h
 * Macros that mark the declarations of public functions.
 */
#ifndef TICKWHEEL_EXPORT_H
#define TICKWHEEL_EXPORT_H

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#else
#define TW_API
#endif

/* The compiler warns if a program ignores the result. */
#if defined(__GNUC__)
#define TW_CHECKED __attribute__((warn_unused_result))
#else
#define TW_CHECKED
#endif

/* Like TW_CHECKED, for functions that schedule or submit, but only if the program defines
 * TW_WARN_UNUSED_SCHEDULE. */
#ifdef TW_WARN_UNUSED_SCHEDULE
#define TW_CHECKED_SCHEDULE TW_CHECKED
#else
#define TW_CHECKED_SCHEDULE
#endif

/** Marks a function of an additional library, such as tickwheel-glib or tickwheel-uv. */
#define TW_BESIDE_API TW_API

#ifdef __cplusplus
#define TW_BEGIN_DECLS extern "C" {
#define TW_END_DECLS }
/* Makes a value of the struct `name`. */
#define TW_VALUE(name, ...) (name{__VA_ARGS__})
#else
#define TW_BEGIN_DECLS
#define TW_END_DECLS
#define TW_VALUE(name, ...) ((struct name){__VA_ARGS__})
#endif

#endif
