/* SPDX-License-Identifier: MIT */
/*
 * A layer between the library and the system. The program defines malloc, mmap, pthread_create,
 * clock_gettime and syscall, so that the shared libraries call these. Each function calls the
 * original one, unless its fault says otherwise. mmap, the clock and futexes fail only if
 * libtickwheel itself calls them, never for the tour or the C library.
 */
#ifndef FAULTS_INJECT_H
#define FAULTS_INJECT_H

#include "fault.h"
#include "tour.h"

enum inject_kind {
	INJECT_MALLOC,     /* malloc, calloc and realloc return NULL */
	INJECT_MMAP,       /* mmap by libtickwheel fails with ENOMEM */
	INJECT_THREAD,     /* pthread_create returns inject_thread_error */
	INJECT_FUTEX_WAIT, /* a futex wait ends as inject_wait says */
	INJECT_FUTEX_WAKE, /* a futex wake-up happens inject_delay_ns later */
	INJECT_KINDS
};

extern struct fault inject_fault[INJECT_KINDS];
extern int inject_thread_error;

/* What a futex wait returns if the fault hits it. */
enum inject_wait {
	WAIT_EINTR,    /* it returns EINTR at once */
	WAIT_SPURIOUS, /* it returns 0 at once */
	WAIT_LATE,     /* it returns inject_delay_ns late */
};

extern enum inject_wait inject_wait;
/* The delay of a futex, or of the failure of pthread_create. */
extern int64_t inject_delay_ns;
/* The fault hits only every n-th call that it is armed for. 0: it hits all. */
extern unsigned inject_every;

/*
 * How often the system itself failed: membarrier by any caller, a mapping for libtickwheel, a
 * thread for any caller.
 */
extern atomic_llong inject_membarrier_errors;
extern atomic_llong inject_mmap_errors;
extern atomic_llong inject_thread_errors;
/* Counts threads that were created with the smallest stack that the system allows. */
extern atomic_llong inject_small_stacks;
extern bool inject_stacks_watched;

/*
 * If not NULL, converts the true time to the time that the library's clock shows. If it is NULL,
 * the clock shows the true time. Deadlines of futexes are converted back, so that a wait lasts as
 * long as the library asks.
 */
extern int64_t (*inject_clock)(int64_t true_ns);

/*
 * Returns whether this build can replace the C library's functions. A build with ThreadSanitizer
 * cannot, because ThreadSanitizer replaces these functions itself.
 */
bool inject_possible(void);

#define INJECT_IMPOSSIBLE "a sanitizer stands there itself"

/* Returns whether this build can make malloc fail. No sanitizer allows it. */
bool inject_malloc_possible(void);

/* Arms a fault for all calls from the first on. */
void inject_all(enum inject_kind kind);

/* Functions for a tour plan whose `context` is an element of inject_fault: they disarm that fault,
 * and return how many calls it has hit. */
void inject_disarm(void *fault);
long long inject_hits(void *fault);

#endif
