/*
 * tcp_ring.c: see tcp_ring.h. Nothing but send() and recv(), from and to the user's memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "tcp_ring.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mpi.h>

/* The thread may call no MPI: mpirun ends the others. */
_Noreturn static void die(const char *what, const char *why)
{
    fprintf(stderr, "flash_tcp: %s: %s\n", what, why);
    _exit(EXIT_FAILURE);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
}

/* Of send() or recv(), how much that was. */
static size_t moved(ssize_t bytes)
{
    if (bytes < 0 && errno != EAGAIN && errno != EINTR) {
        die("the connection to a neighbour broke", strerror(errno));
    }
    return bytes < 0 ? 0 : (size_t) bytes;
}

/* What is sent and received of `total` grows as far as the sockets let it. */
static void move(const tcp_ring_t *ring, const struct pollfd fds[2], size_t *sent, size_t *received)
{
    size_t offset = *sent % ring->block;
    ssize_t n;

    if (fds[0].revents != 0) {
        *sent += moved(send(ring->to_right, ring->out + offset, ring->block - offset,
                            MSG_DONTWAIT | MSG_NOSIGNAL));
    }
    if (fds[1].revents != 0) {
        n = recv(ring->from_left, ring->in + *received, ring->total - *received, MSG_DONTWAIT);
        if (n == 0) {
            die("the left neighbour", "has gone");
        }
        *received += moved(n);
    }
}

static void *serve(void *arg)
{
    tcp_ring_t *ring = arg;
    size_t sent, received;

    for (;;) {
        wait_for(&ring->begin);
        for (sent = received = 0; sent < ring->total || received < ring->total;) {
            struct pollfd fds[2] = {
                {.fd = sent < ring->total ? ring->to_right : -1, .events = POLLOUT},
                {.fd = received < ring->total ? ring->from_left : -1, .events = POLLIN}};

            if (poll(fds, 2, -1) > 0) {
                move(ring, fds, &sent, &received);
            }
        }
        sem_post(&ring->end);
    }
    return NULL;
}

/* A socket that listens at a port of the kernel's choice. */
static int listening(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *) &address, length) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *) &address, &length) != 0) {
        die("cannot listen", strerror(errno));
    }
    *port = ntohs(address.sin_port);
    return fd;
}

/* Whether that rank of MPI_COMM_WORLD is on this host. All ranks call it. */
static bool is_here(int rank)
{
    MPI_Comm node;
    MPI_Group all, here;
    int number;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(node, &here);
    MPI_Group_translate_ranks(all, 1, &rank, here, &number);
    MPI_Group_free(&here);
    MPI_Group_free(&all);
    MPI_Comm_free(&node);
    return number != MPI_UNDEFINED;
}

static int connected(const char *host, int port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    char service[16];
    int fd, rc;

    snprintf(service, sizeof(service), "%d", port);
    rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0) {
        die("give the right neighbour's host an address in DNS or /etc/hosts", gai_strerror(rc));
    }
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        die("cannot connect to the right neighbour", strerror(errno));
    }
    freeaddrinfo(found);
    return fd;
}

void tcp_ring_open(tcp_ring_t *ring, const char *out, char *in, size_t block)
{
    struct {
        char host[256];
        int port;
    } mine = {.port = 0}, right;
    int rank, size, listener = listening(&mine.port);
    pthread_t thread;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(mine.host, sizeof(mine.host) - 1);
    MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, (rank + size - 1) % size, 0, &right, sizeof(right),
                 MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is_here((rank + 1) % size)) {
        strcpy(right.host, "127.0.0.1"); /* a container's own name often has no address */
    }
    *ring =
        (tcp_ring_t){.out = out, .in = in, .block = block, .total = block * (size_t) (size - 1)};
    ring->to_right = connected(right.host, right.port);
    ring->from_left = accept(listener, NULL, NULL);
    close(listener);
    sem_init(&ring->begin, 0, 0);
    sem_init(&ring->end, 0, 0);
    if (ring->from_left < 0 || pthread_create(&thread, NULL, serve, ring) != 0) {
        die("cannot serve a socket", strerror(errno));
    }
    pthread_detach(thread);
}

void tcp_ring_begin(tcp_ring_t *ring)
{
    sem_post(&ring->begin);
}

void tcp_ring_wait(tcp_ring_t *ring)
{
    wait_for(&ring->end);
}
