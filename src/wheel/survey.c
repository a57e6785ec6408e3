/* SPDX-License-Identifier: MIT */
#include "wheel/survey.h"

#include "base/compiler.h"
#include "wheel/order.h"

enum {
	/* Nodes prefetched inside a chunk: as many misses as a core can have open. */
	AHEAD = 12,
};

static unsigned age_of(int64_t until_ns)
{
	int64_t end_ns = TWI_SURVEY_FIRST_NS;
	unsigned age = 1;

	if (until_ns <= 0)
		return 0;
	for (; age <= TWI_SURVEY_DECADES && until_ns >= end_ns; age++)
		end_ns *= 10;
	return age;
}

/* Counts a cancelled node. It rests in the wheel, unchanged, until reclaim takes it. */
static void cancelled_count(struct twi_survey *survey, struct twi_node *node, int64_t deadline_ns)
{
	survey->cancelled++;
	if (survey->first_cancelled == NULL ||
	    deadline_ns < twi_node_deadline_ns(survey->first_cancelled))
		survey->first_cancelled = node;
}

void twi_survey_node(struct twi_survey *survey, struct twi_node *node)
{
	int64_t deadline_ns = twi_node_deadline_ns(node);

	/* RELAXED: only a number for a reader. The node is the worker's in any state. */
	if (twi_word_state(twi_load_relaxed(&node->word)) == TWI_WORD_CANCELLED)
		cancelled_count(survey, node, deadline_ns);
	else if (deadline_ns == TW_NEVER)
		survey->age[TWI_SURVEY_AGES - 1]++;
	else
		survey->age[age_of(deadline_ns - survey->now_ns)]++;
}

/* Puts a slot among the fullest, if it is one of them. The list is short and sorted. */
static void slot_rank(struct twi_survey *survey, struct twi_survey_slot slot)
{
	unsigned at = TWI_SURVEY_SLOTS;

	for (; at > 0 && survey->slot[at - 1].count < slot.count; at--)
		if (at < TWI_SURVEY_SLOTS)
			survey->slot[at] = survey->slot[at - 1];
	if (at < TWI_SURVEY_SLOTS)
		survey->slot[at] = slot;
}

static TWI_WORKER_ONLY void chunk_count(struct twi_survey *survey, const struct twi_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->count; i++) {
		if (i + AHEAD < chunk->count)
			TWI_PREFETCH(twi_block_at(chunk->entry[i + AHEAD].block));
		twi_survey_node(survey, twi_block_at(chunk->entry[i].block));
	}
}

static TWI_WORKER_ONLY uint64_t slot_count(struct twi_survey *survey, const struct twi_slot *slot)
{
	uint64_t count = 0;

	for (const struct twi_chunk *chunk = slot->first; chunk != NULL; chunk = chunk->next) {
		chunk_count(survey, chunk);
		count += chunk->count;
	}
	return count;
}

static TWI_WORKER_ONLY void slot_visit(void *context, unsigned level, uint32_t number,
				       const struct twi_slot *slot)
{
	struct twi_survey *survey = context;
	uint64_t count = slot_count(survey, slot);

	survey->level[level] += count;
	slot_rank(survey,
		  (struct twi_survey_slot){.level = level, .number = number, .count = count});
}

static TWI_WORKER_ONLY uint64_t list_count(struct twi_survey *survey, struct twi_node *node)
{
	uint64_t count = 0;

	for (; node != NULL; node = twi_list_next(node), count++)
		twi_survey_node(survey, node);
	return count;
}

void twi_wheel_survey(const struct twi_wheel *wheel, int64_t now_ns, struct twi_survey *ret)
{
	*ret = (struct twi_survey){.now_ns = now_ns};
	wheel->ops->each(wheel, slot_visit, ret);
	ret->overdue = slot_count(ret, &wheel->overdue);
	ret->unslotted = list_count(ret, wheel->unslotted) + list_count(ret, wheel->unslotted_seen);
	ret->ready = list_count(ret, wheel->ready);
	ret->later = list_count(ret, wheel->later);
	ret->refused = list_count(ret, wheel->refused);
}
