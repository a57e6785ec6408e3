/* SPDX-License-Identifier: MIT */
#include "runtime/atomic.h"

#include "runtime/explore.h"
#include "runtime/object.h"
#include "runtime/trace.h"

#include <string.h>

enum { OBJECTS_MAX = 1 << 13, HEARD_MAX = 16 };
#define UNSEEN UINT32_MAX

/*
 * A relaxed read of one half of a double swap. After a load fence, the fiber may not read an older
 * value of the other half.
 */
struct heard {
	struct atomic_object *half;
	uint64_t pair;
};

static struct {
	unsigned used;
	uint64_t pairs;
	unsigned heard_count[MODEL_FIBERS];
	struct heard heard[MODEL_FIBERS][HEARD_MAX];
	struct atomic_object object[OBJECTS_MAX];
} state MODEL_STATE;

/* Reads without memcpy, because the model would record a memcpy as an access of its own. */
static uint64_t raw_read(const void *address, size_t bytes)
{
	switch (bytes) {
	case 1:
		return *(const volatile uint8_t *)address;
	case 2:
		return *(const volatile uint16_t *)address;
	case 4:
		return *(const volatile uint32_t *)address;
	default:
		return *(const volatile uint64_t *)address;
	}
}

static void raw_write(void *address, size_t bytes, uint64_t value)
{
	switch (bytes) {
	case 1:
		*(volatile uint8_t *)address = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)address = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)address = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)address = value;
		break;
	}
}

static void store_fill(struct store *store, uint64_t value, const struct fiber *writer)
{
	store->value = value;
	store->epoch = writer->epoch;
	store->fiber = writer->number;
	store->reads_previous = false;
	store->pair = store->pair_heard = 0;
	memset(&store->publishes, 0, sizeof store->publishes);
	memset(store->seen, 0xff, sizeof store->seen);
	memset(&store->writer, 0, sizeof store->writer);
	memset(&store->readers, 0, sizeof store->readers);
	store->seen[writer->number] = writer->epoch;
}

/* Begins with the value before this run's first atomic access, which every fiber knows. */
static void object_begin(struct atomic_object *object, void *address, size_t bytes)
{
	memset(object, 0, offsetof(struct atomic_object, store));
	object->address = address;
	object->bytes = bytes;
	object->count = 1;
	store_fill(&object->store[0], raw_read(address, bytes), fiber_self());
	object->store[0].epoch = 0;
	object->store[0].seen[fiber_self()->number] = UNSEEN;
}

static struct atomic_object *object_find(struct granule *granule, const void *address, size_t bytes)
{
	struct atomic_object *object = granule->objects;

	while (object != NULL && object->address != address)
		object = object->next;
	if (object == NULL) {
		if (state.used == OBJECTS_MAX)
			model_fail("too many atomic objects in one run");
		object = &state.object[state.used++];
		object_begin(object, (void *)(uintptr_t)address, bytes);
		object->next = granule->objects;
		granule->objects = object;
	}
	if (object->bytes != bytes)
		model_fail("an atomic object is accessed in two sizes: %s", trace_symbol(address));
	if (object->plainly_written) {
		object->plainly_written = false;
		object->store[object->count - 1].value = raw_read(address, bytes);
	}
	return object;
}

/* Checks the access for races and returns its object. */
static struct atomic_object *access_go(const void *address, size_t bytes, bool writes,
				       const void *pc)
{
	struct granule *granule = memory_granule(address);
	struct fiber *self = fiber_self();
	struct atomic_object *object;

	memory_atomic_check(address, bytes, writes, pc);
	object = object_find(granule, address, bytes);
	object->pc = pc;
	object->load_epoch[self->number] = self->epoch;
	if (writes) {
		memory_save(granule, address);
		object->store_epoch[self->number] = self->epoch;
	}
	return object;
}

/* Begins an atomic access: another fiber may go first. */
static struct atomic_object *access_begin(const void *address, size_t bytes, bool writes,
					  const void *pc)
{
	fiber_self()->speculates = false;
	fiber_point(memory_touch(memory_granule(address), writes));
	return access_go(address, bytes, writes, pc);
}

