/* SPDX-License-Identifier: MIT */
#include "thread/park.h"

_Atomic(twi_park_driver *) twi_park_drives;
