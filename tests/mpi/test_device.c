/*
 * test_device.c: operations on buffers in the memory of devices, of the host, and of both.
 *
 * Each rank takes its buffers from where it likes, other ranks from elsewhere. Device memory is
 * read and written through the driver alone: whoever touches it otherwise dies.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include "aftermath.h"
#include "device.h"
#include "extension.h"
#include "persistent.h"

enum { PLAIN, IN_PLACE, COMPUTE, PERSISTENT, FORMS };
static const char *const form_names[] = {"plain", "in place", "compute", "persistent"};

/* Elements of int64_t in a block; 0 in each third one where they are unequal. */
static int block_count(int count, bool unequal, int rank)
{
    return !unequal ? count : rank % 3 == 2 ? 0 : count + rank;
}

static int sum_of_counts(int count, bool unequal, int before)
{
    int sum = 0;

    for (int rank = 0; rank < before; rank++) {
        sum += block_count(count, unequal, rank);
    }
    return sum;
}

/* What a rank contributes to an element. */
static int64_t contribution(int rank, int block, int index)
{
    return (int64_t) mix((uint32_t) rank, (uint32_t) block, (uint32_t) index);
}

static void arrays(int count, bool unequal, int *counts, int *displs)
{
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = block_count(count, unequal, rank);
        displs[rank] = sum_of_counts(count, unequal, rank);
    }
}

typedef struct job {
    int form, count;
    bool unequal, gather;
    place_t send_place, recv_place;
    int seen; /* elements that callbacks have seen */
    MPI_Comm comm;
    buffer_t send, recv;
    int counts[64], displs[64];
    MPI_Request request;
} job_t;

static int own_count(const job_t *job)
{
    return job->counts[world_rank];
}

static int all_count(const job_t *job)
{
    return sum_of_counts(job->count, job->unequal, world_size);
}

/* ---------------------------------------------------------------- what is sent */

static void make_gather(job_t *job)
{
    size_t bytes = (size_t) all_count(job) * sizeof(int64_t);
    int64_t *all = get_memory(bytes + 1), *own = all + job->displs[world_rank];

    memset(all, 0xff, bytes);
    for (int i = 0; i < own_count(job); i++) {
        own[i] = contribution(world_rank, world_rank, i);
    }
    job->recv = buffer_make(job->recv_place, bytes);
    if (job->form == IN_PLACE) {
        buffer_write(&job->recv, all);
    } else {
        job->send = buffer_make(job->send_place, (size_t) own_count(job) * sizeof(int64_t));
        buffer_write(&job->send, own);
    }
    free(all);
}

static void make_scatter(job_t *job)
{
    size_t bytes = (size_t) all_count(job) * sizeof(int64_t);
    int64_t *all = get_memory(bytes + 1);

    for (int rank = 0; rank < world_size; rank++) {
        for (int i = 0; i < job->counts[rank]; i++) {
            all[job->displs[rank] + i] = contribution(world_rank, rank, i);
        }
    }
    if (job->form == IN_PLACE) {
        job->recv = buffer_make(job->recv_place, bytes);
        buffer_write(&job->recv, all);
    } else {
        job->recv = buffer_make(job->recv_place, (size_t) own_count(job) * sizeof(int64_t));
        job->send = buffer_make(job->send_place, bytes);
        buffer_write(&job->send, all);
    }
    free(all);
}

/* ------------------------------------------------------------------- what is got */

static void check_gather(const job_t *job)
{
    int64_t *all = get_memory(job->recv.bytes + 1);

    buffer_read(&job->recv, all);
    for (int rank = 0; rank < world_size; rank++) {
        for (int i = 0; i < job->counts[rank]; i++) {
            if (!check(all[job->displs[rank] + i] == contribution(rank, rank, i),
                       "%s of %d, %d to %d: element %d of block %d", form_names[job->form],
                       job->count, job->send_place, job->recv_place, i, rank)) {
                break;
            }
        }
    }
    if (job->form == COMPUTE) {
        check(job->seen == all_count(job), "callbacks saw %d elements", job->seen);
    }
    free(all);
}

