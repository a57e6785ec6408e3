/* SPDX-License-Identifier: MIT */
/* Patterns of MATCH: *, ?, [abc], [^abc], [a-z], and \ before a byte that is taken literally. */
#include "resp.h"

/* Returns the byte at `*at`, or the byte after it if that is a \, and moves `*at` behind the
 * byte. */
static char take_byte(struct span pattern, size_t *at)
{
	if (pattern.bytes[*at] == '\\' && *at + 1 < pattern.count)
		++*at;
	return pattern.bytes[(*at)++];
}

/* `*at` begins behind the [, and ends behind the ]. Without a ], the class extends to the end of
 * the pattern. */
static bool class_has(struct span pattern, size_t *at, char byte)
{
	bool negated = *at < pattern.count && pattern.bytes[*at] == '^';
	bool found = false;

	*at += negated;
	while (*at < pattern.count && pattern.bytes[*at] != ']') {
		unsigned char low = (unsigned char)take_byte(pattern, at), high = low;

		if (*at + 1 < pattern.count && pattern.bytes[*at] == '-' &&
		    pattern.bytes[*at + 1] != ']') {
			++*at;
			high = (unsigned char)take_byte(pattern, at);
		}
		found |= (low <= (unsigned char)byte && (unsigned char)byte <= high) ||
			 (high <= (unsigned char)byte && (unsigned char)byte <= low);
	}
	*at += *at < pattern.count;
	return found != negated;
}

/* Compares a byte with one part of a pattern that is no *, and moves `*at` behind the part. */
static bool part_matches(struct span pattern, size_t *at, char byte)
{
	switch (pattern.bytes[*at]) {
	case '?':
		++*at;
		return true;
	case '[':
		++*at;
		return class_has(pattern, at, byte);
	default:
		return take_byte(pattern, at) == byte;
	}
}

/*
 * When a part does not match, the last * takes one byte more. The parts before that * need not be
 * compared again. So the number of steps is at most the length of the pattern times that of the
 * text.
 */
bool glob_matches(struct span pattern, struct span text)
{
	size_t at = 0, done = 0, star = 0, star_done = 0;
	bool starred = false;

	while (done < text.count) {
		size_t next = at;

		if (at < pattern.count && pattern.bytes[at] == '*') {
			starred = true;
			star = ++at;
			star_done = done;
		} else if (at < pattern.count && part_matches(pattern, &next, text.bytes[done])) {
			at = next;
			done++;
		} else if (starred) {
			at = star;
			done = ++star_done;
		} else {
			return false;
		}
	}
	while (at < pattern.count && pattern.bytes[at] == '*')
		at++;
	return at == pattern.count;
}
