/* SPDX-License-Identifier: MIT */
/**
 * @file tickwheel.h
 * A timer engine for servers. This header includes all headers of the library tickwheel; each can
 * be included alone. The headers of the further libraries are not included: durable.h and the
 * stores of durable timers, executors, and timers in other event loops.
 *
 * An engine (struct tw_options, tw_engine_create) is one timing wheel. A worker thread runs its
 * callbacks, or, in loop mode, your event loop does (tw_engine_poll). Any thread can schedule
 * timeouts (tw_schedule) and cancel them (tw_cancel), without a lock. A timeout has a delay, a kind
 * and an argument. The kind (struct tw_kind) holds the callback, the finaliser and flags; it is
 * constant, and many timeouts share it. The library passes the argument on and does not look at it.
 * A handle (struct tw_handle) names the timeout. A handle is a value, and calls with it are safe
 * for ever, even after the timeout or its engine has gone. Each accepted timeout ends exactly once:
 * it expires, it is cancelled, or tw_engine_stop hands it back. A timeout never expires early. It
 * may expire late, by up to one tick plus the time that the system takes.
 *
 *     static void say(struct tw_handle self, void *text)
 *     {
 *             (void)self;
 *             puts(text);
 *     }
 *
 *     static const struct tw_kind saying = TW_KIND(say, NULL);
 *
 *     int main(void)
 *     {
 *             struct tw_engine *engine;
 *
 *             if (tw_engine_create(NULL, &engine) != 0)
 *                     return 1;
 *             tw_schedule(engine, TW_MS(500), &saying, (char[]){"half a second"}, NULL);
 *             sleep(1);
 *             tw_engine_stop(engine, NULL, NULL, TW_NEVER);
 *             return tw_engine_destroy(engine);
 *     }
 *
 * Times are nanoseconds in signed 64 bits. Functions return 0 or more on success, or a negative
 * errno value (tw_strerror); they do not set errno. Each function's page states the unit of its
 * numbers (UNITS), which threads may call it (THREADS), and whether a callback may (IN CALLBACK).
 * The page also states which progress the call makes, whatever other threads do (PROGRESS:
 * wait-free, lock-free, or blocking, with the event that it waits for), and how long its arguments
 * must live (LIFETIME). Structs that may grow in later versions begin with their size, so that a
 * program and a library of different versions work together.
 */
#ifndef TICKWHEEL_H
#define TICKWHEEL_H

#include <tickwheel/batch.h>
#include <tickwheel/clock.h>
#include <tickwheel/dump.h>
#include <tickwheel/engine.h>
#include <tickwheel/error.h>
#include <tickwheel/fork.h>
#include <tickwheel/group.h>
#include <tickwheel/histogram.h>
#include <tickwheel/id.h>
#include <tickwheel/keyed.h>
#include <tickwheel/log.h>
#include <tickwheel/loop.h>
#include <tickwheel/memory.h>
#include <tickwheel/name.h>
#include <tickwheel/periodic.h>
#include <tickwheel/print.h>
#include <tickwheel/retry.h>
#include <tickwheel/scaled.h>
#include <tickwheel/scope.h>
#include <tickwheel/stats.h>
#include <tickwheel/thread.h>
#include <tickwheel/timeout.h>
#include <tickwheel/version.h>
#include <tickwheel/wall.h>

#endif