static void check_scatter(const job_t *job)
{
    int64_t *own = get_memory(job->recv.bytes + 1);

    buffer_read(&job->recv, own);
    for (int i = 0; i < own_count(job); i++) {
        int64_t sum = 0;

        for (int rank = 0; rank < world_size; rank++) {
            sum += contribution(rank, world_rank, i);
        }
        if (!check(own[i] == sum, "%s of %d, %d to %d: sum %d", form_names[job->form], job->count,
                   job->send_place, job->recv_place, i)) {
            break;
        }
    }
    free(own);
}

/* ---------------------------------------------------------------------- callbacks */

static int consume(const MPIX_Flash_block *block, void *arg)
{
    job_t *job = arg;
    bool own = block->rank == world_rank;
    bool in_device = (own && block->data != (char *) job->recv.data +
                                                (size_t) (job->displs[world_rank] + block->offset) *
                                                    sizeof(int64_t)
                          ? job->send_place
                          : job->recv_place) == IN_DEVICE;
    int64_t *data = get_memory((size_t) block->count * sizeof(*data) + 1);

    if (in_device) {
        device_fetch(data, block->data, (size_t) block->count * sizeof(*data));
    } else {
        memcpy(data, block->data, (size_t) block->count * sizeof(*data));
    }
    for (int i = 0; i < block->count; i++) {
        check(data[i] == contribution(block->rank, block->rank, (int) block->offset + i),
              "callback for block %d: element %d", block->rank, i);
    }
    job->seen += (int) block->count;
    free(data);
    return MPI_SUCCESS;
}

/* A producer writes to memory of the host, wherever the result goes. */
static int produce(const MPIX_Flash_block *block, void *arg)
{
    int64_t *data = block->data;

    (void) arg;
    for (int i = 0; i < block->count; i++) {
        data[i] = contribution(world_rank, block->rank, (int) block->offset + i);
    }
    return MPI_SUCCESS;
}

/* ------------------------------------------------------------------------- calls */

static int start_gather(job_t *job)
{
    const void *send = job->form == IN_PLACE ? MPI_IN_PLACE : job->send.data;
    int own = own_count(job);

    if (job->form == COMPUTE) {
        return MPIX_Iallgatherv_compute(send, own, MPI_INT64_T, job->recv.data, job->counts,
                                        job->displs, MPI_INT64_T, consume, job, NULL, job->comm,
                                        &job->request);
    }
    if (job->form == PERSISTENT) {
        int error =
            MPIX_Allgatherv_init(send, own, MPI_INT64_T, job->recv.data, job->counts, job->displs,
                                 MPI_INT64_T, job->comm, MPI_INFO_NULL, &job->request);

        return error == MPI_SUCCESS ? MPI_Start(&job->request) : error;
    }
    if (job->unequal) {
        return MPI_Iallgatherv(send, own, MPI_INT64_T, job->recv.data, job->counts, job->displs,
                               MPI_INT64_T, job->comm, &job->request);
    }
    return MPI_Iallgather(send, own, MPI_INT64_T, job->recv.data, own, MPI_INT64_T, job->comm,
                          &job->request);
}

static int start_scatter(job_t *job)
{
    const void *send = job->form == IN_PLACE ? MPI_IN_PLACE : job->send.data;

    if (job->form == COMPUTE) {
        return MPIX_Ireduce_scatter_compute(produce, job, NULL, job->recv.data, job->counts,
                                            MPI_INT64_T, MPI_SUM, job->comm, &job->request);
    }
    if (job->form == PERSISTENT) {
        int error = MPIX_Reduce_scatter_init(send, job->recv.data, job->counts, MPI_INT64_T,
                                             MPI_SUM, job->comm, MPI_INFO_NULL, &job->request);

        return error == MPI_SUCCESS ? MPI_Start(&job->request) : error;
    }
    if (job->unequal) {
        return MPI_Ireduce_scatter(send, job->recv.data, job->counts, MPI_INT64_T, MPI_SUM,
                                   job->comm, &job->request);
    }
    return MPI_Ireduce_scatter_block(send, job->recv.data, own_count(job), MPI_INT64_T, MPI_SUM,
                                     job->comm, &job->request);
}

static void job_make(job_t *job)
{
    arrays(job->count, job->unequal, job->counts, job->displs);
    job->request = MPI_REQUEST_NULL;
    job->seen = 0;
    if (job->gather) {
        make_gather(job);
    } else {
        make_scatter(job);
    }
}

