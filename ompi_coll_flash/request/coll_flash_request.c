/*
 * coll_flash_request.c: an operation as a request: made, begun or refused, ended.
 *
 * A request ends in an application thread, from the callback of opal_progress(), never in the
 * progress thread: at MPI_THREAD_SINGLE Open MPI's requests are plain memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_memory.h"
#include "job/coll_flash_counters.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/flash_stager.h"
#include "engine/flash_segments.h"

static opal_free_list_t requests;
static bool requests_made;

static void recycle(mca_coll_flash_handle_t *handle)
{
    free(((mca_coll_flash_request_t *) handle)->taken);
    opal_free_list_return(&requests, &handle->super.super.super);
}

/* The algorithm's own state lies behind what all requests have. */
enum { ALIGNED = 16 };

_Static_assert(_Alignof(max_align_t) <= ALIGNED, "a state may have any type");

static size_t state_offset(void)
{
    return (sizeof(mca_coll_flash_request_t) + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static void request_construct(mca_coll_flash_request_t *request)
{
    request->algorithm_state = (char *) request + state_offset();
}

OBJ_CLASS_INSTANCE(mca_coll_flash_request_t, mca_coll_flash_handle_t, request_construct, NULL);

int mca_coll_flash_requests_init(void)
{
    assert(mca_coll_flash_algorithms_state() > 0); /* they are known */
    OBJ_CONSTRUCT(&requests, opal_free_list_t);
    requests_made = true;
    return opal_free_list_init(&requests, state_offset() + mca_coll_flash_algorithms_state(),
                               ALIGNED, OBJ_CLASS(mca_coll_flash_request_t), 0, 0, 0, -1, 8, NULL,
                               0, NULL, NULL, NULL);
}

void mca_coll_flash_requests_fini(void)
{
    if (requests_made) {
        OBJ_DESTRUCT(&requests);
        requests_made = false;
    }
}

/*
 * The steps outlive the call: a request that waits for its operation id starts later, or is refused.
 * Without memory for them, a call is refused at once, without a request. A round of a persistent request
 * never waits: its request borrows the steps of the ticket, and is to be refused in this call.
 */
static bool keep_part(mca_coll_flash_request_t *request, const mca_coll_flash_ticket_t *ticket)
{
    request->part = ticket->part;
    request->taken = NULL;
    if (ticket->part.taken != NULL) {
        request->taken = malloc(sizeof(*request->taken));
        if (request->taken == NULL) {
            return ticket->sequence >= FLASH_CALL_SEQUENCES;
        }
        *request->taken = *ticket->part.taken;
        request->part.taken = request->taken;
    }
    return true;
}

mca_coll_flash_request_t *mca_coll_flash_request_new(mca_coll_flash_module_t *module,
                                                     mca_coll_flash_ticket_t ticket,
                                                     flash_kind_t kind)
{
    mca_coll_flash_request_t *request = (mca_coll_flash_request_t *) opal_free_list_get(&requests);

    mca_coll_flash_free_deferred();
    if (request != NULL && !keep_part(request, &ticket)) {
        opal_free_list_return(&requests, &request->handle.super.super.super);
        request = NULL;
    }
    if (request == NULL) {
        ticket.algorithm->refuse(module, ticket.sequence, kind, ticket.part);
        return NULL;
    }
    mca_coll_flash_handle_init(&request->handle, module->comm, false, recycle);
    request->module = module;
    request->algorithm = ticket.algorithm;
    request->sequence = ticket.sequence;
    request->settings = ticket.settings;
    request->kind = kind;
    request->sendtype = NULL;
    request->compute = (mca_coll_flash_compute_t){.produce = NULL};
    request->op = NULL;
    request->told_stalled = request->refused = request->on_callback_thread = false;
    request->known_error = MPI_SUCCESS;
    request->counts = NULL;
    request->displs = NULL;
    request->scratch = NULL;
    request->packed = NULL;
    request->stager = NULL;
    request->prepare = NULL;
    request->finish = NULL;
    return request;
}

int mca_coll_flash_request_blocks(mca_coll_flash_request_t *request, size_t count,
                                  flash_blocks_t *blocks)
{
    size_t ranks = (size_t) ompi_comm_size(request->module->comm);

    request->counts = malloc(count * ranks * sizeof(*request->counts));
    request->displs = malloc(count * ranks * sizeof(*request->displs));
    if (request->counts == NULL || request->displs == NULL) {
        return MPI_ERR_NO_MEM;
    }
    for (size_t k = 0; k < count; k++) {
        blocks[k].counts = request->counts + k * ranks;
        blocks[k].displs = request->displs + k * ranks;
    }
    return MPI_SUCCESS;
}

int mca_coll_flash_request_sides(mca_coll_flash_request_t *request,
                                 const mca_coll_flash_side_t *sides, size_t count,
                                 flash_blocks_t *blocks)
{
    size_t ranks = (size_t) ompi_comm_size(request->module->comm);

    if (mca_coll_flash_request_blocks(request, count, blocks) != MPI_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (size_t at = 0; at < count * ranks; at++) {
        const mca_coll_flash_side_t *side = &sides[at / ranks];
        size_t rank = at % ranks;
        ptrdiff_t behind =
            rank == 0 ? 0 : request->displs[at - 1] + (ptrdiff_t) request->counts[at - 1];

        request->counts[at] = (size_t) side->counts[rank] * side->element;
        request->displs[at] = side->displs == NULL ? behind : side->displs[rank] * side->extent;
    }
    return MPI_SUCCESS;
}

static void release_memory(mca_coll_flash_request_t *request)
{
    free(request->counts);
    free(request->displs);
    free(request->scratch);
    free(request->packed);
    flash_stager_close(request->stager);
    request->counts = NULL;
    request->displs = NULL;
    request->scratch = NULL;
    request->packed = NULL;
    request->stager = NULL;
}

/* ------------------------------------------------------------------ completing */

/* mpirun takes badly to many messages at a time: what fails elsewhere is told once, until it is
   another rank's fault. */
static bool is_told(mca_coll_flash_module_t *module, int status, uint32_t failed_rank)
{
    return status == FLASH_ERR_PEER &&
           atomic_exchange_explicit(&module->told_failed_rank, failed_rank, memory_order_relaxed) ==
               failed_rank;
}

static void explain(const mca_coll_flash_request_t *request, int status, uint32_t failed_rank)
{
    ompi_group_t *group = request->module->comm->c_local_group;
    char rank[64] = "another rank";

    if (is_told(request->module, status, failed_rank)) {
        return;
    }
    if (failed_rank != FLASH_NOBODY) {
        snprintf(rank, sizeof(rank), "rank %u of MPI_COMM_WORLD",
                 (unsigned) ompi_group_get_proc_name(group, (int) failed_rank).vpid);
    }
    if (status == FLASH_ERR_TRANSPORT) {
        FLASH_HELP("transport-failed", rank, opal_process_info.nodename, (int) getpid());
    } else if (status == FLASH_ERR_REFUSED) {
        FLASH_HELP("refused", opal_process_info.nodename, (int) getpid());
    } else if (status == FLASH_ERR_PEER) {
        FLASH_HELP("peer-failed", rank, opal_process_info.nodename, (int) getpid());
    } else if (status == FLASH_ERR_LOST) {
        FLASH_HELP("peer-lost", rank, opal_process_info.nodename, (int) getpid());
    } else if (status == FLASH_ERR_DEVICE) {
        mca_coll_flash_tell_device_failed();
    } else if (status == FLASH_ERR_TRUNCATED) {
        FLASH_HELP("sizes-disagree", opal_process_info.nodename, (int) getpid());
    }
}

void mca_coll_flash_request_ended(mca_coll_flash_request_t *request, int status,
                                  uint32_t failed_rank, bool has_orphans)
{
    int error = mca_coll_flash_error(status);

    explain(request, status, failed_rank);
    if (error == MPI_SUCCESS && request->known_error == MPI_SUCCESS && request->finish != NULL) {
        error = request->finish(request);
    }
    if (has_orphans) { /* its memory stays: see flash_op_has_orphans() */
        flash_stager_abandon(request->stager);
        request->scratch = NULL;
        request->packed = NULL;
        request->stager = NULL;
    }
    release_memory(request);
    mca_coll_flash_handle_complete(
        &request->handle, request->known_error != MPI_SUCCESS ? request->known_error : error);
}

void mca_coll_flash_request_fail(mca_coll_flash_request_t *request, int error)
{
    release_memory(request);
    request->refused = true;
    request->known_error = error;
    request->finish = NULL;
}

/* ------------------------------------------------------------------- starting */

/* Where the caller's block is; the ring's may be in packed memory. */
static MPI_Count displ_of(const mca_coll_flash_request_t *request, const flash_piece_t *piece)
{
    flash_displs_t displs = request->prepare == NULL ? NULL : request->deferred.displs;

    return displs == NULL ? (MPI_Count) piece->displ : displs[piece->block];
}

/* Whether what a callback has written is there once the stream's work is done. */
static bool leaves_work(const mca_coll_flash_request_t *request, const flash_piece_t *piece)
{
    return piece->on_device ||
           (piece->produces && request->op == NULL && request->compute.on_stream);
}

static int call_back(void *arg, const flash_piece_t *piece)
{
    mca_coll_flash_request_t *request = arg;
    MPIX_Flash_block block = {.rank = (int) piece->block,
                              .piece = (int) piece->piece,
                              .pieces = (int) piece->pieces,
                              .ranks = 1,
                              .displ = displ_of(request, piece),
                              .offset = (MPI_Count) piece->offset,
                              .count = (MPI_Count) piece->count,
                              .datatype = piece->produces && request->sendtype != NULL
                                              ? request->sendtype
                                              : request->datatype,
                              .data = piece->data,
                              .on_stream = request->compute.on_stream,
                              .stream = request->compute.stream,
                              .handle = {piece->op, (MPI_Count) piece->number}};
    const mca_coll_flash_compute_t *compute = &request->compute;
    bool prepares = request->prepare != NULL && !piece->produces;
    int error = prepares ? request->prepare(request, piece, &block.data) : MPI_SUCCESS;
    bool enters = request->on_callback_thread && flash_stager_enter(request->stager);

    if (error == MPI_SUCCESS) {
        mca_coll_flash_count(FLASH_COUNT_CALLBACKS, 1);
        error = piece->produces ? compute->produce(&block, compute->produce_arg)
                                : compute->consume(&block, compute->consume_arg);
    }
    if (enters) {
        flash_stager_leave();
    }
    if (error == MPIX_FLASH_PENDING) {
        return FLASH_PENDING;
    }
    error = error >= 0 ? error : MPI_ERR_OTHER;
    return leaves_work(request, piece) ? mca_coll_flash_await_stream(request, piece, error) : error;
}

static bool calls_on_thread(const mca_coll_flash_request_t *request)
{
    const mca_coll_flash_compute_t *compute = &request->compute;

    return request->module->settings.callback_thread != 0 &&
           (compute->produce != NULL || compute->consume != NULL);
}

/*
 * While a ring has a long segment of one block under way, others of other blocks are. Along a chain
 * each rank waits for the first segment as long as that takes: there, all segments are short.
 */
static void fill_segments(const mca_coll_flash_request_t *request, flash_op_params_t *params)
{
    size_t wanted = request->settings->segment_bytes;
    bool far = request->module->rdma && !request->module->on_node;

    if (wanted == 0 && flash_schedule_chains(request->kind)) {
        wanted = FLASH_USUAL_SEGMENT;
    }
    if (wanted > 0) {
        flash_segments_cut_equal(&params->schedule, params->element, wanted);
    } else {
        flash_segments_cut(&params->schedule, params->element, far ? &flash_link_rdma : NULL);
    }
}

static void fill_params(mca_coll_flash_request_t *request, flash_op_params_t *params)
{
    const mca_coll_flash_compute_t *compute = &request->compute;
    const mca_coll_flash_settings_t *settings = request->settings;

    params->schedule.kind = request->kind;
    params->schedule.ring = request->module->ring;
    params->schedule.from_root = request->part.from_root;
    params->schedule.taken = request->part.taken;
    params->schedule.pieces = compute->pieces > 1 ? (uint32_t) compute->pieces : 1;
    params->schedule.row = compute->row > 1 ? (size_t) compute->row : 1;
    fill_segments(request, params);
    params->depth = (uint32_t) settings->segment_window;
    params->sends = (uint32_t) settings->max_sends;
    params->bound = settings->pinned_bytes;
    params->produce = compute->produce == NULL ? NULL : call_back;
    params->produce_arg = request;
    params->consume = compute->consume == NULL ? NULL : call_back;
    params->consume_arg = request;
    params->on_callback_thread = request->on_callback_thread;
    params->user = request;
}

/* The other ranks take part in it from here on. */
static void begin(mca_coll_flash_request_t *request, flash_op_params_t *params,
                  ompi_request_t **started)
{
    *started = mca_coll_flash_handle_begin(&request->handle);
    request->algorithm->begin(request, params);
}

static int prepare(const mca_coll_flash_request_t *request)
{
    const mca_coll_flash_algorithm_t *algorithm = request->algorithm;

    return algorithm->prepare == NULL
               ? MPI_SUCCESS
               : algorithm->prepare(request->module, request->kind, request->part);
}

int mca_coll_flash_request_refuse(mca_coll_flash_request_t *request, int error,
                                  ompi_request_t **started)
{
    flash_op_params_t none = {.schedule = {.kind = request->kind,
                                           .ring = request->module->ring,
                                           .from_root = request->part.from_root,
                                           .taken = request->part.taken},
                              .user = request};

    mca_coll_flash_request_fail(request, error);
    if (prepare(request) != MPI_SUCCESS) {
        mca_coll_flash_handle_leave(&request->handle);
        return error;
    }
    begin(request, &none, started);
    return MPI_SUCCESS;
}

int mca_coll_flash_request_start(mca_coll_flash_request_t *request, flash_op_params_t *params,
                                 ompi_request_t **started)
{
    bool has_part = request->part.taken == request->taken;
    int rc = has_part ? prepare(request) : MPI_ERR_NO_MEM;

    request->on_callback_thread = calls_on_thread(request);
    if (rc == MPI_SUCCESS && request->on_callback_thread) {
        rc = mca_coll_flash_job_start_callback_thread();
    }
    if (rc == MPI_SUCCESS) {
        fill_params(request, params);
        rc = mca_coll_flash_find_scratch(request, params);
    }
    if (rc != MPI_SUCCESS) {
        return mca_coll_flash_request_refuse(request, rc, started);
    }
    begin(request, params, started);
    return MPI_SUCCESS;
}
