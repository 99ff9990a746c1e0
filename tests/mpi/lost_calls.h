/*
 * lost_calls.h: the operations that a rank dies in, or is late for, and their buffers.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LOST_CALLS_H
#define LOST_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

/*
 * Elements of a block: 400000, or FLASH_TEST_COUNT in the environment. From lost_make_buffers() on.
 */
extern int lost_count;

typedef struct lost_call {
    const char *name;
    int (*post)(MPI_Request *request);
    bool gathers; /* or reduces */
    bool rooted;  /* each rank's result is one block of rank 0's, or rank 0's is one sum */
    bool to_root; /* rank 0 alone has a result, which is all blocks */
    bool holds;   /* in the victim's round its callbacks leave their first piece pending */
    bool lasts;   /* its request is persistent */
} lost_call_t;

extern int64_t *lost_send, *lost_recv; /* so many blocks as there are ranks */

const lost_call_t *lost_find_call(const char *name); /* NULL: there is none */
/* Whether the receive buffer holds what such an operation leaves there. */
bool lost_is_right(const lost_call_t *call);

void lost_make_buffers(void);
void lost_free_buffers(void); /* and requests that last */
/* After an operation: its request, which the next one starts again if it is persistent. */
void lost_keep_request(MPI_Request request);
/* From now on this rank's blocks are half as long, in the forms with equal blocks. */
void lost_halve_blocks(void);

#endif /* LOST_CALLS_H */
