/* SPDX-License-Identifier: MIT */
/*
 * The function that a fuzzer calls. libFuzzer calls it directly. AFL++ and the replay of seeds call
 * it from main.c.
 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/*
 * Runs the target on one input. libFuzzer prescribes the name. Returns 0. If the target finds an
 * error, it ends the process by a signal.
 */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

#endif
