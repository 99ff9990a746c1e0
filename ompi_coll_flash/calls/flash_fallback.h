/*
 * flash_fallback.h: a request that stands for collectives of the module below, and for what comes
 * before, after and beside them: callbacks of the extension (mpix_flash_fallback.c), copies of a
 * device's memory (coll_flash_bounce_calls.c), an operation of flash's (coll_flash_shared.c).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_FALLBACK_H
#define FLASH_FALLBACK_H

#include "calls/coll_flash_calls.h"

typedef struct flash_fallback {
    mca_coll_flash_handle_t handle;
    struct flash_fallback *next;
    bool busy;            /* some thread is calling back for it */
    MPI_Request inner[2]; /* the collective; the producers' reports, or flash's operation */
    bool moves_nothing;   /* the collective: if flash's operation fails, nobody waits for it */
    mca_coll_flash_compute_t compute;
    atomic_int error; /* the first one of this rank's callbacks */
    uint64_t begun;   /* pieces called back for */
    atomic_uint_fast64_t
        undone;          /* a bit for each of those that is not done, see flash_pending_bit() */
    int reported, worst; /* whether a producer failed: here, anywhere */
    void *contribution;  /* of a reduction: all blocks; owned */
    void *unread;        /* owned: memory for a result that this rank cannot use */
    flash_schedule_t schedule;
    size_t *counts;    /* owned */
    ptrdiff_t *displs; /* owned */
    MPI_Datatype datatype;
    MPI_Datatype sendtype; /* of what is produced, of the same extent; NULL: the same */
    ptrdiff_t extent;
    /* Where the blocks are that this rank contributes, and where the results: those of the ranks,
       as the schedule has them, or an allgather's one block there, and a reduce-scatter's here. */
    char *input, *output;
    uint32_t at, piece;          /* the next call of a consumer's: of the walk, and of its block */
    struct flash_stager *stager; /* owned */
    flash_count_t *kept;         /* owned: arrays of the collective's arguments */
    /* Of a call on host bounces (coll_flash_bounce.c). */
    struct flash_host_bounce *bounce;                      /* NULL: it is on none */
    void (*free_bounce)(struct flash_host_bounce *bounce); /* NULL: it is `persistent`'s */
    MPI_Request below;       /* the persistent request that it is to start */
    atomic_uint copies;      /* under way; see coll_flash_bounce.h */
    atomic_bool copy_failed; /* relaxed: written before `copies` */
    /* Takes the next step when nothing is under way: false, and something may be again, or true:
       the operation is at its end. NULL: there is none, likewise. */
    bool (*advance)(struct flash_fallback *call);
} flash_fallback_t;

OBJ_CLASS_DECLARATION(flash_fallback_t);

/* Notes an error of this rank's, if it is the first; MPI_SUCCESS: does nothing. */
void flash_fallback_fail(flash_fallback_t *fallback, int error);
/* Of collectives that are complete: lets go of them, and notes their errors. */
void flash_fallback_end_inner(flash_fallback_t *fallback);
/* Whether a callback of this rank has failed. */
bool flash_fallback_has_failed(const flash_fallback_t *fallback);
/* A bit for each piece that is not done; acquires what these have written. */
uint64_t flash_fallback_undone(const flash_fallback_t *fallback);
/* Whether there is room for one more. */
bool flash_fallback_may_begin(const flash_fallback_t *fallback);
/* Moves on to the next piece for a consumer, and calls it. False if there is none. */
bool flash_fallback_find_next(flash_fallback_t *fallback);
void flash_fallback_consume_next(flash_fallback_t *fallback);
/* Calls the producer for all pieces of its blocks, and waits for those that it leaves pending. */
void flash_fallback_produce(flash_fallback_t *fallback);
/* For the handles of these operations, whose pieces have negative numbers. */
bool flash_fallback_end_pending(void *operation, MPI_Count piece, int error);
/* In MPI_Finalize: before the library may go away. */
void flash_fallback_close(void);
/* NULL: there is no memory. Keeps that communicator, until it has completed or is dropped. */
flash_fallback_t *flash_fallback_new(ompi_communicator_t *comm);
/* One that has not been enlisted. */
void flash_fallback_drop(flash_fallback_t *fallback);
/* From now on progress calls back, and completes the request. */
void flash_fallback_enlist(flash_fallback_t *fallback, MPI_Request *request);

#endif /* FLASH_FALLBACK_H */
