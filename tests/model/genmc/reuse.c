/* SPDX-License-Identifier: MIT */
/*
 * A handle against the next life of its node (timeout/node.h): who reads the fields first and the
 * word then, as tw_timeout_get does, has fields of the handle's life, or sees that it is over (E4).
 *
 * Seen to fail: the store of `kind` or `arg` relaxed, the load of either relaxed. The engine and
 * the deadline are not read here, so not judged. reuse_get of tests/model judges all four.
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
