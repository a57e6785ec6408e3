/* SPDX-License-Identifier: MIT */
/*
 * Static trace points (USDT, docs/tracing.md). A trace point is a no-operation in the code, and a
 * note in the library with its place and the places of its arguments. A tracer puts a breakpoint on
 * the no-operation.
 *
 * Arguments should be values that are already known, because they are computed even without a
 * tracer. If the feature `probes` is off, the macros expand to nothing, and the arguments are not
 * evaluated.
 */
#ifndef TWI_BASE_PROBE_H
#define TWI_BASE_PROBE_H

/* For the probe of cancel: the place where the timeout was. */
enum {
	TWI_PROBE_ON_ITS_WAY = 0, /* the worker had not taken the timeout yet */
	TWI_PROBE_IN_WHEEL = 1,
	TWI_PROBE_RUNNING = 2, /* in a run of a periodic timeout; no further run begins */
};

#ifdef TWI_PROBES

#include <sys/sdt.h>

#define TWI_PROBE1(name, a) STAP_PROBE1(tickwheel, name, a)
#define TWI_PROBE2(name, a, b) STAP_PROBE2(tickwheel, name, a, b)
#define TWI_PROBE3(name, a, b, c) STAP_PROBE3(tickwheel, name, a, b, c)
#define TWI_PROBE4(name, a, b, c, d) STAP_PROBE4(tickwheel, name, a, b, c, d)
#define TWI_PROBE5(name, a, b, c, d, e) STAP_PROBE5(tickwheel, name, a, b, c, d, e)

#else

#define TWI_PROBE1(name, a) ((void)sizeof(a))
#define TWI_PROBE2(name, a, b) (TWI_PROBE1(name, a), (void)sizeof(b))
#define TWI_PROBE3(name, a, b, c) (TWI_PROBE2(name, a, b), (void)sizeof(c))
#define TWI_PROBE4(name, a, b, c, d) (TWI_PROBE3(name, a, b, c), (void)sizeof(d))
#define TWI_PROBE5(name, a, b, c, d, e) (TWI_PROBE4(name, a, b, c, d), (void)sizeof(e))

#endif

#endif
