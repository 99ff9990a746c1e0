/*
 * random_later.c: pieces that callbacks leave pending, completed by a thread of its own, the newest
 * first.
 *
 * Shared with that thread: the pieces, under `lock`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

#include <pthread.h>

typedef struct piece {
    struct piece *next;
    operation_t *operation;
    MPIX_Flash_block block;
    later_fn *work;
} piece_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_t thread;
static piece_t *newest;
static bool begun, ending;

/* Nothing of the operation is touched after its last piece is complete. */
static void complete_piece(piece_t *piece)
{
    const sequence_t *sequence = piece->operation->sequence;
    uint64_t number = piece->operation->number;

    piece->work(piece->operation, &piece->block);
    must(MPIX_Flash_complete(piece->block.handle, MPI_SUCCESS), sequence, number,
         "MPIX_Flash_complete");
    free(piece);
}

static void *complete_pieces(void *arg)
{
    pthread_mutex_lock(&lock);
    while (newest != NULL || !ending) {
        piece_t *piece = newest;

        if (piece == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        newest = piece->next;
        pthread_mutex_unlock(&lock);
        complete_piece(piece);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

static void begin(void)
{
    begun = pthread_create(&thread, NULL, complete_pieces, NULL) == 0;
}

int now_or_later(operation_t *operation, const MPIX_Flash_block *block, later_fn *work)
{
    piece_t *piece;

    pthread_once(&once, begin);
    if (!begun || prng_percent(&operation->own, 70)) {
        work(operation, block);
        return MPI_SUCCESS;
    }
    piece = get_memory(sizeof(*piece));
    *piece = (piece_t){.operation = operation, .block = *block, .work = work};
    pthread_mutex_lock(&lock);
    piece->next = newest;
    newest = piece;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return MPIX_FLASH_PENDING;
}

void end_later(void)
{
    if (begun) {
        pthread_mutex_lock(&lock);
        ending = true;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
    }
}
