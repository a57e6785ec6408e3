// SPDX-License-Identifier: MIT
// Compiles where the coroutines of the headers are there.
#include <tickwheel.hpp>

#ifndef TW_CPP_COROUTINES
#error "no coroutines"
#endif
