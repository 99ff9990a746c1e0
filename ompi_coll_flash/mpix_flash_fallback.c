/*
 * mpix_flash_fallback.c: see mpix_flash_fallback.h.
 *
 * Collectives of one communicator match in the order in which they are called, so that the plain
 * collective must begin inside the extension's call. An allgather does, and calls back when it is
 * complete; a reduce-scatter needs all contributions first, and produces them inside the call.
 *
 * A failed producer has nothing to contribute, and the plain collective cannot tell the others: a
 * second, tiny reduction goes along that does.
 *
 * Shared between threads: the list of operations under way, and which of them a thread is busy
 * with, under `mutex`; `under_way` is an atomic hint that the list is not empty; an operation's
 * `undone` and `error`, written by those who call back and by those who complete a pending piece,
 * whose last word is to clear its bit (release; who finds it clear acquires).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpix_flash_fallback.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct flash_fallback {
    ompi_coll_base_nbc_request_t super;
    mca_coll_flash_debt_t debt;
    struct flash_fallback *next;
    ompi_communicator_t *comm; /* kept while the operation lives */
    bool busy;                 /* some thread is calling back for it */
    atomic_int state;
    MPI_Request inner[2]; /* the collective; the producers' reports */
    mca_coll_flash_compute_t compute;
    atomic_int error; /* the first one of this rank's callbacks */
    uint64_t begun;   /* pieces called back for */
    atomic_uint_fast64_t
        undone;          /* a bit for each of those that is not done, see flash_pending_bit() */
    int reported, worst; /* whether a producer failed: here, anywhere */
    void *contribution;  /* reduce-scatter: all blocks; owned */
    flash_schedule_t schedule;
    size_t *counts;    /* owned */
    ptrdiff_t *displs; /* owned */
    MPI_Datatype datatype;
    ptrdiff_t extent;
    char *base;           /* where the blocks lie: the receive buffer, or in `contribution` */
    uint32_t step, piece; /* the next callback */
} flash_fallback_t;

enum { FALLBACK_IN_USE, FALLBACK_FREED, FALLBACK_COMPLETED };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static flash_fallback_t *list;
static atomic_uint under_way;

/* ---------------------------------------------------------------- requests */

static void leave(ompi_request_t *base)
{
    flash_fallback_t *fallback = (flash_fallback_t *) base;

    if (atomic_exchange_explicit(&fallback->state, FALLBACK_FREED, memory_order_acq_rel) ==
        FALLBACK_COMPLETED) {
        OMPI_REQUEST_FINI(base);
        OBJ_RELEASE(fallback);
    }
}

