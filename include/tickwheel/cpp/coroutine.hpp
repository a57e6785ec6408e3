/* SPDX-License-Identifier: MIT */
/**
 * @file coroutine.hpp
 * Includes everything that needs coroutines and stop tokens: C++20, with a standard library that
 * has both. Otherwise this header is empty, and TW_CPP_COROUTINES is not defined.
 */
#ifndef TICKWHEEL_CPP_COROUTINE_HPP
#define TICKWHEEL_CPP_COROUTINE_HPP

#if __cplusplus >= 202002L
#include <version>
#endif

#if defined(__cpp_lib_jthread) && defined(__cpp_lib_coroutine)
/** Defined if tw::sleep_for, tw::with_timeout, tw::task and tw::spawn are available. */
#define TW_CPP_COROUTINES 1

#include <tickwheel/cpp/sleep.hpp>
#include <tickwheel/cpp/task.hpp>
#include <tickwheel/cpp/with_timeout.hpp>
#endif

#endif