static int job_begin(job_t *job)
{
    return job->gather ? start_gather(job) : start_scatter(job);
}

static int job_start(job_t *job)
{
    job_make(job);
    return job_begin(job);
}

static void job_end(job_t *job)
{
    if (job->form == PERSISTENT && job->request != MPI_REQUEST_NULL) {
        MPI_Request_free(&job->request);
    }
    check(job->form == IN_PLACE || buffer_free(&job->send), "wrote around the send buffer");
    check(buffer_free(&job->recv), "wrote around the receive buffer");
}

static void job_check(job_t *job)
{
    if (job->gather) {
        check_gather(job);
    } else {
        check_scatter(job);
    }
}

static void nothing_left(void)
{
    check(device_streams() == 0, "%d streams are left", device_streams());
    check(device_pushed() == 0, "%d contexts are left to this thread", device_pushed());
    /* One is the test's, and one is kept for pinned memory. */
    check(device_retained() <= 2, "%d contexts are retained", device_retained());
}

/* Each kind of memory to each, and on each rank another one. */
static void all_places(bool gather, int forms)
{
    static const int counts[] = {0, 1, 7, 1000, 70001};

    for (int form = 0; form < forms; form++) {
        for (size_t k = 0; k < 2 * LENGTH(counts); k++) {
            for (int turn = 0; turn < PLACES * PLACES; turn += form == PLAIN ? 1 : 3) {
                int where = turn + (turn % 2) * world_rank;
                job_t job = {.form = form,
                             .count = counts[k / 2],
                             .unequal = k % 2 == 1,
                             .gather = gather,
                             .send_place = (place_t) (where % PLACES),
                             .recv_place = (place_t) (where / PLACES % PLACES),
                             .comm = MPI_COMM_WORLD};

                job_start(&job);
                MPI_Wait(&job.request, MPI_STATUS_IGNORE);
                job_check(&job);
                job_end(&job);
            }
        }
    }
    nothing_left();
}

static void allgather(void)
{
    all_places(true, FORMS);
}

static void reduce_scatter(void)
{
    all_places(false, FORMS);
}

/* A type with padding, which is nobody's. */
static void reduce_pairs(void)
{
    enum { COUNT = 100 };
    typedef struct pair {
        double value;
        int where;
    } pair_t;
    pair_t *send = calloc((size_t) world_size * COUNT, sizeof(*send)), got[COUNT];
    buffer_t from = buffer_make(IN_DEVICE, (size_t) world_size * sizeof(got));
    buffer_t to = buffer_make(IN_DEVICE, sizeof(got));
    MPI_Request request;

    for (int i = 0; i < world_size * COUNT; i++) {
        send[i] = (pair_t){.value = (world_rank + i) % world_size, .where = world_rank};
    }
    buffer_write(&from, send);
    MPI_Ireduce_scatter_block(from.data, to.data, COUNT, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD,
                              &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    buffer_read(&to, got);
    for (int i = 0; i < COUNT; i++) {
        int largest = world_size - 1 - (world_rank * COUNT + i) % world_size;

        check(got[i].value == world_size - 1 && got[i].where == largest, "pair %d: %g, %d", i,
              got[i].value, got[i].where);
    }
    check(buffer_free(&from) && buffer_free(&to), "wrote around a buffer of pairs");
    free(send);
}

/* A send buffer with gaps is copied as it is. */
static void send_gaps(void)
{
    enum { COUNT = 50 };
    int64_t content[2 * COUNT], *got = get_memory((size_t) world_size * COUNT * sizeof(*got));
    buffer_t from = buffer_make(IN_DEVICE, sizeof(content));
    MPI_Datatype strided;
    MPI_Request request;

    for (int i = 0; i < 2 * COUNT; i++) {
        content[i] = contribution(world_rank, 0, i);
    }
    buffer_write(&from, content);
    MPI_Type_vector(COUNT, 1, 2, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    MPI_Iallgather((int64_t *) from.data + 1, 1, strided, got, COUNT, MPI_INT64_T, MPI_COMM_WORLD,
                   &request);
    MPI_Type_free(&strided);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < world_size * COUNT; i++) {
        check(got[i] == contribution(i / COUNT, 0, 2 * (i % COUNT) + 1), "element %d", i);
    }
    check(buffer_free(&from), "wrote around a send buffer with gaps");
    free(got);
}

/* Likewise of calls that take no ring, but the extension's. */
static void mirrored(void)
{
    all_places(true, PERSISTENT);
    all_places(false, PERSISTENT);
    reduce_pairs();
    send_gaps();
    nothing_left();
}

/* Of both kinds, completed in any order. */
static void many(void)
{
    enum { MANY = 12 };
    static job_t jobs[MANY];
    MPI_Request requests[MANY];

    for (int k = 0; k < MANY; k++) {
        jobs[k] = (job_t){.form = k % COMPUTE,
                          .count = 1000 * k,
                          .gather = k % 3 != 0,
                          .send_place = k % 4 != 0 ? IN_DEVICE : IN_HOST,
                          .recv_place = k % 5 != 0 ? IN_DEVICE : IN_PINNED,
                          .comm = MPI_COMM_WORLD};
        job_start(&jobs[k]);
        requests[k] = jobs[k].request;
    }
    for (int left = MANY; left > 0; left--) {
        int k;

        MPI_Waitany(MANY, requests, &k, MPI_STATUS_IGNORE);
        job_check(&jobs[k]);
    }
    for (int k = 0; k < MANY; k++) {
        job_end(&jobs[k]);
    }
    nothing_left();
}

static void user_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const int64_t *from = in;
    int64_t *to = inout;

    (void) type;
    for (int i = 0; i < *count; i++) {
        to[i] += from[i];
    }
}

