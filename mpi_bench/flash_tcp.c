/*
 * flash_tcp.c: what TCP alone takes from a computation on the same core.
 *
 * Every rank sends what a ring allgather sends, (N - 1) blocks to its right neighbour, while it
 * computes: once through a bare socket that a thread serves, with nothing but send() and recv()
 * from and to the user's memory, and once by MPI_Iallgather. What the socket costs no library on
 * top of TCP can hide; the difference to it is the library's.
 *
 *   tests/cluster/hosts -n 2 -c --mca coll flash -- flash_tcp [MIB OF A BLOCK [ITERATIONS]]
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cblas.h>
#include <mpi.h>

#include "bench_stats.h"

enum { ALONE, SOCKETS, COLLECTIVE, CASES, WIDTH = 512, MAX_ITERATIONS = 10000 };

static const double compute_seconds = 0.1;

/* OpenBLAS has it, other implementations of <cblas.h> have not: hence weak. */
void openblas_set_num_threads(int threads) __attribute__((weak));

typedef struct bare {
    int to_right, from_left;
    const char *out; /* a block; sent again for each step, as nobody looks at what arrives */
    char *in;        /* a block for each step */
    size_t block, total;
    sem_t begin, end; /* the main thread posts `begin`, the thread `end`: they order all else */
} bare_t;

typedef struct bench {
    int rank, size, iterations, products; /* products: what takes compute_seconds */
    double *a, *b, *c;                    /* of WIDTH x WIDTH */
    char *own, *all;
    size_t block;
    bare_t bare;
} bench_t;

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "flash_tcp: %s: %s\n", what, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    abort();
}

static void *allocate(size_t size)
{
    void *memory = malloc(size);

    if (memory == NULL) {
        die("out of memory");
    }
    memset(memory, 0x3f,
           size); /* no page is new when time is taken; doubles are ordinary numbers */
    return memory;
}

static void compute(const bench_t *bench)
{
    for (int i = 0; i < bench->products; i++) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, WIDTH, WIDTH, WIDTH, 1.0, bench->a,
                    WIDTH, bench->b, WIDTH, 0.0, bench->c, WIDTH);
    }
}

/* ---------------------------------------------------------------- bare sockets */

