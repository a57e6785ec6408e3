/* SPDX-License-Identifier: MIT */
/*
 * The function that a fuzzer calls: libFuzzer by itself, AFL++ and the replay of seeds through
 * main.c.
 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* The name is libFuzzer's. Returns 0. An error ends the process by a signal. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

#endif