/* An operation of the user's runs in the host's memory. */
static void users_operation(void)
{
    job_t job = {.count = 50000, .send_place = IN_DEVICE, .recv_place = IN_DEVICE};
    MPI_Op op;

    MPI_Op_create(user_sum, 1, &op);
    arrays(job.count, false, job.counts, job.displs);
    make_scatter(&job);
    MPI_Ireduce_scatter_block(job.send.data, job.recv.data, job.count, MPI_INT64_T, op,
                              MPI_COMM_WORLD, &job.request);
    MPI_Op_free(&op);
    MPI_Wait(&job.request, MPI_STATUS_IGNORE);
    check_scatter(&job);
    job_end(&job);
    nothing_left();
}

/* -------------------------------------------------------------------- what is refused */

static int look(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

/* Rank 0 sends from a device's memory what its callback is to find with gaps. */
static void gaps_of_a_consumer(MPI_Comm comm, MPI_Datatype strided)
{
    buffer_t send = buffer_make(world_rank == 0 ? IN_DEVICE : IN_HOST, 100 * sizeof(int64_t));
    int64_t *recv = get_memory((size_t) world_size * 200 * sizeof(*recv));
    MPI_Request request;

    MPIX_Iallgather_compute(send.data, 100, MPI_INT64_T, recv, 1, strided, look, NULL, NULL, comm,
                            &request);
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER, "gaps for a consumer");
    next_works(comm, "after gaps for a consumer");
    check(buffer_free(&send), "wrote around the send buffer");
    free(recv);
}

/* Rank 0's buffer, in a device's memory, is described by a type with gaps. */
static void gaps(void)
{
    MPI_Comm comm = make_counted_comm();
    place_t place = world_rank == 0 ? IN_DEVICE : IN_HOST;
    buffer_t memory = buffer_make(place, (size_t) world_size * 200 * sizeof(int64_t));
    MPI_Datatype strided;
    MPI_Request request;

    MPI_Type_vector(100, 1, 2, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    for (int in_place = 0; in_place <= 1; in_place++) {
        int64_t send[200] = {0};

        MPI_Iallgather(in_place ? MPI_IN_PLACE : send, 1, strided, memory.data, 1, strided, comm,
                       &request);
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                    world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER, "gaps in a device's memory");
    }
    next_works(comm, "after gaps in a device's memory");
    gaps_of_a_consumer(comm, strided);
    check(buffer_free(&memory), "wrote around the buffer");
    MPI_Type_free(&strided);
    MPI_Comm_free(&comm);
}