/* Returns whether `clock` covers the store, or covers a read of the store by a fiber. */
static bool store_known(const struct store *store, const struct model_clock *clock)
{
	if (store->epoch <= clock->w[store->fiber])
		return true;
	for (unsigned i = 0; i < MODEL_FIBERS; i++) {
		if (store->seen[i] != UNSEEN && store->seen[i] <= clock->r[i])
			return true;
	}
	return false;
}

/* Returns the oldest store that a load may read, or after which a new store may be placed. */
static unsigned floor_of(const struct atomic_object *object, const struct model_clock *clock,
			 atomic_order order)
{
	unsigned at = object->count - 1;

	while (at > 0 && !store_known(&object->store[at], clock))
		at--;
	if (order == __ATOMIC_SEQ_CST && at < object->order_floor)
		at = object->order_floor;
	return at;
}

static void order_note(struct atomic_object *object, unsigned at, atomic_order order)
{
	if (order == __ATOMIC_SEQ_CST && at > object->order_floor)
		object->order_floor = at;
}

static void store_see(struct store *store)
{
	struct fiber *self = fiber_self();

	if (store->seen[self->number] == UNSEEN)
		store->seen[self->number] = self->epoch;
}

/*
 * Called when the fiber has acquired one half of a double swap. The two halves are one store, so
 * the fiber must not read an older value of the other half.
 */
static void pair_see(struct atomic_object *object, uint64_t pair)
{
	for (unsigned at = 0; at < object->count; at++) {
		if (object->store[at].pair == pair)
			store_see(&object->store[at]);
	}
}

static void pair_note(struct atomic_object *half, uint64_t pair)
{
	unsigned *count = &state.heard_count[fiber_self()->number];
	struct heard *heard = state.heard[fiber_self()->number];

	for (unsigned i = 0; i < *count; i++) {
		if (heard[i].half != half)
			continue;
		heard[i].pair = heard[i].pair > pair ? heard[i].pair : pair;
		return;
	}
	if (*count == HEARD_MAX)
		model_fail("too many double swaps are read before a fence");
	heard[(*count)++] = (struct heard){.half = half, .pair = pair};
}

void atomic_pairs_see(void)
{
	unsigned *count = &state.heard_count[fiber_self()->number];
	const struct heard *heard = state.heard[fiber_self()->number];

	for (; *count > 0; --*count)
		pair_see(heard[*count - 1].half, heard[*count - 1].pair);
}

static void store_take(struct atomic_object *object, unsigned at, atomic_order order)
{
	struct store *store = &object->store[at];
	struct fiber *self = fiber_self();

	store_see(store);
	if (atomic_acquires(order))
		fiber_acquire(self, &store->publishes);
	else
		clock_join(&self->pending, &store->publishes);
	if (store->pair_heard == 0)
		return;
	if (atomic_acquires(order))
		pair_see(object->other_half, store->pair_heard);
	else
		pair_note(object->other_half, store->pair_heard);
}

static void oldest_forget(struct atomic_object *object)
{
	order_join(&object->forgotten, &object->store[0].writer);
	order_join(&object->forgotten, &object->store[0].readers);
	memmove(&object->store[0], &object->store[1],
		(ATOMIC_HISTORY - 1) * sizeof object->store[0]);
	object->count--;
	object->order_floor -= object->order_floor > 0;
}

/* Makes room for a store at `at`. Returns the index, one less if the oldest store was dropped. */
static unsigned room_make(struct atomic_object *object, unsigned at)
{
	if (object->count == ATOMIC_HISTORY) {
		oldest_forget(object);
		at--;
	}
	memmove(&object->store[at + 1], &object->store[at],
		(object->count - at) * sizeof object->store[0]);
	object->count++;
	return at;
}

