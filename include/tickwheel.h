/* SPDX-License-Identifier: MIT */
/**
 * @file tickwheel.h
 * A timer engine for servers. This header includes all others; each can be included alone.
 *
 * An engine (struct tw_options, tw_engine_create) is one timing wheel and one worker thread, which runs
 * callbacks, or none, and the program's event loop polls (tw_poll). Any thread schedules timeouts
 * (tw_schedule) and cancels them (tw_cancel), without a lock. A timeout is a delay, a kind (struct
 * tw_kind: callback, finaliser, flags; constant, and shared by many) and an argument, which the library
 * passes on and does not look at. What names it is a handle (struct tw_handle), a value that stays safe
 * for ever. Each accepted timeout ends exactly once: it expires, it is cancelled, or tw_engine_stop hands
 * it back. It never expires early, and late by up to one tick and what the system takes.
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
 *             tw_schedule(engine, 500000000, &saying, (char[]){"half a second"}, NULL);
 *             sleep(1);
 *             tw_engine_stop(engine, NULL, NULL, TW_NEVER);
 *             return tw_engine_destroy(engine);
 *     }
 *
 * Times are nanoseconds in signed 64 bits. Functions return 0 or more, or a negative errno value
 * (tw_strerror); nothing goes through errno. Each page of a function says what its numbers count
 * (UNITS), who may call it (THREADS), whether a callback may (IN CALLBACK), how far it gets whatever
 * other threads do (PROGRESS: wait-free, lock-free, or what it waits for), and how long its arguments
 * must live (LIFETIME). Structs begin with their size, so that programs and libraries of different
 * versions work together.
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
#include <tickwheel/keyed.h>
#include <tickwheel/log.h>
#include <tickwheel/loop.h>
#include <tickwheel/memory.h>
#include <tickwheel/name.h>
#include <tickwheel/periodic.h>
#include <tickwheel/print.h>
#include <tickwheel/retry.h>
#include <tickwheel/stats.h>
#include <tickwheel/thread.h>
#include <tickwheel/timeout.h>
#include <tickwheel/version.h>

#endif
