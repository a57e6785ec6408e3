/* SPDX-License-Identifier: MIT */
/*
 * Whether a sanitizer's allocator takes the place of libc's (TESTS_SANITIZED). Those of Debian 12 do not
 * hold their locks while a process forks: a child that allocates, or makes a thread, waits for ever for a
 * lock that another thread of its parent had.
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