static struct store *store_put(struct atomic_object *object, unsigned at, uint64_t value,
			       atomic_order order)
{
	struct fiber *self = fiber_self();
	struct order_set writer = {{0}};
	struct store *store;

	if (order == __ATOMIC_SEQ_CST)
		object_store_order(object, at, &writer);
	at = room_make(object, at);
	if (object->order_floor >= at && object->order_floor > 0)
		object->order_floor++;
	store = &object->store[at];
	store_fill(store, value, self);
	store->writer = writer;
	store->publishes = atomic_releases(order) ? self->now : self->released;
	order_note(object, at, order);
	if (at == object->count - 1)
		raw_write(object->address, object->bytes, value);
	return store;
}

/* Lists the stores in [from, count) that do not have the value `except`, the newest first. */
static unsigned answers_list(const struct atomic_object *object, unsigned from,
			     const uint64_t *except, unsigned *ret_answer)
{
	unsigned count = 0;

	for (unsigned at = object->count; at-- > from;) {
		if (except == NULL || object->store[at].value != *except)
			ret_answer[count++] = at;
	}
	return count;
}

/* Lists the stores that a load may read, the newest first. */
static unsigned loads_list(const struct atomic_object *object, const uint64_t *except,
			   atomic_order order, unsigned *ret_answer)
{
	bool any_order = order == __ATOMIC_SEQ_CST && order_open();
	unsigned from =
		floor_of(object, &fiber_self()->reads, any_order ? __ATOMIC_ACQUIRE : order);
	unsigned listed = answers_list(object, from, except, ret_answer);
	unsigned count = 0;

	for (unsigned i = 0; i < listed; i++) {
		unsigned at = ret_answer[i];
		struct standing standing;

		if (any_order && at < object->order_floor) {
			standing = object_standing(object, at);
			if (!order_allows(&standing.before, &standing.after))
				continue;
		}
		ret_answer[count++] = at;
	}
	return count;
}

static uint64_t load_from(struct atomic_object *object, unsigned at, atomic_order order,
			  const void *pc)
{
	uint64_t value = object->store[at].value;

	if (order == __ATOMIC_SEQ_CST)
		object_load_order(object, at);
	store_take(object, at, order);
	order_note(object, at, order);
	trace_access("load", object->address, order, value, object->count - 1 - at, pc);
	fiber_tick(fiber_self());
	return value;
}

uint64_t atomic_load_at(const void *address, size_t bytes, atomic_order order, const void *pc)
{
	unsigned answer[ATOMIC_HISTORY];
	struct atomic_object *object;
	unsigned count;

	if (!memory_seen(address))
		return raw_read(address, bytes);
	object = access_begin(address, bytes, false, pc);
	count = loads_list(object, NULL, order, answer);
	return load_from(object, answer[explore_weak(count)], order, pc);
}

/* Lists the places where a new store may be put, the last in modification order first. */
static unsigned places_list(const struct atomic_object *object, atomic_order order,
			    unsigned *ret_place)
{
	bool any_order = order == __ATOMIC_SEQ_CST && order_open();
	unsigned from = floor_of(object, &fiber_self()->now, any_order ? __ATOMIC_RELEASE : order);
	unsigned count = 0;

	ret_place[count++] = object->count;
	for (unsigned at = object->count - 1; at > from; at--) {
		if (!object->store[at].reads_previous &&
		    (!any_order || object_store_stands(object, at)))
			ret_place[count++] = at;
	}
	return count;
}

void atomic_store_at(void *address, size_t bytes, uint64_t value, atomic_order order,
		     const void *pc)
{
	unsigned place[ATOMIC_HISTORY + 1];
	struct atomic_object *object;
	unsigned count, taken;

	if (!memory_seen(address)) {
		raw_write(address, bytes, value);
		return;
	}
	object = access_begin(address, bytes, true, pc);
	count = places_list(object, order, place);
	taken = place[explore_weak(count)];
	trace_access("store", address, order, value, object->count - taken, pc);
	(void)store_put(object, taken, value, order);
	fiber_tick(fiber_self());
}

