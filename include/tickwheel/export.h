/* SPDX-License-Identifier: MIT */
/**
 * @file export.h
 * Marks of the public functions, and nothing else.
 */
#ifndef TICKWHEEL_EXPORT_H
#define TICKWHEEL_EXPORT_H

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#else
#define TW_API
#endif

/** Marks a function of an additional library: tickwheel-glib, tickwheel-uv. */
#define TW_BESIDE_API TW_API

#ifdef __cplusplus
#define TW_BEGIN_DECLS extern "C" {
#define TW_END_DECLS }
/* A value of a struct. */
#define TW_VALUE(name, ...) (name{__VA_ARGS__})
#else
#define TW_BEGIN_DECLS
#define TW_END_DECLS
#define TW_VALUE(name, ...) ((struct name){__VA_ARGS__})
#endif

#endif
