/*
 * late.c: see late.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "late.h"

#include <stdio.h>
#include <unistd.h>

#include "mpitest.h"

static void *complete(void *arg)
{
    late_t *late = arg;
    bool over = false;

    while (!over) {
        usleep(200);
        pthread_mutex_lock(&late->mutex);
        over = late->over;
        while (late->count > 0) {
            MPIX_Flash_handle handle = late->handles[--late->count];

            pthread_mutex_unlock(&late->mutex);
            MPIX_Flash_complete(handle, MPI_SUCCESS);
            pthread_mutex_lock(&late->mutex);
        }
        pthread_mutex_unlock(&late->mutex);
    }
    return NULL;
}

void late_start(late_t *late)
{
    *late = (late_t){.count = 0};
    pthread_mutex_init(&late->mutex, NULL);
    if (pthread_create(&late->thread, NULL, complete, late) != 0) {
        fprintf(stderr, "no thread to complete pieces\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

void late_stop(late_t *late)
{
    pthread_mutex_lock(&late->mutex);
    late->over = true;
    pthread_mutex_unlock(&late->mutex);
    pthread_join(late->thread, NULL);
    pthread_mutex_destroy(&late->mutex);
}

static void add(late_t *late, MPIX_Flash_handle handle)
{
    pthread_mutex_lock(&late->mutex);
    late->handles[late->count++] = handle;
    pthread_mutex_unlock(&late->mutex);
}

int end_piece(const MPIX_Flash_block *block, int error, bool pends, late_t *late)
{
    if (late != NULL) {
        add(late, block->handle);
        return MPIX_FLASH_PENDING;
    }
    if (!pends) {
        return error;
    }
    check(MPIX_Flash_complete(block->handle, error) == MPI_SUCCESS, "a piece is not pending");
    return MPIX_FLASH_PENDING;
}
