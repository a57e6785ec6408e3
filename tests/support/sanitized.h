/* SPDX-License-Identifier: MIT */
/*
 * TESTS_SANITIZED is set if a sanitizer's allocator replaces libc's. libc takes its allocator's
 * locks for a fork. The sanitizers of Debian 12 do not. If another thread of the parent holds a
 * lock of their allocator at the fork, the lock stays locked in the child. A child that allocates
 * or makes a thread then waits for ever.
 */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESTS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TESTS_SANITIZED 1
#endif
#endif

#endif
