/*
 * flash_shm.h: collectives through memory that all ranks share. Knows no MPI, no UCX, and no
 * thread.
 *
 * A *shared-memory channel*, or *channel*, has a *side* for each rank, which that rank alone writes
 * and all others read. An operation goes through it in rounds. In each a rank
 *
 *   posts   what it has for the others in a slot of its side: a part of its block (allgather), or
 *           one of what it contributes to each other block (reduce-scatter);
 *   takes   the parts for itself from all other sides, in the order of the ring: copies them, or
 *           adds them up, its own one last. That makes the bits of a ring's sum (flash_schedule.h).
 *
 * What is posted is there for the others, whatever this rank does next; a slot is used again when
 * all have taken what was in it. So there are two copies of each byte, and no message: no kernel,
 * no connection, no thread.
 *
 * An allgather of blocks that are long enough goes by *reading* where ranks can: it has one round,
 * a rank posts where its block is instead of the block, all others copy it from there, and its
 * operation ends once they have. One copy of each byte, by the rank that takes it. A rank may find
 * that it cannot read a block: the block is in memory that processors reach and the kernel does not
 * when it reads for another process, as drivers map it, or one of the two processes has lost the
 * right since. That rank *asks* the block's owner, which shows it the block through the slot, one
 * piece at a time.
 *
 * Rounds are counted from the side's beginning, over all channels that it belongs to, one after
 * another. A rank's count of what it has taken does not change between one channel's last operation
 * and its own part in the next one's first, so that others may read then where it begins. A rank
 * may use its side for another channel when all have left the one before: flash_shm_is_left().
 *
 * Between processes: each field of a side is written by its owner. `posted` is stored with release
 * order behind the slot's content, and loaded with acquire before that is read; `taken` is stored
 * with release behind the reading of a round, and loaded with acquire before its slots are written
 * again, or memory that was read is given back; `unread` and `shown` are sequentially consistent
 * (flash_shm_read.c says why); `got` is stored with release, and loaded with acquire. `lost` is
 * relaxed: what a rank has read of another one counts only if that one has not lost anybody by
 * then, because it would have told its user that the memory is free.
 * Within a process: the caller holds one lock around every function here that is given a channel.
 *
 * Errors: ranks that disagree about an operation go through the rounds of the one that has most,
 * and end with FLASH_ERR_TRUNCATED where they see it; what is lost is posted as poisoned, with the
 * rank that failed. Who has lost a rank posts nothing more in that channel, ever, and says so.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_SHM_H
#define FLASH_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/flash_engine.h"

#define FLASH_SHM_SLOTS      4
#define FLASH_SHM_SLOT_BYTES ((size_t) 64 << 10)
#define FLASH_SHM_LINE       64   /* bytes that caches exchange */
#define FLASH_SHM_LEAST_PART 1024 /* bytes of a slot for each rank, or there are too many */
#define FLASH_SHM_READ_BYTES ((size_t) 4 << 20) /* of another's block at a time */

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share no lock");

typedef struct flash_shm_slot {
    _Alignas(2 * FLASH_SHM_LINE) _Atomic uint64_t posted; /* the round that is in it */
    uint64_t rounds;                 /* of the operation, as its writer's arguments have it */
    uint64_t fingerprint;            /* likewise, of all that ranks must agree about */
    uint32_t poisoned;               /* the content is lost, */
    uint32_t failed_rank;            /* since that rank failed, or FLASH_NOBODY */
    char data[FLASH_SHM_SLOT_BYTES]; /* the first bytes of it come with the line of the rest */
    /* Reading: where the block is, and how many pieces of it its owner has shown in `data`. */
    const void *address;
    _Atomic uint64_t shown;
} flash_shm_slot_t;

_Static_assert(offsetof(flash_shm_slot_t, data) % _Alignof(max_align_t) == 0,
               "parts of any type are aligned");

/* Zeroed memory is a side. */
typedef struct flash_shm_side {
    _Alignas(2 * FLASH_SHM_LINE) _Atomic uint64_t taken; /* rounds that its owner is done with */
    _Atomic uint64_t unread; /* FLASH_SHM_ASKED, of the block that its owner cannot read; or 0 */
    _Atomic uint64_t
        got; /* of that block: how many pieces had been shown with the latest it took */
    _Atomic uint32_t lost; /* the number of the rank that its owner has lost, and one; or 0 */
    flash_shm_slot_t slots[FLASH_SHM_SLOTS];
} flash_shm_side_t;