/* Adds the store of a read-modify-write directly after the last store, which it has read. */
static void behind_put(struct atomic_object *object, uint64_t value, atomic_order order)
{
	struct model_clock handed_on = object->store[object->count - 1].publishes;
	uint64_t pair_heard = object->store[object->count - 1].pair_heard;
	struct store *store;

	store_take(object, object->count - 1, order);
	store = store_put(object, object->count, value, order);
	store->reads_previous = true;
	store->pair_heard = pair_heard;
	clock_join(&store->publishes, &handed_on);
}

static uint64_t newest(const struct atomic_object *object)
{
	return object->store[object->count - 1].value;
}

uint64_t atomic_change_at(void *address, size_t bytes, atomic_change *change, uint64_t operand,
			  atomic_order order, const void *pc)
{
	uint64_t mask = UINT64_MAX >> (64 - 8 * bytes);
	struct atomic_object *object;
	uint64_t before;

	if (!memory_seen(address)) {
		before = raw_read(address, bytes);
		raw_write(address, bytes, change(before, operand));
		return before;
	}
	object = access_begin(address, bytes, true, pc);
	before = newest(object);
	behind_put(object, change(before, operand) & mask, order);
	trace_access("change", address, order, newest(object), 0, pc);
	fiber_tick(fiber_self());
	return before;
}

static uint64_t raw_swap(void *address, size_t bytes, uint64_t expected, uint64_t desired)
{
	uint64_t before = raw_read(address, bytes);

	if (before == expected)
		raw_write(address, bytes, desired);
	return before;
}

/*
 * Makes a compare-and-swap. Success is the first answer, if it is possible. All other answers are
 * loads of another value.
 */
uint64_t atomic_swap_at(void *address, size_t bytes, uint64_t expected, uint64_t desired,
			atomic_order success, atomic_order failure, const void *pc)
{
	unsigned answer[ATOMIC_HISTORY];
	struct atomic_object *object;
	unsigned count, taken;
	bool possible;

	if (!memory_seen(address))
		return raw_swap(address, bytes, expected, desired);
	object = access_begin(address, bytes, true, pc);
	possible = newest(object) == expected;
	count = loads_list(object, &expected, failure, answer);
	taken = explore_weak(count + possible);
	if (!possible || taken > 0)
		return load_from(object, answer[taken - possible], failure, pc);
	behind_put(object, desired, success);
	trace_access("swap", address, success, desired, 0, pc);
	fiber_tick(fiber_self());
	return expected;
}

static bool double_raw(uint64_t *address, const uint64_t *expected, const uint64_t *desired,
		       uint64_t *ret_seen)
{
	bool equal = address[0] == expected[0] && address[1] == expected[1];

	memcpy(ret_seen, address, 16);
	if (equal)
		memcpy(address, desired, 16);
	return equal;
}

/* Finds the objects of both halves. */
static void halves_begin(uint64_t *address, struct atomic_object **ret_half, const void *pc)
{
	(void)memory_touch(memory_granule(&address[1]), true);
	ret_half[0] = access_begin(&address[0], 8, true, pc);
	ret_half[1] = access_go(&address[1], 8, true, pc);
	ret_half[0]->other_half = ret_half[1];
	ret_half[1]->other_half = ret_half[0];
}

static void half_swap(struct atomic_object *half, bool equal, uint64_t desired)
{
	if (!equal) {
		store_take(half, half->count - 1, __ATOMIC_RELAXED);
		return;
	}
	behind_put(half, desired, __ATOMIC_RELAXED);
	half->store[half->count - 1].pair = state.pairs;
	half->store[half->count - 1].pair_heard = state.pairs;
}

/*
 * Lists the stores of `half` that may be read together with the newest store of `other`, the newest
 * first. A double swap that would change nothing is a load, which reads both halves as of one
 * moment. If the newest store of `other` publishes a store of `half`, the load reads that store or
 * a newer one.
 */
static unsigned half_answers(const struct atomic_object *half, const struct atomic_object *other,
			     unsigned *ret_answer)
{
	unsigned from = floor_of(half, &fiber_self()->reads, __ATOMIC_RELAXED);

	for (unsigned at = from + 1; at < half->count; at++) {
		if (store_known(&half->store[at], &other->store[other->count - 1].publishes))
			from = at;
	}
	return answers_list(half, from, NULL, ret_answer);
}

