/* SPDX-License-Identifier: MIT */
/* The functions that replace those of the C library. */

/* mmap and mmap64 must both be defined under their own names, because libraries may call either. */
#undef _FILE_OFFSET_BITS
#include "inject.h"

#include "race.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

struct fault inject_fault[INJECT_KINDS];
int inject_thread_error = EAGAIN;
enum inject_wait inject_wait;
int64_t inject_delay_ns;
unsigned inject_every;
atomic_llong inject_membarrier_errors;
atomic_llong inject_mmap_errors;
atomic_llong inject_thread_errors;
atomic_llong inject_small_stacks;
bool inject_stacks_watched;
int64_t (*inject_clock)(int64_t true_ns);

bool inject_possible(void)
{
	return INJECT_POSSIBLE;
}

bool inject_malloc_possible(void)
{
	return INJECT_MALLOC_POSSIBLE;
}

void inject_all(enum inject_kind kind)
{
	fault_arm(&inject_fault[kind], 1, LLONG_MAX);
}

void inject_disarm(void *fault)
{
	fault_disarm(fault);
}

long long inject_hits(void *fault)
{
	return ((struct fault *)fault)->failed;
}

#if INJECT_POSSIBLE

/* The range of addresses of a shared library. */
struct range {
	const char *name;
	uintptr_t begin;
	uintptr_t end;
};

static struct range tickwheel_range = {.name = "libtickwheel"};
/*
 * The addresses of liburcu-cds. This library ends the process if its hash table gets no memory, so
 * its allocations must not fail.
 */
static struct range hash_range = {.name = "liburcu-cds"};

static int range_find(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct range *range = arg;
	size_t i;

	(void)bytes;
	if (strstr(info->dlpi_name, range->name) == NULL)
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0)
			continue;
		range->begin = begin;
		range->end = begin + header->p_memsz;
	}
	return 1;
}

static __attribute__((constructor)) void ranges_find(void)
{
	(void)dl_iterate_phdr(range_find, &tickwheel_range);
	(void)dl_iterate_phdr(range_find, &hash_range);
}

static bool range_has(const struct range *range, const void *address)
{
	return (uintptr_t)address >= range->begin && (uintptr_t)address < range->end;
}

#define CALLED_BY(range) range_has(&(range), __builtin_return_address(0))

/* Finds the next definition of one of our functions. */
static void next_find(const char *name, void *ret_function, size_t bytes)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	memcpy(ret_function, &symbol, bytes);
}

#define NEXT(name, pointer)                                                                        \
	do {                                                                                       \
		if ((pointer) == NULL)                                                             \
			next_find((name), &(pointer), sizeof(pointer));                            \
	} while (0)

static bool hit(enum inject_kind kind)
{
	static atomic_uint passed;

	if (tour_exempt || inject_fault[kind].fail_from == 0)
		return false;
	if (inject_every > 1 && atomic_fetch_add(&passed, 1) % inject_every != 0)
		return false;
	return fault_hit(&inject_fault[kind]);
}

#if INJECT_MALLOC_POSSIBLE
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

static bool malloc_hit(void)
{
	if (!hit(INJECT_MALLOC))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return malloc_hit() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return !CALLED_BY(hash_range) && malloc_hit() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	return malloc_hit() ? NULL : __libc_realloc(memory, bytes);
}
#endif

typedef void *next_mmap(void *, size_t, int, int, int, off64_t);

static bool mmap_hit(const void *caller)
{
	return range_has(&tickwheel_range, caller) && hit(INJECT_MMAP);
}