/*
 * What a rank asks for: the block of that rank, in its round of that number. One word: both change
 * at once.
 */
#define FLASH_SHM_ASKED(number, rank) ((uint64_t) (number) << 16 | (rank))
#define FLASH_SHM_JOINS               UINT64_MAX /* `got` of a rank that has just asked */

/* An operation; the caller's memory. */
typedef struct flash_shm_op {
    struct flash_shm_op *next;
    flash_op_params_t params;
    size_t part;     /* elements of a block in a round */
    size_t stride;   /* reduce-scatter: bytes between the parts in a slot */
    uint64_t rounds; /* by this rank's arguments; once it has met the others, by any one's */
    uint64_t posted, taken;
    uint64_t most; /* of the others' */
    uint64_t fingerprint;
    uint32_t ahead; /* the rank from which to take next stands so many places to the right */
    bool reads;     /* blocks, from where they are */
    bool asks;      /* that rank to show its block */
    size_t offset;  /* of that rank's, what has been read, in bytes */
    uint64_t shown; /* of this rank's block, pieces that others have asked for */
    uint64_t got;   /* as of flash_shm_side_t, or FLASH_SHM_JOINS */
    int status;     /* FLASH_OK, FLASH_ERR_* or of the combine function */
    uint32_t failed_rank;
} flash_shm_op_t;

typedef struct flash_shm flash_shm_t;

/*
 * One rank's view of a channel: sides[k] is rank k's, `rank` this one's; copied. Others' may be
 * mapped for reading alone. NULL if there is no memory.
 */
flash_shm_t *flash_shm_create(uint32_t nranks, uint32_t rank, flash_shm_side_t *const sides[]);
/* There may be operations, which nobody hears the end of. */
void flash_shm_destroy(flash_shm_t *shm);

/*
 * Copies from an address of that rank's process. FLASH_OK; FLASH_ERR_LOST if that process has
 * ended, whatever was copied; FLASH_ERR_UNREADABLE if it is there and that memory is not to be
 * read.
 */
typedef int flash_shm_read_fn(void *arg, uint32_t rank, void *to, const void *from, size_t bytes);

/* Before the first operation: how it reads. Without it, no operation does. */
void flash_shm_read_by(flash_shm_t *shm, flash_shm_read_fn *read, void *arg);
/* Whether an operation of that kind can go through a channel. */
bool flash_shm_fits(uint32_t nranks, flash_kind_t kind, size_t element);

/*
 * Hands an operation to the channel, which ends operations in the order in which they came, on all
 * ranks the same. Of the parameters: an allgather's or a reduce-scatter's schedule, element, input,
 * output, poisoned, combine, user, all as of flash_engine.h; no callbacks, no staging. It is
 * refused if `params->element` is 0: this rank cannot perform it, and tells the others. Of an
 * allgather whose longest block has more than `read_above` bytes each rank reads the others' blocks
 * where they are, if the channel can read; all ranks give the same limit.
 */
void flash_shm_start(flash_shm_t *shm, flash_shm_op_t *op, const flash_op_params_t *params,
                     size_t read_above);

/*
 * A refusal without an operation, which nobody hears the end of. False if there is not even memory
 * for that (one needs none): then the others wait, and do not take the next one for it.
 */
bool flash_shm_refuse(flash_shm_t *shm, const flash_op_params_t *params);

/* Posts and takes what it can, one round at most. False if that was nothing. */
bool flash_shm_progress(flash_shm_t *shm);
/* Whether there are operations that have not ended. */
bool flash_shm_is_busy(const flash_shm_t *shm);
/* Whether all ranks have taken what this one has posted; never, once a rank is lost. */
bool flash_shm_is_left(flash_shm_t *shm);
/* Takes the oldest operation that has ended since, to be examined; NULL if none has. */
flash_shm_op_t *flash_shm_ended(flash_shm_t *shm);

/* That rank has gone: all operations end with FLASH_ERR_LOST, now and from now on. */
void flash_shm_lose(flash_shm_t *shm, uint32_t rank);
uint32_t flash_shm_ranks(const flash_shm_t *shm);

/*
 * See flash_engine_watch(): the rank that the oldest operation waits for, and in which of how many
 * rounds. False: for none. Where others have lost a rank, it is lost here, too.
 */
bool flash_shm_watch(flash_shm_t *shm, flash_silence_t *silence);

#endif /* FLASH_SHM_H */