static void double_load(struct atomic_object *const *half, uint64_t *ret_seen, const void *pc)
{
	unsigned answer[2][ATOMIC_HISTORY];
	unsigned count = half_answers(half[0], half[1], answer[0]);
	unsigned others = half_answers(half[1], half[0], answer[1]) - 1;
	unsigned taken = explore_weak(count + others);
	unsigned at[2] = {half[0]->count - 1, half[1]->count - 1};

	if (taken < count)
		at[0] = answer[0][taken];
	else
		at[1] = answer[1][taken - count + 1];
	for (unsigned i = 0; i < 2; i++) {
		ret_seen[i] = half[i]->store[at[i]].value;
		store_take(half[i], at[i], __ATOMIC_RELAXED);
		trace_access("load 2", half[i]->address, __ATOMIC_RELAXED, ret_seen[i],
			     half[i]->count - 1 - at[i], pc);
	}
}

bool atomic_double_swap_at(uint64_t *address, const uint64_t *expected, const uint64_t *desired,
			   uint64_t *ret_seen, const void *pc)
{
	const void *speculative = fiber_self()->speculative;
	struct atomic_object *half[2];
	bool equal;

	if (!memory_seen(address))
		return double_raw(address, expected, desired, ret_seen);
	halves_begin(address, half, pc);
	if (memcmp(expected, desired, 2 * sizeof *expected) == 0) {
		double_load(half, ret_seen, pc);
		fiber_tick(fiber_self());
		return ret_seen[0] == expected[0] && ret_seen[1] == expected[1];
	}
	for (unsigned i = 0; i < 2; i++)
		ret_seen[i] = newest(half[i]);
	equal = ret_seen[0] == expected[0] && ret_seen[1] == expected[1];
	trace_access(equal ? "swap 2" : "load 2", address, __ATOMIC_RELAXED, ret_seen[0], 0, pc);
	if (equal && speculative != NULL)
		memory_read(speculative, sizeof(void *), pc);
	fiber_self()->speculative = NULL;
	state.pairs++;
	for (unsigned i = 0; i < 2; i++)
		half_swap(half[i], equal, desired[i]);
	fiber_tick(fiber_self());
	return equal;
}

uint32_t atomic_kernel_read(const void *address)
{
	return (uint32_t)raw_read(address, sizeof(uint32_t));
}

static void object_race_check(const struct atomic_object *object, bool writes, const void *pc)
{
	const struct fiber *self = fiber_self();

	for (unsigned i = 0; i < fibers.count; i++) {
		bool stored = object->store_epoch[i] > (writes ? self->now.w[i] : self->reads.w[i]);
		bool loaded = writes && object->load_epoch[i] > self->now.r[i];

		if (stored || loaded)
			model_fail("data race at %s: ordinary %s by fiber %u at %s against atomic "
				   "%s by fiber %u at %s",
				   trace_symbol(object->address), writes ? "write" : "read",
				   self->number, trace_symbol(pc), stored ? "store" : "load", i,
				   trace_symbol(object->pc));
	}
}

/* Adds an ordinary write as one more store. Its value is read from memory when it is needed. */
static void object_plain_write(struct atomic_object *object)
{
	const struct fiber *self = fiber_self();

	(void)room_make(object, object->count);
	store_fill(&object->store[object->count - 1], 0, self);
	object->plainly_written = true;
}

void atomic_plain_access(struct granule *granule, uintptr_t begin, size_t bytes, bool writes,
			 const void *pc)
{
	for (struct atomic_object *object = granule->objects; object != NULL;
	     object = object->next) {
		uintptr_t at = (uintptr_t)object->address;

		if (at + object->bytes <= begin || begin + bytes <= at)
			continue;
		object_race_check(object, writes, pc);
		if (writes)
			object_plain_write(object);
	}
}

void atomic_end(void)
{
	state.used = 0;
	memset(state.heard_count, 0, sizeof state.heard_count);
}
