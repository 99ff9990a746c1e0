/*
 * test_pending.c: callbacks that return MPIX_FLASH_PENDING, completed by other threads.
 *
 * FLASH_TEST_ACTIVE=0 in the environment: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "extension.h"

/* Of an operation: as mpix_flash.h says. */
enum { MOST_PENDING = 64, ROOM = 512, WORKERS = 2 };

typedef struct piece {
    watch_t *watch;
    MPIX_Flash_block block;
} piece_t;

/* Threads that compute the pieces they are given, in any order. All under `lock`. */
typedef struct pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t threads[WORKERS];
    piece_t pieces[ROOM];
    int count, given;
    int hold_until; /* nothing is computed before so many pieces have been given */
    int fail_given, fail_error;
    int given_at_failure; /* 0: none */
    bool closing;
    uint32_t random;
} pool_t;

static bool is_active(void)
{
    const char *value = getenv("FLASH_TEST_ACTIVE");

    return world_size > 1 && (value == NULL || strcmp(value, "0") != 0);
}

static void nap(long microseconds)
{
    struct timespec time = {.tv_nsec = 1000 * microseconds};

    nanosleep(&time, NULL);
}

/* With the lock, which it gives up meanwhile. */
static void compute_one(pool_t *pool)
{
    int which, error = MPI_SUCCESS;
    piece_t piece;
    long pause;

    pool->random = mix(pool->random, 1, 2);
    which = (int) (pool->random % (unsigned) pool->count);
    piece = pool->pieces[which];
    pool->pieces[which] = pool->pieces[--pool->count];
    if (pool->fail_given > 0 && pool->given >= pool->fail_given) {
        error = pool->fail_error;
        pool->fail_given = 0;
    }
    pause = mix(pool->random, 3, 4) % 200;
    pthread_mutex_unlock(&pool->lock);
    nap(pause);
    if (error == MPI_SUCCESS) {
        watch_compute(piece.watch, &piece.block);
    }
    check(MPIX_Flash_complete(piece.block.handle, error) == MPI_SUCCESS, "cannot be completed");
    pthread_mutex_lock(&pool->lock);
    if (error != MPI_SUCCESS) {
        pool->given_at_failure = pool->given;
    }
}

