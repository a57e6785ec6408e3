/* SPDX-License-Identifier: MIT */
/*
 * A thread uses a handle while the handle's node becomes another timeout (timeout/node.h). Like
 * tw_timeout_get, the thread reads first the fields, then the state word. Either the fields belong
 * to the handle's timeout, or the state word shows that this timeout is over (E4).
 *
 * Seen to fail with these defects: `kind` or `arg` is stored relaxed; `kind` or `arg` is loaded
 * relaxed.
 *
 * This harness does not read the fields `engine` and `deadline_ns`. The harness reuse_get of
 * tests/model tests all four fields.
 */
#include "timeout/node.h"

#include <assert.h>
#include <pthread.h>

static struct twi_node node;
static struct tw_kind kind[2];
static int arg[2];

static struct tw_handle birth(int life)
{
	return twi_node_begin(&node, NULL, &kind[life], &arg[life], life);
}

static void *next_life(void *argument)
{
	(void)birth(1);
	return argument;
}

int main(void)
{
	struct tw_handle handle = generation(0);
	const struct tw_kind *seen_kind;
	void *seen_arg;
	pthread_t thread;

	pthread_create(&thread, NULL, next_life, NULL);
	seen_kind = twi_node_kind(&node);
	seen_arg = twi_node_arg(&node);
	/* E4, as in tw_timeout_get. */
	if (twi_word_same(twi_load_acquire(&node.word), handle.generation))
		assert(seen_kind == &kind[0] && seen_arg == &arg[0]);
	pthread_join(thread, NULL);
	assert(!twi_word_same(twi_load_acquire(&node.word), handle.generation));
	return 0;
}
