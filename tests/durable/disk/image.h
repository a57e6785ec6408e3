/* SPDX-License-Identifier: MIT */
/*
 * The contents of one file of the simulated disk: the durable bytes, and the changes since the last
 * sync.
 */
#ifndef TESTS_DURABLE_IMAGE_H
#define TESTS_DURABLE_IMAGE_H

#include "disk.h"
#include "random.h"

#include <stddef.h>

struct image;

struct image *image_create(void);
void image_free(struct image *image);
/* Reads the real file. Its contents count as durable. */
void image_load(struct image *image, const char *path);

void image_write(struct image *image, uint64_t offset, const void *bytes, size_t count);
void image_truncate(struct image *image, uint64_t length);
/* Makes the changes since the last sync durable. If the sync failed, they never will be. */
void image_sync(struct image *image, bool failed);

/* Writes to the real file the contents that survive. */
void image_restore(const struct image *image, const char *path, enum disk_loss loss,
		   struct random *random);

#endif
