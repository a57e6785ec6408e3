/* SPDX-License-Identifier: MIT */
#include "image.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SECTOR = 512,
};

/* Describes a write, or, if `bytes` is NULL, a truncation to `offset`. */
struct change {
	struct change *next;
	uint64_t offset;
	size_t count;
	unsigned char *bytes;
};

struct image {
	unsigned char *bytes;
	uint64_t length, room;
	struct change *first, **last;
};

/* Returns `memory`. Ends the test if it is NULL. */
static void *need(void *memory)
{
	if (memory == NULL)
		abort();
	return memory;
}

struct image *image_create(void)
{
	struct image *image = need(calloc(1, sizeof(*image)));

	image->last = &image->first;
	return image;
}

static void changes_free(struct image *image)
{
	struct change *next;

	for (struct change *change = image->first; change != NULL; change = next) {
		next = change->next;
		free(change->bytes);
		free(change);
	}
	image->first = NULL;
	image->last = &image->first;
}

void image_free(struct image *image)
{
	changes_free(image);
	free(image->bytes);
	free(image);
}

static void resize(struct image *image, uint64_t length)
{
	if (length > image->room) {
		image->room = 2 * length;
		image->bytes = need(realloc(image->bytes, image->room));
	}
	if (length > image->length)
		memset(image->bytes + image->length, 0, length - image->length);
	image->length = length;
}

static void put(struct image *image, uint64_t offset, const void *bytes, size_t count)
{
	if (count == 0)
		return;
	if (offset + count > image->length)
		resize(image, offset + count);
	memcpy(image->bytes + offset, bytes, count);
}

void image_load(struct image *image, const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) < 0)
		abort();
	resize(image, (uint64_t)status.st_size);
	if (status.st_size > 0 &&
	    pread(fd, image->bytes, (size_t)status.st_size, 0) != status.st_size)
		abort();
	close(fd);
}

static void change_add(struct image *image, uint64_t offset, const void *bytes, size_t count)
{
	struct change *change = need(calloc(1, sizeof(*change)));

	change->offset = offset;
	change->count = count;
	if (bytes != NULL) {
		change->bytes = need(malloc(count == 0 ? 1 : count));
		memcpy(change->bytes, bytes, count);
	}
	*image->last = change;
	image->last = &change->next;
}

void image_write(struct image *image, uint64_t offset, const void *bytes, size_t count)
{
	change_add(image, offset, bytes, count);
}

void image_truncate(struct image *image, uint64_t length)
{
	change_add(image, length, NULL, 0);
}

void image_sync(struct image *image, bool failed)
{
	for (struct change *change = image->first; change != NULL && !failed;
	     change = change->next) {
		if (change->bytes == NULL)
			resize(image, change->offset);
		else
			put(image, change->offset, change->bytes, change->count);
	}
	changes_free(image);
}

/* Writes some sectors of a write, which chance selects. */
static void put_torn(struct image *image, const struct change *change, struct random *random)
{
	uint64_t at = change->offset, end = change->offset + change->count;

	while (at < end) {
		uint64_t stop = (at / SECTOR + 1) * SECTOR;

		if (stop > end)
			stop = end;
		if (random_below(random, 2) == 0)
			put(image, at, change->bytes + (at - change->offset), stop - at);
		at = stop;
	}
}

static void survive(struct image *image, const struct change *change, struct random *random)
{
	/*
	 * Keeps or loses half of the changes as a whole. If each sector were decided alone, nearly
	 * every long write would be torn.
	 */
	uint64_t fate = random_below(random, 4);

	if (fate == 0)
		return;
	if (change->bytes == NULL)
		resize(image, change->offset);
	else if (fate == 1)
		put(image, change->offset, change->bytes, change->count);
	else
		put_torn(image, change, random);
}

void image_restore(const struct image *image, const char *path, enum disk_loss loss,
		   struct random *random)
{
	struct image *left = image_create();
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	put(left, 0, image->bytes, image->length);
	for (const struct change *change = image->first; change != NULL && loss == DISK_RANDOM;
	     change = change->next)
		survive(left, change, random);
	if (fd < 0 ||
	    (left->length > 0 && pwrite(fd, left->bytes, left->length, 0) != (ssize_t)left->length))
		abort();
	close(fd);
	image_free(left);
}
