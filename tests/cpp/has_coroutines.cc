// SPDX-License-Identifier: MIT
// Compiles only if the compiler offers what the coroutine headers need.
#include <tickwheel.hpp>

#ifndef TW_CPP_COROUTINES
#error "no coroutines"
#endif
