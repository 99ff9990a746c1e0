/*
 * coll_flash_setup_steps.c: one set-up, by messages of Open MPI's own.
 *
 * FLASH_SETUP_RING: this process opens UCX. Neighbours in the ring tell each other their addresses, but
 * for those that PMIx has, or that they have none, and connect. Then all ranks learn the least of each value (coll_flash_rounds.c):
 * whether UCX connects every rank to its neighbours, and whether it is as fast as what Open MPI uses.
 * All ranks thus come to the same end.
 *
 * FLASH_SETUP_PAIRS: all ranks learn all those addresses, if there are any. It begins when the ring's is
 * over.
 *
 * A rank that has no memory for this cannot tell the others. It ends the job, as while a communicator
 * is made.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_setup.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/coll_flash_modex.h"
#include "job/coll_flash_ucx.h"

enum {
    USABLE,
    FABRIC,
    RDMA,
    ADDRESS, /* minus the length of one that PMIx has not */
    THREAD,  /* a progress thread */
    VALUES
};
_Static_assert((int) VALUES == (int) FLASH_SETUP_VALUES, "each has its place");

/* UCX's address grows with the devices of a host: some hundred bytes each. */
#define ADDRESS_MOST ((size_t) 64 << 10)

static ompi_communicator_t *comm_of(const mca_coll_flash_setup_t *setup)
{
    return setup->module->comm;
}

static opal_process_name_t name_of(const mca_coll_flash_setup_t *setup, int rank)
{
    return ompi_group_get_proc_name(comm_of(setup)->c_local_group, rank);
}

/* What others must be told of this process'; of 0 bytes: UCX is not usable here, or PMIx has told. */
static const void *own_address(size_t *length)
{
    *length = 0;
    if (!mca_coll_flash_job_open_ucx() || mca_coll_flash_modex_has_address()) {
        return NULL;
    }
    return mca_coll_flash_ucx()->address(mca_coll_flash_job_transport(), length);
}

/* An address of no bytes is none. */
static void learn(const mca_coll_flash_setup_t *setup, int rank, const void *address, size_t length)
{
    if (length > 0 && !mca_coll_flash_address_learn(name_of(setup, rank), address, length)) {
        mca_coll_flash_no_memory(comm_of(setup));
    }
}

/* ------------------------------------------------------------------ neighbours */

static void introduce(mca_coll_flash_setup_t *setup, int rank)
{
    mca_coll_flash_introduction_t *with = &setup->with[setup->neighbours++];
    size_t length;
    const void *address = own_address(&length);

    length = length <= ADDRESS_MOST ? length : 0;
    *with = (mca_coll_flash_introduction_t){.rank = rank, .address = malloc(ADDRESS_MOST)};
    /* The address stays as long as the transport. */
    if (with->address == NULL ||
        flash_compat_irecv(with->address, ADDRESS_MOST, MPI_BYTE, rank, FLASH_TAG_ADDRESS,
                           comm_of(setup), &with->in) != OMPI_SUCCESS ||
        flash_compat_isend(address, length, MPI_BYTE, rank, FLASH_TAG_ADDRESS, comm_of(setup),
                           &with->out) != OMPI_SUCCESS) {
        mca_coll_flash_no_memory(comm_of(setup));
    }
}

static void begin_ring(mca_coll_flash_setup_t *setup)
{
    const flash_ring_t *ring = &setup->module->ring;
    int right = (int) flash_ring_rank(ring, 1);
    int left = (int) flash_ring_rank(ring, ring->nranks - 1);

    introduce(setup, right);
    if (left != right) {
        introduce(setup, left);
    }
}