static int fallback_free(ompi_request_t **handle)
{
    flash_fallback_t *fallback = (flash_fallback_t *) *handle;

    flash_compat_see_request(*handle);
    if (!mca_coll_flash_owes(*handle, &fallback->debt, leave)) {
        leave(*handle);
    }
    *handle = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* As with a ring: no operation of the extension can be cancelled. */
static int fallback_cancel(ompi_request_t *request, int flag)
{
    (void) request;
    (void) flag;
    return MPI_ERR_REQUEST;
}

static void fallback_construct(flash_fallback_t *fallback)
{
    OMPI_REQUEST_INIT(&fallback->super.super, false);
    fallback->super.super.req_type = OMPI_REQUEST_COLL;
    fallback->super.super.req_state = OMPI_REQUEST_ACTIVE;
    fallback->super.super.req_free = fallback_free;
    fallback->super.super.req_cancel = fallback_cancel;
    fallback->super.super.req_status = ompi_status_empty;
    fallback->busy = false;
    atomic_init(&fallback->state, FALLBACK_IN_USE);
    fallback->inner[0] = fallback->inner[1] = MPI_REQUEST_NULL;
    atomic_init(&fallback->error, MPI_SUCCESS);
    fallback->begun = 0;
    atomic_init(&fallback->undone, 0);
    fallback->reported = fallback->worst = 0;
    fallback->comm = NULL;
    fallback->contribution = NULL;
    fallback->counts = NULL;
    fallback->displs = NULL;
    fallback->step = fallback->piece = 0;
}

static void fallback_destruct(flash_fallback_t *fallback)
{
    if (fallback->comm != NULL) {
        OBJ_RELEASE(fallback->comm);
    }
    free(fallback->contribution);
    free(fallback->counts);
    free(fallback->displs);
}

OBJ_CLASS_DECLARATION(flash_fallback_t);
OBJ_CLASS_INSTANCE(flash_fallback_t, ompi_coll_base_nbc_request_t, fallback_construct,
                   fallback_destruct);

static bool is_complete(MPI_Request request)
{
    return request == MPI_REQUEST_NULL || REQUEST_COMPLETE(request);
}

static void complete(flash_fallback_t *fallback)
{
    ompi_request_t *base = &fallback->super.super;
    int error = atomic_load_explicit(&fallback->error, memory_order_relaxed);

    for (int k = 0; k < 2; k++) {
        int rc = MPI_SUCCESS;

        /* Not MPI_Wait: it would hand an error to MPI_COMM_WORLD's error handler. */
        if (fallback->inner[k] != MPI_REQUEST_NULL) {
            rc = ompi_request_wait(&fallback->inner[k], MPI_STATUS_IGNORE);
            if (fallback->inner[k] != MPI_REQUEST_NULL) {
                ompi_request_free(&fallback->inner[k]); /* one that failed is left */
            }
        }
        error = error == MPI_SUCCESS ? rc : error;
    }
    if (error == MPI_SUCCESS && fallback->worst != 0) {
        error = MPI_ERR_OTHER;
    }
    base->req_status.MPI_ERROR = error;
    if (error != MPI_SUCCESS) {
        base->req_type = OMPI_REQUEST_PML; /* as in coll_flash_request.c */
    }
    ompi_request_complete(base, true);
    if (atomic_exchange_explicit(&fallback->state, FALLBACK_COMPLETED, memory_order_acq_rel) ==
        FALLBACK_FREED) {
        OMPI_REQUEST_FINI(base);
        OBJ_RELEASE(fallback);
    }
}

/* --------------------------------------------------------------- callbacks */

static uint64_t undone(const flash_fallback_t *fallback)
{
    return atomic_load_explicit(&fallback->undone, memory_order_acquire);
}

/* Whether there is room for one more. */
static bool may_begin(const flash_fallback_t *fallback)
{
    return (undone(fallback) & flash_pending_bit(fallback->begun)) == 0;
}

/* Who finds the bit clear may free the operation: nothing is touched after that. */
bool flash_fallback_end_pending(void *operation, MPI_Count piece, int error)
{
    flash_fallback_t *fallback = operation;
    uint64_t bit = flash_pending_bit((uint64_t) (-1 - piece));
    int none = MPI_SUCCESS;

    if ((undone(fallback) & bit) == 0) {
        return false;
    }
    atomic_compare_exchange_strong_explicit(&fallback->error, &none, error, memory_order_relaxed,
                                            memory_order_relaxed);
    atomic_fetch_and_explicit(&fallback->undone, ~bit, memory_order_release);
    return true;
}

static bool has_failed(const flash_fallback_t *fallback)
{
    return atomic_load_explicit(&fallback->error, memory_order_relaxed) != MPI_SUCCESS;
}

static void call_piece(flash_fallback_t *fallback, uint32_t rank, const flash_split_t *split,
                       uint32_t piece)
{
    flash_range_t range = flash_split_piece(split, piece);
    ptrdiff_t element = flash_schedule_displ(&fallback->schedule, rank) + (ptrdiff_t) range.offset;
    MPIX_Flash_block block = {.rank = (int) rank,
                              .piece = (int) piece,
                              .pieces = (int) split->pieces,
                              .offset = (MPI_Count) range.offset,
                              .count = (MPI_Count) range.count,
                              .datatype = fallback->datatype,
                              .data = fallback->base + element * fallback->extent,
                              .stream = NULL,
                              .handle = {fallback, -1 - (MPI_Count) fallback->begun}};
    bool nested = flash_in_callback;
    int error;

    atomic_fetch_or_explicit(&fallback->undone, flash_pending_bit(fallback->begun++),
                             memory_order_relaxed);
    flash_in_callback = true;
    error = fallback->compute.fn(&block, fallback->compute.arg);
    flash_in_callback = nested;
    if (error != MPIX_FLASH_PENDING) {
        flash_fallback_end_pending(fallback, block.handle.piece,
                                   error >= 0 ? error : MPI_ERR_OTHER);
    }
}

static flash_split_t split_of_step(const flash_fallback_t *fallback, uint32_t *rank)
{
    *rank = flash_schedule_block(&fallback->schedule, fallback->step);
    return flash_schedule_split(&fallback->schedule, *rank);
}

/* Moves on to the next piece for a consumer. False if there is none. */
static bool find_next(flash_fallback_t *fallback)
{
    uint32_t rank;

    while (fallback->schedule.kind == FLASH_ALLGATHER && !has_failed(fallback) &&
           fallback->step < fallback->schedule.ring.nranks) {
        if (fallback->piece < split_of_step(fallback, &rank).pieces) {
            return true;
        }
        fallback->step++;
        fallback->piece = 0;
    }
    return false;
}

static void consume_next(flash_fallback_t *fallback)
{
    uint32_t rank;
    flash_split_t split = split_of_step(fallback, &rank);

    call_piece(fallback, rank, &split, fallback->piece++);
}

static void produce_all(flash_fallback_t *fallback)
{
    const flash_schedule_t *schedule = &fallback->schedule;

    for (uint32_t step = 0; step < schedule->ring.nranks; step++) {
        uint32_t rank = flash_schedule_block(schedule, step);
        flash_split_t split = flash_schedule_split(schedule, rank);

        for (uint32_t piece = 0; piece < split.pieces && !has_failed(fallback); piece++) {
            while (!may_begin(fallback)) {
                opal_progress();
            }
            if (has_failed(fallback)) {
                break; /* meanwhile */
            }
            call_piece(fallback, rank, &split, piece);
        }
    }
    while (undone(fallback) != 0) {
        opal_progress();
    }
}

/* ---------------------------------------------------------------- progress */

/*
 * Takes an operation whose collective is complete, and that has a callback to make or can complete,
 * for this thread alone: inside a callback, one that has none left to call, which that callback may
 * wait for.
 */
static flash_fallback_t *take_ready(void)
{
    flash_fallback_t *fallback;

    pthread_mutex_lock(&mutex);
    for (fallback = list; fallback != NULL; fallback = fallback->next) {
        if (!fallback->busy && is_complete(fallback->inner[0]) && is_complete(fallback->inner[1]) &&
            (find_next(fallback) ? !flash_in_callback && may_begin(fallback)
                                 : undone(fallback) == 0)) {
            fallback->busy = true;
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
    return fallback;
}

static void put_back(flash_fallback_t *fallback)
{
    pthread_mutex_lock(&mutex);
    fallback->busy = false;
    pthread_mutex_unlock(&mutex);
}

static void take_off_list(flash_fallback_t *fallback)
{
    flash_fallback_t **link = &list;

    pthread_mutex_lock(&mutex);
    while (*link != fallback) {
        link = &(*link)->next;
    }
    *link = fallback->next;
    pthread_mutex_unlock(&mutex);
    atomic_fetch_sub_explicit(&under_way, 1, memory_order_relaxed);
}

static int fallback_progress(void)
{
    flash_fallback_t *fallback;

    if (atomic_load_explicit(&under_way, memory_order_relaxed) == 0) {
        return 0;
    }
    fallback = take_ready();
    if (fallback == NULL) {
        return 0;
    }
    if (find_next(fallback)) {
        consume_next(fallback);
        put_back(fallback);
    } else if (undone(fallback) != 0) { /* a piece has failed since */
        put_back(fallback);
    } else {
        take_off_list(fallback);
        complete(fallback);
    }
    return 1;
}

static void register_progress(void)
{
    opal_progress_register(fallback_progress);
}

static void enlist(flash_fallback_t *fallback, MPI_Request *request)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    *request = &fallback->super.super;
    pthread_once(&once, register_progress);
    atomic_fetch_add_explicit(&under_way, 1, memory_order_relaxed);
    pthread_mutex_lock(&mutex);
    fallback->next = list;
    list = fallback;
    pthread_mutex_unlock(&mutex);
}

/* ----------------------------------------------------------------- starting */

static flash_fallback_t *make(flash_kind_t kind, const mca_coll_flash_compute_t *compute,
                              int recvcount, const int recvcounts[], const int displs[],
                              MPI_Datatype datatype, MPI_Comm comm)
{
    flash_fallback_t *fallback = OBJ_NEW(flash_fallback_t);
    int size = ompi_comm_size(comm);
    ptrdiff_t next = 0;
    size_t element;

    mca_coll_flash_settle();
    if (fallback == NULL) {
        return NULL;
    }
    fallback->super.super.req_mpi_object.comm = comm;
    fallback->comm = comm;
    OBJ_RETAIN(comm);
    fallback->compute = *compute;
    fallback->datatype = datatype;
    ompi_datatype_type_extent(datatype, &fallback->extent);
    fallback->base = NULL;
    fallback->counts = malloc((size_t) size * sizeof(*fallback->counts));
    fallback->displs = malloc((size_t) size * sizeof(*fallback->displs));
    if (fallback->counts == NULL || fallback->displs == NULL) {
        OBJ_RELEASE(fallback);
        return NULL;
    }
    ompi_datatype_type_size(datatype, &element);
    for (int rank = 0; rank < size; rank++) {
        int count = recvcounts != NULL ? recvcounts[rank] : recvcount;

        fallback->counts[rank] = element > 0 ? (size_t) count : 0;
        fallback->displs[rank] = displs != NULL ? displs[rank] : next;
        next += count;
    }
    fallback->schedule = (flash_schedule_t){
        .kind = kind,
        .ring = {.nranks = (uint32_t) size, .place = (uint32_t) ompi_comm_rank(comm)},
        .pieces = compute->pieces > 1 ? (uint32_t) compute->pieces : 1,
        .row = compute->row > 1 ? (size_t) compute->row : 1,
        .segment_elements = SIZE_MAX,
        .blocks = {.counts = fallback->counts, .displs = fallback->displs}};
    return fallback;
}

int flash_fallback_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, int recvcount, const int recvcounts[],
                             const int displs[], MPI_Datatype recvtype,
                             const mca_coll_flash_compute_t *compute, MPI_Comm comm,
                             MPI_Request *request)
{
    flash_fallback_t *fallback =
        make(FLASH_ALLGATHER, compute, recvcount, recvcounts, displs, recvtype, comm);
    MPI_Request gathered;
    int rc = recvcounts == NULL ? PMPI_Iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                                  recvtype, comm, &gathered)
                                : PMPI_Iallgatherv(sendbuf, sendcount, sendtype, recvbuf,
                                                   recvcounts, displs, recvtype, comm, &gathered);

    if (rc == MPI_SUCCESS && fallback == NULL) {
        /* The others wait for this rank's block: it takes part all the same. */
        ompi_request_wait(&gathered, MPI_STATUS_IGNORE);
        return MPI_ERR_NO_MEM;
    }
    if (rc != MPI_SUCCESS) {
        if (fallback != NULL) {
            OBJ_RELEASE(fallback);
        }
        return rc;
    }
    fallback->base = recvbuf;
    fallback->inner[0] = gathered;
    enlist(fallback, request);
    return MPI_SUCCESS;
}

