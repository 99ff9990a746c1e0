/*
 * device_job_parts.h: what the files about a job share: device_job.c, device_job_data.c,
 * device_job_callbacks.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef DEVICE_JOB_PARTS_H
#define DEVICE_JOB_PARTS_H

#include <mpix_flash.h>

#include "device_job.h"

/* Elements of this rank's block, and of all blocks. */
int job_own_count(const job_t *job);
int job_all_count(const job_t *job);

/* device_job_data.c: buffers, and what is sent; what has come. */
void job_make_gather(job_t *job);
void job_make_scatter(job_t *job);
void job_check_gather(const job_t *job);
void job_check_scatter(const job_t *job);

/* device_job_callbacks.c: `arg` is the job. */
int job_consume(const MPIX_Flash_block *block, void *arg);
int job_consume_on_stream(const MPIX_Flash_block *block, void *arg);
int job_produce(const MPIX_Flash_block *block, void *arg);
int job_produce_on_stream(const MPIX_Flash_block *block, void *arg);
/* For the own block, of an allgather and of a reduce-scatter. */
int job_make_own(const MPIX_Flash_block *block, void *arg);
int job_look_at_own(const MPIX_Flash_block *block, void *arg);

#endif /* DEVICE_JOB_PARTS_H */