/* Whether its address has come, and this process' has left. */
static bool is_met(const mca_coll_flash_setup_t *setup, mca_coll_flash_introduction_t *with)
{
    ompi_status_public_t status;

    if (with->in != NULL && flash_compat_is_complete(with->in)) {
        if (ompi_request_wait(&with->in, &status) != OMPI_SUCCESS) {
            mca_coll_flash_no_memory(comm_of(setup));
        }
        with->in = NULL;
        learn(setup, with->rank, with->address, status._ucount);
    }
    if (with->out != NULL && flash_compat_is_complete(with->out)) {
        (void) ompi_request_wait(&with->out, MPI_STATUS_IGNORE);
        with->out = NULL;
    }
    return with->in == NULL && with->out == NULL;
}

/* In any order. Whether all are met. */
static bool meet_neighbours(mca_coll_flash_setup_t *setup)
{
    for (uint32_t k = 0; k < setup->neighbours;) {
        if (!is_met(setup, &setup->with[k])) {
            k++;
            continue;
        }
        free(setup->with[k].address);
        setup->with[k] = setup->with[--setup->neighbours];
        setup->watches = 0;
    }
    return setup->neighbours == 0;
}

/* -------------------------------------------------------------------- all ranks */

static void tell_not_usable(const char *reason)
{
    static atomic_flag told = ATOMIC_FLAG_INIT; /* orders nothing else: relaxed */

    if (!atomic_flag_test_and_set_explicit(&told, memory_order_relaxed)) {
        FLASH_HELP("ucx-not-usable", opal_process_info.nodename, (int) getpid(), reason);
    }
}

static void set_values(mca_coll_flash_setup_t *setup)
{
    const flash_ring_t *ring = &setup->module->ring;
    int right = (int) flash_ring_rank(ring, 1);
    int left = (int) flash_ring_rank(ring, ring->nranks - 1);
    mca_coll_flash_fabric_t fabric = {.suits = true};
    size_t length;
    bool usable;

    (void) own_address(&length);
    usable = length <= ADDRESS_MOST && mca_coll_flash_job_reaches(comm_of(setup), right) &&
             mca_coll_flash_job_reaches(comm_of(setup), left);
    if (usable) {
        fabric = mca_coll_flash_fabric_look(comm_of(setup), right);
    } else {
        tell_not_usable(length > ADDRESS_MOST ? "the address of its worker is longer than 64 KiB"
                                              : mca_coll_flash_job_reason());
    }
    setup->values[USABLE] = usable;
    setup->values[FABRIC] = fabric.suits;
    setup->values[RDMA] = fabric.rdma;
    setup->values[ADDRESS] = -(int64_t) length;
    setup->values[THREAD] = mca_coll_flash_job_may_progress();
}

static void begin_rounds(mca_coll_flash_setup_t *setup, size_t words, int tag)
{
    uint32_t ranks = (uint32_t) ompi_comm_size(comm_of(setup));

    setup->meeting = (mca_coll_flash_meeting_t){
        .values = FLASH_SETUP_VALUES, .least = setup->values, .words = words};
    setup->meeting.seats = calloc(ranks, words * sizeof(uint32_t) + 1);
    setup->rounds = mca_coll_flash_rounds_begin(comm_of(setup), &setup->meeting, tag);
    if (setup->meeting.seats == NULL || setup->rounds == NULL) {
        mca_coll_flash_no_memory(comm_of(setup));
    }
}

/* A seat is the length of an address and the address. */
static void begin_pairs(mca_coll_flash_setup_t *setup)
{
    size_t words = 1 + (setup->module->address_bytes + 3) / sizeof(uint32_t), length;
    const void *address = own_address(&length);
    uint32_t *own;

    FLASH_VERBOSE(2, "coll:flash: communicator %u: all ranks learn addresses of %zu bytes at most",
                  flash_compat_comm_id(comm_of(setup)), setup->module->address_bytes);
    begin_rounds(setup, words, FLASH_TAG_PAIRS);
    own = setup->meeting.seats + (size_t) ompi_comm_rank(comm_of(setup)) * words;
    own[0] = (uint32_t) length;
    if (length > 0) {
        memcpy(own + 1, address, length);
    }
}