static void *mmap_for(const void *caller, void *address, size_t bytes, int protection, int flags,
		      int file, off64_t offset)
{
	static next_mmap *next;
	void *memory;

	NEXT("mmap64", next);
	if (mmap_hit(caller)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	memory = next(address, bytes, protection, flags, file, offset);
	if (memory == MAP_FAILED && range_has(&tickwheel_range, caller))
		atomic_fetch_add(&inject_mmap_errors, 1);
	return memory;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
	return mmap_for(__builtin_return_address(0), address, bytes, protection, flags, file,
			offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off64_t offset)
{
	return mmap_for(__builtin_return_address(0), address, bytes, protection, flags, file,
			offset);
}

/*
 * Returns whether the thread's stack has the smallest size that the system allows. Some C libraries
 * count the guard page as a part of that size.
 */
static bool stack_small(pthread_t thread)
{
	pthread_attr_t attributes;
	size_t bytes = 0;

	if (pthread_getattr_np(thread, &attributes) != 0)
		return false;
	(void)pthread_attr_getstacksize(&attributes, &bytes);
	(void)pthread_attr_destroy(&attributes);
	return bytes <= (size_t)PTHREAD_STACK_MIN;
}

int pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*body)(void *),
		   void *arg)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int error;

	NEXT("pthread_create", next);
	if (hit(INJECT_THREAD)) {
		if (inject_delay_ns > 0)
			tour_sleep_ns(inject_delay_ns);
		return inject_thread_error;
	}
	error = next(ret_thread, attributes, body, arg);
	inject_thread_errors += error != 0;
	inject_small_stacks += inject_stacks_watched && error == 0 && stack_small(*ret_thread);
	return error;
}

static int64_t true_now_ns(clockid_t id)
{
	static int (*next)(clockid_t, struct timespec *);
	struct timespec now;

	NEXT("clock_gettime", next);
	(void)next(id, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int clock_gettime(clockid_t id, struct timespec *ret_now)
{
	int64_t now_ns = true_now_ns(id);

	if (inject_clock != NULL && id == CLOCK_MONOTONIC && CALLED_BY(tickwheel_range))
		now_ns = inject_clock(now_ns);
	ret_now->tv_sec = now_ns / NS_PER_S;
	ret_now->tv_nsec = now_ns % NS_PER_S;
	return 0;
}

typedef long next_syscall(long, long, long, long, long, long, long);

/* Converts a deadline of the library's clock to the system's time. */
static const struct timespec *until_true(const struct timespec *until, struct timespec *room)
{
	int64_t now_ns, until_ns;

	if (until == NULL || inject_clock == NULL)
		return until;
	now_ns = true_now_ns(CLOCK_MONOTONIC);
	until_ns = (int64_t)until->tv_sec * NS_PER_S + until->tv_nsec;
	if (until_ns < INT64_MAX / 2)
		until_ns -= inject_clock(now_ns) - now_ns;
	if (until_ns < 0)
		until_ns = 0;
	*room = (struct timespec){.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
	return room;
}

static bool deadline_passed(const struct timespec *until)
{
	return until != NULL &&
	       (int64_t)until->tv_sec * NS_PER_S + until->tv_nsec <= true_now_ns(CLOCK_MONOTONIC);
}

static long futex_wait(next_syscall *next, long word, long operation, long value, long until)
{
	struct timespec room;
	bool fails = hit(INJECT_FUTEX_WAIT);
	long result;

	/*
	 * A wait must report its deadline, even if signals keep coming. So a wait whose deadline
	 * has passed is left as it is.
	 */
	if (fails && inject_wait != WAIT_LATE && !deadline_passed((const struct timespec *)until)) {
		errno = EINTR;
		return inject_wait == WAIT_EINTR ? -1 : 0;
	}
	result = next(SYS_futex, word, operation, value,
		      (long)until_true((const struct timespec *)until, &room), 0,
		      (long)FUTEX_BITSET_MATCH_ANY);
	if (fails && inject_wait == WAIT_LATE) {
		int error = errno;

		tour_sleep_ns(inject_delay_ns);
		errno = error;
	}
	return result;
}

long syscall(long number, ...)
{
	static next_syscall *next;
	long argument[6];
	long result;
	va_list list;
	int i;

	va_start(list, number);
	for (i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	NEXT("syscall", next);
	if (number == SYS_futex && CALLED_BY(tickwheel_range)) {
		if ((argument[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
			return futex_wait(next, argument[0], argument[1], argument[2], argument[3]);
		if (hit(INJECT_FUTEX_WAKE))
			tour_sleep_ns(inject_delay_ns);
	}
	result = next(number, argument[0], argument[1], argument[2], argument[3], argument[4],
		      argument[5]);
	if (number == SYS_membarrier && result < 0)
		atomic_fetch_add(&inject_membarrier_errors, 1);
	return result;
}

#endif