/* What is sent and received of `total` grows as far as the sockets let it. */
static void move(const bare_t *bare, const struct pollfd fds[2], size_t *sent, size_t *received)
{
    size_t offset = *sent % bare->block;
    ssize_t n;

    if ((fds[0].revents & POLLOUT) != 0) {
        n = send(bare->to_right, bare->out + offset, bare->block - offset,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
        *sent += n > 0 ? (size_t) n : 0;
    }
    if (fds[1].revents != 0) {
        n = recv(bare->from_left, bare->in + *received, bare->total - *received, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            die("the connection from the left neighbour broke");
        }
        *received += n > 0 ? (size_t) n : 0;
    }
}

static void *serve(void *arg)
{
    bare_t *bare = arg;
    size_t sent, received;

    for (;;) {
        sem_wait(&bare->begin);
        for (sent = received = 0; sent < bare->total || received < bare->total;) {
            struct pollfd fds[2] = {
                {.fd = sent < bare->total ? bare->to_right : -1, .events = POLLOUT},
                {.fd = received < bare->total ? bare->from_left : -1, .events = POLLIN}};

            poll(fds, 2, -1);
            move(bare, fds, &sent, &received);
        }
        sem_post(&bare->end);
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
        die("cannot listen");
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static int connected(const char *host, int port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    char service[16];
    int fd;

    snprintf(service, sizeof(service), "%d", port);
    if (getaddrinfo(host, service, &hints, &found) != 0) {
        die("the right neighbour's host name is not known here");
    }
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        die("cannot connect to the right neighbour");
    }
    freeaddrinfo(found);
    return fd;
}

static void open_ring(bench_t *bench)
{
    struct {
        char host[256];
        int port;
    } mine = {.port = 0}, right;
    int to = (bench->rank + 1) % bench->size;
    int from = (bench->rank + bench->size - 1) % bench->size;
    int listener = listening(&mine.port);
    pthread_t thread;

    gethostname(mine.host, sizeof(mine.host) - 1);
    MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, from, 0, &right, sizeof(right), MPI_BYTE, to, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bench->bare = (bare_t){.to_right = connected(right.host, right.port),
                           .from_left = accept(listener, NULL, NULL),
                           .out = bench->own,
                           .in = bench->all,
                           .block = bench->block,
                           .total = bench->block * (size_t) (bench->size - 1)};
    close(listener);
    sem_init(&bench->bare.begin, 0, 0);
    sem_init(&bench->bare.end, 0, 0);
    if (bench->bare.from_left < 0 || pthread_create(&thread, NULL, serve, &bench->bare) != 0) {
        die("cannot serve a socket");
    }
    pthread_detach(thread); /* waits for work until the process ends */
}

/* ----------------------------------------------------------------- measurement */

static double run(bench_t *bench, int what)
{
    MPI_Request request;
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = bench_now();
    if (what == SOCKETS) {
        sem_post(&bench->bare.begin);
    } else if (what == COLLECTIVE) {
        MPI_Iallgather(bench->own, (int) bench->block, MPI_BYTE, bench->all, (int) bench->block,
                       MPI_BYTE, MPI_COMM_WORLD, &request);
    }
    compute(bench);
    if (what == SOCKETS) {
        while (sem_wait(&bench->bare.end) != 0 && errno == EINTR) {
        }
    } else if (what == COLLECTIVE) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return bench_now() - start;
}

/* As many products as take compute_seconds on the slowest rank, alone. */
static void calibrate(bench_t *bench)
{
    double start;

    if (openblas_set_num_threads != NULL) {
        openblas_set_num_threads(1); /* the core that is asked about */
    }
    bench->products = 4;
    compute(bench); /* wakes the core up */
    start = bench_now();
    compute(bench);
    bench->products = 1 + (int) (compute_seconds * bench->products / (bench_now() - start));
    MPI_Allreduce(MPI_IN_PLACE, &bench->products, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
}

static void report(const bench_t *bench, double *times)
{
    static const char *const names[CASES] = {"computation alone", "and a bare socket",
                                             "and MPI_Iallgather"};
    double alone = 0, median;

    printf("%zu bytes to the right neighbour while computing, median of %d iterations\n",
           bench->bare.total, bench->iterations);
    for (int what = 0; what < CASES; what++) {
        median = bench_stats(times + (size_t) what * (size_t) bench->iterations, bench->iterations)
                     .median;
        alone = what == ALONE ? median : alone;
        printf("%-20s %9.3f ms  %+9.3f ms\n", names[what], 1e3 * median, 1e3 * (median - alone));
    }
}

/* The cases take turns; of each iteration the slowest rank counts. The first is not measured. */
static void measure(bench_t *bench)
{
    size_t count = CASES * (size_t) bench->iterations;
    double *times = allocate(count * sizeof(*times));
    double seconds;

    for (int i = -1; i < bench->iterations; i++) {
        for (int what = 0; what < CASES; what++) {
            seconds = run(bench, what);
            if (i >= 0) {
                times[what * bench->iterations + i] = seconds;
            }
        }
    }
    MPI_Reduce(bench->rank == 0 ? MPI_IN_PLACE : times, times, (int) count, MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    if (bench->rank == 0) {
        report(bench, times);
    }
    free(times);
}

/* False, with a message, if the arguments are not what they should be. */
static int parse(int argc, char **argv, bench_t *bench)
{
    int mib = argc > 1 ? atoi(argv[1]) : 16;

    bench->iterations = argc > 2 ? atoi(argv[2]) : 20;
    bench->block = (size_t) mib << 20;
    if (argc > 3 || mib < 1 || mib > 1024 || bench->iterations < 1 ||
        bench->iterations > MAX_ITERATIONS || bench->size < 2) {
        if (bench->rank == 0) {
            fprintf(stderr, "usage: mpirun -n 2 (or more) flash_tcp [MIB OF A BLOCK, 1 to 1024 "
                            "[ITERATIONS, 1 to 10000]]\n");
        }
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    bench_t bench = {.products = 0};
    int level, good;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.size);
    good = parse(argc, argv, &bench);
    if (good) {
        bench.own = allocate(bench.block);
        bench.all = allocate(bench.block * (size_t) bench.size);
        bench.a = allocate(WIDTH * WIDTH * sizeof(double));
        bench.b = allocate(WIDTH * WIDTH * sizeof(double));
        bench.c = allocate(WIDTH * WIDTH * sizeof(double));
        calibrate(&bench);
        open_ring(&bench);
        measure(&bench);
        free(bench.c);
        free(bench.b);
        free(bench.a);
        free(bench.all);
        free(bench.own);
    }
    MPI_Finalize();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
