/* SPDX-License-Identifier: MIT */
/**
 * @file error.h
 * The error codes.
 *
 * Functions return `int`: zero or more is success (for some functions an outcome from an enum), a
 * negative errno value is failure. They do not set the global `errno`. If a call fails, its outputs
 * keep their values, and nothing is half done.
 *
 * | code         | meaning                                                                      |
 * |--------------|------------------------------------------------------------------------------|
 * | -EINVAL      | an argument is wrong in itself: NULL, zero handle, unknown bits, bad size    |
 * | -ERANGE      | a number outside the representable range: tick × slots, delay INT64_MIN      |
 * |              | a schedule of retries has no delay of that number                            |
 * | -ENOMEM      | memory, the memory cap, or the resources for a thread are used up            |
 * | -EAGAIN      | the engine's limit of pending timeouts is reached                            |
 * |              | a queue of retries is full                                                   |
 * | -ESHUTDOWN   | the engine is stopping, stopped, or has lost its worker                      |
 * | -EBUSY       | not now: destroy before stop has ended, a clock in use, an open bracket      |
 * |              | after a fork, an engine that already belongs to this process                 |
 * | -ETIMEDOUT   | the deadline of a waiting call passed; the call may be made again            |
 * | -ESTALE      | the handle's timeout has ended and its memory has been reused                |
 * |              | the attempt was completed before, or its task has ended                      |
 * | -EPERM       | the system rejects the scheduling class; only the owner may use the timeout  |
 * | -EDEADLK     | the call would wait for the callback that it is made from                    |
 * | -ECHILD      | the engine belongs to the parent of this forked process                      |
 * | -EOPNOTSUPP  | the system has no such clock                                                 |
 * | -E2BIG       | a struct sets fields that this library does not know, or is over 4,096 bytes |
 *
 * Durable timers return further codes, which durable.h and the headers of the stores list.
 */
#ifndef TICKWHEEL_ERROR_H
#define TICKWHEEL_ERROR_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * Returns a short English text for a code of this library, or of an additional library such as
 * tickwheel-durable. If calls return the same code for different reasons, the text names them all.
 *
 * Units: `error` as returned, negative. A number from 1 to 6 is an outcome or a state and not an
 *   error; the text says so, and the functions of name.h and durable_name.h return its name. A
 *   number above 6 is taken as a code that has lost its sign.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the text, never NULL; "unknown error" for other numbers.
 * Since: 0.1.0.
 */
TW_API const char *tw_strerror(int error);

TW_END_DECLS

#endif
