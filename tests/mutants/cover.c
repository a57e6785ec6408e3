/* SPDX-License-Identifier: MIT */
/*
 * Linked into a library or a model. Their code calls a function of this file at each branch. The
 * function marks each executed place by a byte in a file, which the program's children share and
 * coverage.py reads.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* defined by the linker */

static unsigned char *seen;
static uintptr_t seen_bytes;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	uintptr_t place = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start;

	if (place < seen_bytes && seen[place] == 0)
		seen[place] = 1;
}

__attribute__((constructor(101))) static void cover_begin(void)
{
	const char *path = getenv("MUTANTS_COVER");
	int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	off_t bytes = file >= 0 ? lseek(file, 0, SEEK_END) : 0;
	void *map = MAP_FAILED;

	if (bytes > 0)
		map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (file >= 0)
		(void)close(file);
	if (map == MAP_FAILED)
		return;
	seen = map;
	seen_bytes = (uintptr_t)bytes;
}