/*
 * Room for all blocks, as well aligned as malloc()'s. The data of an element may begin before or
 * behind its address.
 */
static int allocate_contribution(flash_fallback_t *fallback)
{
    const ptrdiff_t align = _Alignof(max_align_t);
    int last = (int) fallback->schedule.ring.nranks - 1;
    ptrdiff_t elements = fallback->displs[last] + (ptrdiff_t) fallback->counts[last], first = 0;
    ptrdiff_t bytes = opal_datatype_span(&fallback->datatype->super, (size_t) elements, &first);
    ptrdiff_t before = (first % align + align) % align; /* to a multiple of `align` below */

    fallback->contribution = calloc(1, (size_t) (before + bytes) + 1);
    fallback->base = (char *) fallback->contribution + before - first;
    return fallback->contribution == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int flash_fallback_reduce_scatter(const mca_coll_flash_compute_t *compute, void *recvbuf,
                                  int recvcount, const int recvcounts[], MPI_Datatype datatype,
                                  MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    flash_fallback_t *fallback =
        make(FLASH_REDUCE_SCATTER, compute, recvcount, recvcounts, NULL, datatype, comm);
    int rc;

    if (fallback == NULL) {
        return MPI_ERR_NO_MEM;
    }
    rc = allocate_contribution(fallback);
    if (rc != MPI_SUCCESS) {
        OBJ_RELEASE(fallback);
        return rc;
    }
    produce_all(fallback);
    fallback->reported = has_failed(fallback);
    rc = recvcounts == NULL ? PMPI_Ireduce_scatter_block(fallback->base, recvbuf, recvcount,
                                                         datatype, op, comm, &fallback->inner[0])
                            : PMPI_Ireduce_scatter(fallback->base, recvbuf, recvcounts, datatype,
                                                   op, comm, &fallback->inner[0]);
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Iallreduce(&fallback->reported, &fallback->worst, 1, MPI_INT, MPI_MAX, comm,
                             &fallback->inner[1]);
    }
    if (rc != MPI_SUCCESS) {
        /* A collective that is under way keeps its buffers: they are given up rather than freed. */
        return rc;
    }
    enlist(fallback, request);
    return MPI_SUCCESS;
}
