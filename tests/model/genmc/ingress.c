/* SPDX-License-Identifier: MIT */
/*
 * Ingress (queue/mpsc.h): no node is lost, each producer's nodes come in order, and the consumer
 * sees everything that a node's producer wrote (E1, E2). The consumer takes nodes while the
 * producers push, and the rest afterwards.
 *
 * Seen to fail with these defects:
 * - twi_mpsc_push_chain_mp() exchanges the head without release, or relaxed;
 * - twi_mpsc_push_chain_mp() stores the link `next` relaxed;
 * - twi_mpsc_take_sc() makes its first or its second load of `next` relaxed.
 *
 * This harness cannot test the third load, which follows the push of the stub, because it uses no
 * node twice. The harnesses ingress_2x3 and ingress_3x2 of tests/model test it.
 */
#include "queue/mpsc.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct item {
	struct twi_mpsc_node link;
	unsigned number;
};

static struct twi_mpsc_in in;
static struct twi_mpsc_out out;
static struct item items[PRODUCERS][NODES];
static unsigned taken[PRODUCERS];

static void *produce(void *argument)
{
	struct item *mine = argument;

	for (unsigned i = 0; i < NODES; i++) {
		mine[i].number = i;
		twi_mpsc_push_mp(&in, &mine[i].link);
	}
	return NULL;
}

static bool take(void)
{
	struct twi_mpsc_node *link = twi_mpsc_take_sc(&in, &out);
	struct item *item;
	unsigned producer = 0;

	if (link == NULL)
		return false;
	item = TWI_CONTAINER_OF(link, struct item, link);
	while (item >= items[producer] + NODES)
		producer++;
	assert(item->number == taken[producer]);
	taken[producer]++;
	return true;
}

int main(void)
{
	pthread_t thread[PRODUCERS];

	twi_mpsc_init(&in, &out);
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_create(&thread[i], NULL, produce, items[i]);
	for (unsigned i = 0; i < TAKES; i++)
		(void)take();
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(thread[i], NULL);
	while (take())
		;
	for (unsigned i = 0; i < PRODUCERS; i++)
		assert(taken[i] == NODES);
	return 0;
}