static void end_rounds(mca_coll_flash_setup_t *setup)
{
    mca_coll_flash_rounds_free(setup->rounds);
    free(setup->meeting.seats);
    setup->rounds = NULL;
    setup->meeting.seats = NULL;
}

/* False: they are under way. */
static bool hold_rounds(mca_coll_flash_setup_t *setup)
{
    uint32_t awaited = mca_coll_flash_rounds_awaited(setup->rounds);
    int rc = mca_coll_flash_rounds_advance(setup->rounds);

    if (rc != OMPI_SUCCESS && rc != FLASH_ROUNDS_BUSY) {
        mca_coll_flash_no_memory(comm_of(setup));
    }
    setup->watches *= mca_coll_flash_rounds_awaited(setup->rounds) == awaited;
    return rc == OMPI_SUCCESS;
}

static mca_coll_flash_setup_state_t end_ring(mca_coll_flash_setup_t *setup)
{
    bool ready = setup->values[USABLE] && setup->values[FABRIC];

    setup->module->rdma = setup->values[RDMA];
    setup->module->address_bytes = (size_t) -setup->values[ADDRESS];
    FLASH_VERBOSE(
        1, "coll:flash: communicator %u: %s%s", flash_compat_comm_id(comm_of(setup)),
        ready                   ? "UCX is open on all ranks"
        : setup->values[USABLE] ? "Open MPI reaches other nodes by a faster fabric than UCX, and "
                                  "coll_flash_any_fabric is no: calls by messages fall back"
                                : "UCX is not usable on all ranks: calls by messages fall back",
        !ready || setup->values[THREAD] ? "" : ", without a progress thread on some rank");
    return ready ? FLASH_SETUP_READY : FLASH_SETUP_REFUSED;
}

static mca_coll_flash_setup_state_t advance_ring(mca_coll_flash_setup_t *setup)
{
    if (!setup->begun) {
        setup->begun = true;
        begin_ring(setup);
    }
    if (!meet_neighbours(setup)) {
        return FLASH_SETUP_PENDING;
    }
    if (setup->rounds == NULL) {
        set_values(setup);
        begin_rounds(setup, 0, FLASH_TAG_RING);
    }
    if (!hold_rounds(setup)) {
        return FLASH_SETUP_PENDING;
    }
    end_rounds(setup);
    return end_ring(setup);
}

static mca_coll_flash_setup_state_t advance_pairs(mca_coll_flash_setup_t *setup)
{
    mca_coll_flash_setup_state_t ring =
        atomic_load_explicit(&setup->module->setups[FLASH_SETUP_RING], memory_order_acquire);

    if (ring != FLASH_SETUP_READY || setup->module->address_bytes == 0) {
        return ring;
    }
    if (setup->rounds == NULL) {
        begin_pairs(setup);
    }
    if (!hold_rounds(setup)) {
        return FLASH_SETUP_PENDING;
    }
    for (int rank = 0; rank < ompi_comm_size(comm_of(setup)); rank++) {
        const uint32_t *seat = setup->meeting.seats + (size_t) rank * setup->meeting.words;

        if (rank != ompi_comm_rank(comm_of(setup))) {
            learn(setup, rank, seat + 1, seat[0]);
        }
    }
    end_rounds(setup);
    return FLASH_SETUP_READY;
}

mca_coll_flash_setup_state_t mca_coll_flash_setup_advance(mca_coll_flash_setup_t *setup)
{
    return setup->kind == FLASH_SETUP_RING ? advance_ring(setup) : advance_pairs(setup);
}

int mca_coll_flash_setup_awaited(const mca_coll_flash_setup_t *setup)
{
    return setup->neighbours > 0   ? setup->with[0].rank
           : setup->rounds != NULL ? (int) mca_coll_flash_rounds_awaited(setup->rounds)
                                   : (int) flash_ring_rank(&setup->module->ring, 1);
}
