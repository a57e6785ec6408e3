/* SPDX-License-Identifier: MIT */
/*
 * Ingress (queue/mpsc.h): no node is lost, each producer's nodes come in order, and the consumer
 * sees everything that a node's producer wrote (E1, E2).
 *
 * Seen to fail with these defects:
 * - twi_mpsc_push_chain_mp() stores the link `next` relaxed;
 * - twi_mpsc_take_sc() makes any one of its three loads of `next` relaxed;
 * - the exchange of the head is relaxed;
 * - the exchange of the head is a load and a store;
 * - twi_mpsc_count_sc() follows a link relaxed, or counts nothing.
 */
#include "model.h"
#include "queue/mpsc.h"

enum { PRODUCERS = 3, NODES = 3 };

struct item {
	struct twi_mpsc_node link;
	unsigned producer;
	unsigned number;
};

static struct twi_mpsc_in in;
static struct twi_mpsc_out out;
static struct item items[PRODUCERS][NODES];
static struct item astray = {.number = NODES};
static unsigned expected[PRODUCERS];

static void begin(void)
{
	twi_mpsc_init(&in, &out);
	/*
	 * Each node begins with a link from an earlier use. A consumer that follows it ends at
	 * `astray`.
	 */
	for (unsigned i = 0; i < PRODUCERS * NODES; i++)
		twi_store_relaxed(&items[i / NODES][i % NODES].link.next, &astray.link);
}

static void produce(unsigned producer, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct item *item = &items[producer][i];

		item->producer = producer;
		item->number = i;
		twi_mpsc_push_mp(&in, &item->link);
	}
}

static bool take(void)
{
	struct twi_mpsc_node *link = twi_mpsc_take_sc(&in, &out);
	struct item *item = TWI_CONTAINER_OF(link, struct item, link);

	if (link == NULL)
		return false;
	MODEL_CHECK(item->number == expected[item->producer]);
	expected[item->producer]++;
	/*
	 * The node is free again. This write stands for the pool's own link; a producer that still
	 * writes to the node would race with it.
	 */
	*(volatile uintptr_t *)(void *)&item->link = 0;
	return true;
}

static void consume(void)
{
	for (int i = 0; i < 3; i++)
		(void)take();
}

static void drain(unsigned producers, unsigned count)
{
	while (take())
		;
	for (unsigned i = 0; i < producers; i++)
		MODEL_CHECK(expected[i] == count);
}

static void first_of_three(void)
{
	produce(0, 2);
}

static void second_of_three(void)
{
	produce(1, 2);
}

static void third_of_three(void)
{
	produce(2, 2);
}

static void first_of_two(void)
{
	produce(0, 3);
}

static void second_of_two(void)
{
	produce(1, 3);
}

static void drain_3x2(void)
{
	drain(3, 2);
}

static void drain_2x3(void)
{
	drain(2, 3);
}

MODEL_HARNESS(ingress_2x3,
	      .proves = "2 producers of 3 nodes: none is lost, and each producer's are in order",
	      .setup = begin, .thread = {first_of_two, second_of_two, consume}, .finish = drain_2x3,
	      .preemptions = 2, .weak = 1, .random_runs = 5000);
MODEL_HARNESS(ingress_3x2,
	      .proves = "3 producers of 2 nodes: none is lost, and each producer's are in order",
	      .setup = begin, .thread = {first_of_three, second_of_three, third_of_three, consume},
	      .finish = drain_3x2, .preemptions = 2, .weak = 1, .random_runs = 5000);

/* In the next harness, the consumer counts the nodes that it could take, as a dump does. */
static void produce_one(void)
{
	produce(0, 1);
}

static void count(void)
{
	MODEL_CHECK(twi_mpsc_count_sc(&out) <= 1);
}

static void counted_all(void)
{
	MODEL_CHECK(twi_mpsc_count_sc(&out) == 1);
	produce(1, NODES);
	MODEL_CHECK(twi_mpsc_count_sc(&out) == 1 + NODES);
	MODEL_CHECK(take());
	MODEL_CHECK(twi_mpsc_count_sc(&out) == NODES);
}

MODEL_HARNESS(ingress_count, .proves = "the consumer's count never exceeds the number of pushes",
	      .setup = begin, .thread = {produce_one, count}, .finish = counted_all,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
