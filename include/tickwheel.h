/* SPDX-License-Identifier: MIT */
/**
 * @file tickwheel.h
 * Everything of tickwheel in one include. The parts can be included alone.
 */
#ifndef TICKWHEEL_H
#define TICKWHEEL_H

#include <tickwheel/batch.h>
#include <tickwheel/clock.h>
#include <tickwheel/engine.h>
#include <tickwheel/error.h>
#include <tickwheel/fork.h>
#include <tickwheel/group.h>
#include <tickwheel/keyed.h>
#include <tickwheel/log.h>
#include <tickwheel/loop.h>
#include <tickwheel/memory.h>
#include <tickwheel/periodic.h>
#include <tickwheel/retry.h>
#include <tickwheel/stats.h>
#include <tickwheel/thread.h>
#include <tickwheel/timeout.h>
#include <tickwheel/version.h>

#endif
