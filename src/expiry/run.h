/* SPDX-License-Identifier: MIT */
/*
 * Runs callbacks.
 */
#ifndef TWI_EXPIRY_RUN_H
#define TWI_EXPIRY_RUN_H
#include "worker/role.h"

/*
 * Marks the library's own kinds. Their runs never count as late, because the late hook must not run
 * instead of their callback. Only a kind whose context is `&twi_kind_own` may have this flag.
 */
#define TWI_KIND_FLAG_OWN (UINT32_C(1) << 31)
extern const char twi_kind_own;

/* Returns the 32 bits of a state word on which a futex can wait. */
_Atomic uint32_t *twi_word_futex(_Atomic uint64_t *word);

/* Runs a callback, and then ends its timeout. */
void twi_run(struct twi_run *run);

/* Calls the kind's callback, or the late hook. */
void twi_run_callback(struct twi_run *run);

/*
 * Runs `body`: the callback, or a hook instead of it. Reports to ThreadSanitizer that `body` comes
 * after the calls that scheduled and rescheduled the timeout, and before the next run.
 */
void twi_run_body(struct twi_run *run, void (*body)(struct twi_run *run));

/*
 * If the program has ThreadSanitizer: reports that the run begins, and marks the run so that its
 * end is reported, too.
 */
void twi_run_mark_reported(struct twi_run *run);

/* Ends a run that has marks. Must be called before its thread leaves the run. */
void twi_run_marked_end(struct twi_run *run);

/*
 * Makes the last step of the state word. Returns true if the caller must free the node, false if
 * reclaim does.
 */
bool twi_run_close(struct twi_node *node);

/* Does the same as twi_run, with the drop hook instead of the callback. */
void twi_run_drop(struct twi_run *run);

#endif
