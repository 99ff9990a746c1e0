/*
 * tcp_bare.h: a ring of bare sockets, each served by a thread.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef TCP_BARE_H
#define TCP_BARE_H

#include <semaphore.h>
#include <stddef.h>

typedef struct tcp_bare {
    int to_right, from_left;
    const char *out;     /* a block; sent again for each step, as nobody looks at what arrives */
    char *in;            /* a block for each step */
    size_t block, total; /* bytes */
    sem_t begin, end;    /* the caller posts `begin`, the thread `end`: they order all else */
} tcp_bare_t;

/*
 * Connects each rank of MPI_COMM_WORLD with its right neighbour and starts the thread. All ranks
 * call it. `bare` is the thread's until the process ends, the buffers from tcp_bare_begin() to
 * tcp_bare_wait(). Whatever fails ends the process, and mpirun the job, with a message.
 */
void tcp_bare_open(tcp_bare_t *bare, const char *out, char *in, size_t block);

/* Has the thread send `total` bytes to the right and receive as many; and waits for that. */
void tcp_bare_begin(tcp_bare_t *bare);
void tcp_bare_wait(tcp_bare_t *bare);

#endif /* TCP_BARE_H */
