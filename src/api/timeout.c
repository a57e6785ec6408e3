/* SPDX-License-Identifier: MIT */
/*
 * Asking about a timeout: tw_timeout_state, tw_timeout_get.
 */
#include "base/atomic.h"
#include "base/sized.h"
#include "mech/fork.h"
#include "timeout/node.h"

#include <errno.h>
#include <tickwheel/timeout.h>

static enum tw_state state_of(uint64_t word)
{
	switch (twi_word_state(word)) {
	case TWI_WORD_INIT:
	case TWI_WORD_LINKED:
	case TWI_WORD_WHEELED:
	case TWI_WORD_OWNED:
		return TW_STATE_INIT;
	case TWI_WORD_CANCELLED:
		return TW_STATE_CANCELLED;
	default:
		return TW_STATE_EXPIRED;
	}
}

static int handle_check(struct tw_handle handle)
{
	if (!twi_handle_sane(handle))
		return -EINVAL;
	return twi_forked() ? -ECHILD : 0;
}

int tw_timeout_state(struct tw_handle handle)
{
	int error = handle_check(handle);
	uint64_t word;

	if (error != 0)
		return error;
	/* E4: what the canceller did before. EXPIRED does not say that the callback has ended. */
	word = twi_load_acquire(&twi_node_of_handle(handle)->word);
	return twi_word_same(word, handle.birth) ? (int)state_of(word) : -ESTALE;
}

/*
 * The deadline, and the word, both of one moment: a state that is found before and after the deadline
 * was there all the time, since none ever comes back.
 */
static uint64_t deadline_read(struct twi_node *node, int64_t *ret_deadline_ns)
{
	uint64_t before, word;

	/* E4: a deadline not older than that. */
	word = twi_load_acquire(&node->word);
	do {
		before = word;
		*ret_deadline_ns = twi_node_deadline_ns(node);
		/* E4: as above, and the same generation after the fields were acquired: they are of
		 * this timeout. */
		word = twi_load_acquire(&node->word);
	} while (twi_word_state(word) != twi_word_state(before));
	return word;
}

int tw_timeout_get(struct tw_handle handle, struct tw_timeout *ret_timeout)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct tw_timeout seen = {.size = sizeof seen};
	int error = handle_check(handle);
	uint64_t word;

	if (error != 0)
		return error;
	if (ret_timeout == NULL || ret_timeout->size < sizeof seen ||
	    ret_timeout->size > TWI_STRUCT_BYTES_MAX)
		return -EINVAL;
	seen.engine = twi_node_engine(node);
	seen.kind = twi_node_kind(node);
	seen.arg = twi_node_arg(node);
	word = deadline_read(node, &seen.deadline_ns);
	if (!twi_word_same(word, handle.birth))
		return -ESTALE;
	seen.state = state_of(word);
	seen.size = ret_timeout->size;
	twi_copy_out(ret_timeout, seen.size, &seen, sizeof seen);
	return 0;
}