static void *work(void *arg)
{
    pool_t *pool = arg;

    pthread_mutex_lock(&pool->lock);
    while (!pool->closing || pool->count > 0) {
        if (pool->count > 0 && pool->given >= pool->hold_until) {
            compute_one(pool);
        } else {
            pthread_cond_wait(&pool->changed, &pool->lock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void pool_open(pool_t *pool)
{
    memset(pool, 0, sizeof(*pool));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->random = (uint32_t) world_rank;
    for (int k = 0; k < WORKERS; k++) {
        pthread_create(&pool->threads[k], NULL, work, pool);
    }
}

static void pool_release(pool_t *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->hold_until = 0;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

static void pool_close(pool_t *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_mutex_unlock(&pool->lock);
    pool_release(pool);
    for (int k = 0; k < WORKERS; k++) {
        pthread_join(pool->threads[k], NULL);
    }
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
}

static int give(void *arg, watch_t *watch, const MPIX_Flash_block *block)
{
    pool_t *pool = arg;

    pthread_mutex_lock(&pool->lock);
    pool->pieces[pool->count++] = (piece_t){watch, *block};
    pool->given++;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    return MPIX_FLASH_PENDING;
}

/* Every third returns when it is done, and of the others every second only says that it is not. */
static int mix_up(void *arg, watch_t *watch, const MPIX_Flash_block *block)
{
    if (watch->calls % 3 == 0) {
        watch_compute(watch, block);
        return MPI_SUCCESS;
    }
    if (watch->calls % 2 == 0) {
        watch_compute(watch, block);
        check(MPIX_Flash_complete(block->handle, MPI_SUCCESS) == MPI_SUCCESS, "not pending yet");
        return MPIX_FLASH_PENDING;
    }
    return give(arg, watch, block);
}

static void any_order(void)
{
    static const int pieces[] = {1, 2, 7};
    pool_t pool;

    pool_open(&pool);
    for (int k = 0; k < WATCH_KINDS * 2 * 3 * 2; k++) {
        watch_options_t options = {.count = 1000,
                                   .unequal = k / 2 % 2 == 1,
                                   .pieces = pieces[k / 4 % 3],
                                   .defer = k / 12 % 2 == 0 ? give : mix_up,
                                   .defer_arg = &pool};

        watch_one((watch_kind_t) (k % 2), MPI_COMM_WORLD, &options, "any order");
    }
    pool_close(&pool);
}

static void blocking(void)
{
    pool_t pool;

    pool_open(&pool);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_options_t options = {
            .count = 20001, .pieces = 3, .row = 4, .defer = give, .defer_arg = &pool};
        watch_t watch;

        watch_init(&watch, (watch_kind_t) kind, MPI_COMM_WORLD, &options);
        check(watch_blocking(&watch) == MPI_SUCCESS, "blocking form fails");
        watch_check(&watch, "blocking");
        watch_free(&watch);
    }
    pool_close(&pool);
}

static void several_in_flight(void)
{
    enum { OPERATIONS = 6 };
    MPI_Request requests[OPERATIONS];
    watch_t watches[OPERATIONS];
    pool_t pool;

    pool_open(&pool);
    for (int k = 0; k < OPERATIONS; k++) {
        watch_options_t options = {.count = 500 + k,
                                   .pieces = k,
                                   .salt = (unsigned) k,
                                   .defer = mix_up,
                                   .defer_arg = &pool};

        watch_init(&watches[k], (watch_kind_t) (k % 2), MPI_COMM_WORLD, &options);
        watch_start(&watches[k], &requests[k]);
    }
    MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < OPERATIONS; k++) {
        watch_check(&watches[k], "several in flight");
        watch_free(&watches[k]);
    }
    pool_close(&pool);
}

/* So many callbacks come before any piece is done; with fewer, this would wait forever. */
static int comes_ahead(watch_kind_t kind, int pieces)
{
    int all = pieces * world_size;

    if (kind == WATCH_REDUCE_SCATTER && is_active() && pieces + 1 < all) {
        all = pieces + 1;
    }
    return all < MOST_PENDING ? all : MOST_PENDING;
}

/* As many callbacks as the header says, and no more; and the request waits for the last of them. */
static void runs_ahead(void)
{
    static const int pieces[] = {1, 3, 10, 100};

    for (int k = 0; k < WATCH_KINDS * 4; k++) {
        pool_t pool;
        watch_options_t options = {
            .count = 1000, .pieces = pieces[k / 2], .defer = give, .defer_arg = &pool};
        watch_kind_t kind = (watch_kind_t) (k % 2);
        int ahead = comes_ahead(kind, options.pieces), done = 0;
        MPI_Request request;
        watch_t watch;

        pool_open(&pool);
        /* The fallback of a reduce-scatter waits inside the call: nobody is to hold it up there. */
        pool.hold_until = kind == WATCH_REDUCE_SCATTER && !is_active() ? ahead : ROOM;
        watch_init(&watch, kind, MPI_COMM_WORLD, &options);
        watch_start(&watch, &request);
        if (pool.hold_until == ROOM) {
            while (watch.calls < ahead) {
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            }
            for (int test = 0; test < 200; test++) {
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            }
            check(watch.calls == ahead && !done, "%d pieces, kind %d: %d callbacks ahead, done %d",
                  options.pieces, kind, watch.calls, done);
        }
        pool_release(&pool);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        watch_check(&watch, "runs ahead");
        watch_free(&watch);
        pool_close(&pool);
    }
}

/* But for one, which may have been under way. */
static int calls_after_failure(const pool_t *pool)
{
    int calls = pool->given - pool->given_at_failure - 1;

    return pool->given_at_failure > 0 && calls > 0 ? calls : 0;
}

/* Rank 0's second piece, or one after it, fails when it is pending. */
static void fails(void)
{
    static const int pieces[] = {1, 5, 100};

    for (int k = 0; k < WATCH_KINDS * 3; k++) {
        pool_t pool;
        watch_options_t options = {
            .count = 3000, .pieces = pieces[k / 2], .defer = give, .defer_arg = &pool};
        watch_kind_t kind = (watch_kind_t) (k % 2);
        MPI_Comm comm;
        MPI_Request request;
        watch_t watch;
        int error;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        pool_open(&pool);
        pool.fail_given = world_rank == 0 ? 2 : 0;
        pool.fail_error = MPI_ERR_DIMS;
        watch_init(&watch, kind, comm, &options);
        watch_start(&watch, &request);
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (world_rank == 0) {
            check_class(error, world_size * options.pieces > 1 ? MPI_ERR_DIMS : MPI_SUCCESS,
                        "the rank that fails");
        } else if (kind == WATCH_ALLGATHER) {
            check_class(error, MPI_SUCCESS, "another rank");
        } else {
            check(error == MPI_SUCCESS ? watch_result_is_right(&watch)
                                       : (MPI_Error_class(error, &error), error == MPI_ERR_OTHER),
                  "another rank: error %d, or a wrong sum", error);
        }
        pool_close(&pool);
        check(world_rank != 0 || calls_after_failure(&pool) == 0, "%d callbacks after the failure",
              calls_after_failure(&pool));
        watch_free(&watch);
        options.defer = NULL;
        watch_one(kind, comm, &options, "after a failure");
        MPI_Comm_free(&comm);
    }
}

static int complete_wrongly(void *arg, watch_t *watch, const MPIX_Flash_block *block)
{
    MPIX_Flash_handle none = {NULL, 0}, later = block->handle;

    (void) arg;
    watch_compute(watch, block);
    check(MPIX_Flash_complete(none, MPI_SUCCESS) == MPI_ERR_ARG, "no handle");
    later.piece += later.piece < 0 ? -1 : 1;
    check(MPIX_Flash_complete(later, MPI_SUCCESS) == MPI_ERR_ARG, "the next piece");
    check(MPIX_Flash_complete(block->handle, MPI_SUCCESS) == MPI_SUCCESS, "this piece");
    check(MPIX_Flash_complete(block->handle, MPI_SUCCESS) == MPI_ERR_ARG, "twice");
    return watch->calls % 2 == 0 ? MPIX_FLASH_PENDING : MPI_SUCCESS;
}

static void wrong_handles(void)
{
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_options_t options = {.count = 100, .pieces = 3, .defer = complete_wrongly};

        watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &options, "wrong handles");
    }
}

/*
 * Rank 0 leaves MPI; its pieces, completed later, reach rank 1 nevertheless, which then removes the
 * file. If they do not, there is no end.
 */
static void leave(pool_t *pool, MPI_Comm pair, const char *path)
{
    watch_options_t options = {.count = 100000, .defer = give, .defer_arg = pool};
    MPI_Request request;
    watch_t watch;
    int done = 0;

    pool->hold_until = ROOM;
    watch_init(&watch, WATCH_REDUCE_SCATTER, pair, &options);
    watch_start(&watch, &request);
    while (watch.calls < 2) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    pool_release(pool);
    while (access(path, F_OK) == 0) {
        nap(1000);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    watch_check(&watch, "moves alone");
    watch_free(&watch);
}

/* FLASH_TEST_THREAD=0 in the environment: no progress thread. */
static void moves_alone(void)
{
    static const watch_options_t options = {.count = 100000};
    const char *thread = getenv("FLASH_TEST_THREAD");
    char path[] = "/tmp/flash-test-pending-XXXXXX"; /* another one in each job on this machine */
    MPI_Comm pair;
    pool_t pool;

    if (!is_active() || (thread != NULL && strcmp(thread, "0") == 0)) {
        return;
    }
    if (world_rank == 0) {
        check(close(mkstemp(path)) == 0, "cannot create %s", path);
    }
    MPI_Bcast(path, (int) sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
    if (world_rank == 0) {
        pool_open(&pool);
        leave(&pool, pair, path);
        pool_close(&pool);
    } else if (world_rank == 1) {
        watch_one(WATCH_REDUCE_SCATTER, pair, &options, "moves alone");
        check(unlink(path) == 0, "cannot remove %s", path);
    }
    if (pair != MPI_COMM_NULL) {
        MPI_Comm_free(&pair);
    }
}

TEST_PROGRAM(test_pending, MPI_THREAD_SINGLE, {"any_order", any_order}, {"blocking", blocking},
             {"several_in_flight", several_in_flight}, {"runs_ahead", runs_ahead}, {"fails", fails},
             {"moves_alone", moves_alone}, {"wrong_handles", wrong_handles});
