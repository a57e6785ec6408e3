/* SPDX-License-Identifier: MIT */
/**
 * @file tickwheel.hpp
 * The library for C++17 and C++20: header only, above the C interface of tickwheel.h.
 *
 * It includes all headers of tickwheel/cpp. docs/cpp.md explains them with examples.
 *
 * - engine.hpp: tw::engine, tw::loop and tw::time_source own what they create; tw::engine_ref
 *   refers to an engine that another object owns.
 * - handle.hpp: tw::after schedules a function and returns a tw::handle, whose destructor cancels
 *   the timeout.
 * - timer.hpp: tw::timer<F> is a timeout inside your own object. It allocates nothing.
 * - coroutine.hpp (C++20): tw::sleep_for, tw::with_timeout, tw::task, tw::spawn.
 *
 * Exceptions never reach the C library. If an exception leaves a callback or a resumed coroutine,
 * the handler of tw::set_exception_handler receives it. If no handler is set, std::terminate ends
 * the program.
 *
 * If a call fails, it throws std::system_error with tw::category(), unless its comment says
 * otherwise. The codes are those of docs/errors.md, without their sign.
 */
#ifndef TICKWHEEL_HPP
#define TICKWHEEL_HPP

#include <tickwheel/cpp/base.hpp>
#include <tickwheel/cpp/chrono.hpp>
#include <tickwheel/cpp/coroutine.hpp>
#include <tickwheel/cpp/engine.hpp>
#include <tickwheel/cpp/handle.hpp>
#include <tickwheel/cpp/timer.hpp>

#endif
