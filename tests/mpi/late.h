/*
 * late.h: a thread that completes pieces after their callbacks have returned, the latest first.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LATE_H
#define LATE_H

#include <pthread.h>
#include <stdbool.h>

#include <mpix_flash.h>

typedef struct late {
    pthread_t thread;
    pthread_mutex_t mutex; /* orders what follows */
    MPIX_Flash_handle handles[64];
    int count;
    bool over; /* no more of them will come */
} late_t;

void late_start(late_t *late);
/* Waits until all are complete. */
void late_stop(late_t *late);

/* A callback's end: what it is to return, its piece complete if `pends` or on its way to `late`.
 * `late` may be NULL; if it is not, `error` is lost. */
int end_piece(const MPIX_Flash_block *block, int error, bool pends, late_t *late);

#endif /* LATE_H */
