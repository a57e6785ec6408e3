/* SPDX-License-Identifier: MIT */
/*
 * Runs callbacks.
 */
#ifndef TWI_EXPIRY_RUN_H
#define TWI_EXPIRY_RUN_H
#include "worker/role.h"

/* The 32 bits of a state word on which a futex can wait. */
_Atomic uint32_t *twi_word_futex(_Atomic uint64_t *word);

/* Runs a callback, from its begin to the end of its timeout. */
void twi_run(struct twi_run *run);

/* The callback, or the late hook. */
void twi_run_callback(struct twi_run *run);

/*
 * Runs `body`, which is the callback or a hook instead of it. ThreadSanitizer is notified
 * that it comes after the calls that scheduled and rescheduled it, and before the next run.
 */
void twi_run_body(struct twi_run *run, void (*body)(struct twi_run *run));

/* Marks the run so that its end is reported to ThreadSanitizer, too. */
void twi_run_mark_reported(struct twi_run *run);

/* The end of a run that has marks. Must be called before its thread leaves the run. */
void twi_run_marked_end(struct twi_run *run);

/* The last step of the state word. True if the caller must give the node back, and not reclaim. */
bool twi_run_close(struct twi_node *node);

/* Like twi_run, with the drop hook instead of the callback. */
void twi_run_drop(struct twi_run *run);

#endif
