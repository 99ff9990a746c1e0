/*
 * tcp_ring.h: a ring of plain sockets, each served by a thread.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef TCP_RING_H
#define TCP_RING_H

#include <semaphore.h>
#include <stddef.h>

typedef struct tcp_ring {
    int to_right, from_left;
    const char *out;     /* a block; sent again for each step, as nobody looks at what arrives */
    char *in;            /* a block for each step */
    size_t block, total; /* bytes */
    sem_t begin, end;    /* the caller posts `begin`, the thread `end`: they order all else */
} tcp_ring_t;

/*
 * Connects each rank of MPI_COMM_WORLD with its right neighbour and starts the thread. All ranks
 * call it. `ring` is the thread's until the process ends, the buffers from tcp_ring_begin() to
 * tcp_ring_wait(). Whatever fails ends the process, and mpirun the job, with a message.
 */
void tcp_ring_open(tcp_ring_t *ring, const char *out, char *in, size_t block);

/* Has the thread send `total` bytes to the right and receive as many; and waits for that. */
void tcp_ring_begin(tcp_ring_t *ring);
void tcp_ring_wait(tcp_ring_t *ring);

#endif /* TCP_RING_H */