/* To be run where calls are too small for a ring: persistent requests are another component's. */
static void passed_on(void)
{
    MPI_Comm comm = make_counted_comm();

    for (int k = 0; k < 4; k++) {
        job_t job = {.form = PERSISTENT,
                     .count = k / 2 == 0 ? 10 : 0,
                     .gather = k % 2 == 0,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .comm = comm};
        int error = job_start(&job);

        if (job.count > 0) {
            check_class(error, MPI_ERR_BUFFER, "a persistent request that is passed on");
            job.request = MPI_REQUEST_NULL;
        } else { /* nothing would touch it */
            check_class(error, MPI_SUCCESS, "an empty persistent request");
            MPI_Wait(&job.request, MPI_STATUS_IGNORE);
        }
        job_end(&job);
    }
    MPI_Comm_free(&comm);
}

/* FLASH_TEST_FAIL="NAME N": which call of the driver's fails. */
static bool read_failure(char name[64], unsigned long *nth)
{
    const char *wanted = getenv("FLASH_TEST_FAIL");

    return check(wanted != NULL && sscanf(wanted, "%63s %lu", name, nth) == 2, "FLASH_TEST_FAIL");
}

/* Where no ring tells the others of it, all ranks' drivers fail. */
static void mirror_fails(void)
{
    MPI_Comm comm = make_counted_comm();
    char name[64];
    unsigned long nth;
    int failed = 0;

    for (int k = 0; k < 4 && read_failure(name, &nth); k++) {
        job_t job = {.form = k / 2 == 0 ? PLAIN : IN_PLACE,
                     .count = 1000,
                     .gather = k % 2 == 0,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .comm = comm};
        int error;

        job_make(&job);
        device_fail(name, nth);
        error = job_begin(&job);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&job.request, MPI_STATUS_IGNORE);
        }
        device_fail(NULL, 0);
        if (error == MPI_SUCCESS) { /* it has no so many calls */
            job_check(&job);
        } else {
            check_class(error, MPI_ERR_OTHER, name);
            failed++;
        }
        job_end(&job);
    }
    check(failed > 0, "%s %lu: nothing failed", name, nth);
    nothing_left();
    next_works(comm, "after mirrors that failed");
    MPI_Comm_free(&comm);
}

/* Rank 0's driver fails as the environment says: its operation, and no other rank's, is to blame.
 */
static void driver_fails(void)
{
    MPI_Comm comm = make_counted_comm();
    char name[64];
    unsigned long nth;
    int failed = 0;

    if (!read_failure(name, &nth)) {
        return;
    }

    for (int k = 0; k < 2 * FORMS; k++) {
        job_t job = {.form = k / 2,
                     .count = 40000,
                     .gather = k % 2 == 0,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .comm = comm};
        int error, class;

        if (world_rank == 0) {
            device_fail(name, nth);
        }
        error = job_start(&job);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&job.request, MPI_STATUS_IGNORE);
        }
        if (world_rank == 0) {
            device_fail(NULL, 0);
        }
        MPI_Error_class(error, &class);
        failed += class != MPI_SUCCESS;
        if (class == MPI_SUCCESS) {
            job_check(&job);
        } else {
            check(class == MPI_ERR_OTHER || (world_rank == 0 && class == MPI_ERR_NO_MEM),
                  "%s: class %d", name, class);
        }
        if (class != MPI_SUCCESS && job.form == PERSISTENT) {
            job.request = MPI_REQUEST_NULL; /* Open MPI frees one that failed */
        }
        job_end(&job);
        next_works(comm, "after the driver failed");
    }
    check(world_rank != 0 || failed > 0, "%s: nothing failed", name);
    nothing_left();
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const test_case_t cases[] = {{"allgather", allgather},
                                        {"reduce_scatter", reduce_scatter},
                                        {"many", many},
                                        {"users_operation", users_operation},
                                        {"gaps", gaps},
                                        {"mirrored", mirrored},
                                        {"passed_on", passed_on},
                                        {"mirror_fails", mirror_fails},
                                        {"driver_fails", driver_fails}};
    int status;

    device_open();
    status = run_cases(argc, argv, MPI_THREAD_SINGLE, cases, LENGTH(cases));
    if (device_pinned() != 0) {
        fprintf(stderr, "%d pieces of pinned memory are left\n", device_pinned());
        status = EXIT_FAILURE;
    }
    return status;
}
