/*
 * test_device.c: operations on buffers in the memory of devices, of the host, and of both.
 *
 * Each rank takes its buffers from where it likes, other ranks from elsewhere. Device memory is
 * read and written through the driver alone: whoever touches it otherwise dies.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device_ucx.h"

static void allgather(void)
{
    all_places(true, PLAIN, PERSISTENT);
}

static void reduce_scatter(void)
{
    all_places(false, PLAIN, PERSISTENT);
}

static void allreduce(void)
{
    all_places_everywhere(PLAIN, IN_PLACE);
    all_places_everywhere(PERSISTENT, PERSISTENT);
}

static void alltoall(void)
{
    all_places_exchanged(PLAIN, IN_PLACE);
    all_places_exchanged(PERSISTENT, PERSISTENT);
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
static void bounced(void)
{
    all_places(true, PLAIN, STREAM);
    all_places(false, PLAIN, STREAM);
    all_places_everywhere(PLAIN, IN_PLACE);
    all_places_exchanged(PLAIN, IN_PLACE);
    reduce_pairs();
    send_gaps();
    nothing_left();
}

/* Of both kinds, completed in any order. */
static void many(void)
{
    enum { MANY = 12 };
    static job_t jobs[MANY];

    for (int k = 0; k < MANY; k++) {
        jobs[k] = (job_t){.form = k % COMPUTE,
                          .count = 1000 * k,
                          .gather = k % 3 != 0,
                          .everywhere = k % 6 == 3,
                          .send_place = k % 4 != 0 ? IN_DEVICE : IN_HOST,
                          .recv_place = k % 5 != 0 ? IN_DEVICE : IN_PINNED,
                          .comm = MPI_COMM_WORLD};
    }
    jobs_run(jobs, MANY);
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
    static const form_t forms[] = {PLAIN, STREAM};

    for (size_t k = 0; k < LENGTH(forms); k++) {
        job_t job = {.form = forms[k],
                     .count = 50000,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .stream = stream_make(0),
                     .comm = MPI_COMM_WORLD};

        MPI_Op_create(user_sum, 1, &job.op);
        job_start(&job);
        MPI_Op_free(&job.op);
        MPI_Wait(&job.request, MPI_STATUS_IGNORE);
        job_check(&job);
        job_end(&job);
        stream_free(job.stream);
    }
    nothing_left();
}

/* Of one process, and of several at a time. */
static void two_devices(void)
{
    static const place_t pairs[][2] = {{IN_DEVICE, IN_OTHER},
                                       {IN_OTHER, IN_DEVICE},
                                       {IN_OTHER, IN_OTHER},
                                       {IN_HOST, IN_OTHER},
                                       {IN_OTHER, IN_HOST}};
    enum { MANY = 2 * 2 * LENGTH(pairs) };
    static job_t jobs[MANY];

    for (size_t k = 0; k < MANY; k++) {
        const place_t *pair = pairs[(k / 4 + (size_t) world_rank) % LENGTH(pairs)];

        jobs[k] = (job_t){.form = k % 2 == 0 ? PLAIN : COMPUTE,
                          .count = 20000 + 7 * (int) k,
                          .gather = k / 2 % 2 == 0,
                          .send_place = pair[0],
                          .recv_place = pair[1],
                          .comm = MPI_COMM_WORLD};
    }
    jobs_run(jobs, 8);
    jobs_run(jobs + 8, MANY - 8);
    nothing_left();
}

/*
 * Operations that end before the next one begins: after the first ones no stream or event is made,
 * and no pinned memory.
 */
static void steady(void)
{
    enum { ROUNDS = 6, FIRST = 3, KINDS = 8 };
    void *stream = stream_make(0);
    unsigned long made = 0;

    for (int round = 0; round < ROUNDS; round++) {
        made = round < FIRST ? device_made() : made;
        for (int k = 0; k < KINDS; k++) {
            job_t job = {.form = k / 2 == 0   ? PLAIN
                                 : k / 2 == 1 ? IN_PLACE
                                 : k / 2 == 2 ? COMPUTE
                                              : STREAM,
                         .count = 40000,
                         .gather = k % 2 == 0,
                         .send_place = IN_DEVICE,
                         .recv_place = IN_DEVICE,
                         .stream = stream,
                         .comm = MPI_COMM_WORLD};

            job_run(&job);
        }
    }
    /* More may be under way at a time than before. */
    check(device_made() - made < (ROUNDS - FIRST) * KINDS / 2,
          "%lu streams, events and pieces of pinned memory more", device_made() - made);
    stream_free(stream);
    nothing_left();
}

/* UCX moves devices' memory itself, where it can. */
static void direct(void)
{
    unsigned long before = device_ucx_carried();

    allgather();
    reduce_scatter();
    allreduce();
    alltoall();
    check(device_ucx_carried() > before || !device_ucx_is_for_cuda(),
          "UCX has carried nothing of a device's memory");
}

/* Whether this process may say where its memory is to be. */
static bool may_bind(void)
{
    enum { PAGE = 65536, BIND = 2 };
    unsigned long first_node = 1;
    void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool may = memory != MAP_FAILED &&
               syscall(SYS_mbind, memory, PAGE, BIND, &first_node, 8 * sizeof(first_node), 0) == 0;

    munmap(memory, PAGE);
    return may;
}

/* By the policy that the kernel lists for it: bound, or preferred, to that node. */
static bool some_memory_is(const char *where)
{
    FILE *maps = fopen("/proc/self/numa_maps", "r");
    char line[1024];
    bool found = maps == NULL; /* nobody knows */

    while (!found && fgets(line, sizeof(line), maps) != NULL) {
        found = strstr(line, where) != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

/* Of a machine with two NUMA nodes, the first of which has the device. */
static void pinned_near(void)
{
    job_t job = {.count = 50000,
                 .gather = true,
                 .send_place = IN_DEVICE,
                 .recv_place = IN_DEVICE,
                 .comm = MPI_COMM_WORLD};

    setenv("HWLOC_XMLFILE", getenv("FLASH_TEST_TOPOLOGY"), 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    job_run(&job);
    check(device_registered() > 0, "pinned memory is the driver's own");
    check(!may_bind() || some_memory_is(":0 "), "no memory is bound to the device's node");
    nothing_left();
}

/* ------------------------------------------------------------- little pinned memory */

enum { BOUND_SEGMENT = 4096, BOUND = 5 * BOUND_SEGMENT };

typedef enum { ALL_BOUNDED, SOME_BOUNDED, SOME_ON_DEVICE, MIXTURES } mixture_t;

/* Ranks of one communicator need not have the same pinned memory, nor memory of the same kind. */
static MPI_Comm dup_bounded(bool bounded)
{
    char segment[16], pinned[16];
    MPI_Comm comm;
    MPI_Info info;

    snprintf(segment, sizeof(segment), "%d", BOUND_SEGMENT);
    snprintf(pinned, sizeof(pinned), "%d", bounded ? BOUND : 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_flash_segment_bytes", segment);
    MPI_Info_set(info, "mpix_flash_pinned_bytes", pinned);
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    return comm;
}

static void run_bounded(const job_t *like, bool own_sum)
{
    job_t job = *like;

    if (own_sum) {
        MPI_Op_create(user_sum, 1, &job.op);
    }
    job_start(&job);
    if (own_sum) {
        MPI_Op_free(&job.op);
    }
    MPI_Wait(&job.request, MPI_STATUS_IGNORE);
    job_check(&job);
    job_end(&job);
}

/* Of all forms; and of the plain one, one of the buffers alone in the device's memory. */
static void run_all_bounded(MPI_Comm comm, bool on_device)
{
    void *stream = stream_make(0);

    for (int turn = 0; turn < 6 * FORMS; turn++) {
        form_t form = (form_t) (turn / 6);
        bool own_sum = turn % 6 % 2 == 0 && turn % 6 > 0 && form != PERSISTENT;
        job_t job = {.form = form,
                     .count = 20001,
                     .unequal = turn % 2 == 1,
                     .gather = turn % 6 < 2,
                     .everywhere = turn % 6 > 3 && form != COMPUTE && form != STREAM,
                     .send_place = on_device ? IN_DEVICE : IN_HOST,
                     .recv_place = on_device ? IN_DEVICE : IN_HOST,
                     .pieces = turn % 3,
                     .stream = stream,
                     .comm = comm};

        run_bounded(&job, own_sum);
        if (form == PLAIN) {
            job.send_place = IN_HOST;
            run_bounded(&job, own_sum);
            job.recv_place = IN_HOST;
            job.send_place = on_device ? IN_DEVICE : IN_HOST;
            run_bounded(&job, own_sum);
        }
    }
    stream_free(stream);
}

/* Blocks are much longer than what may be pinned. */
static void bounded(void)
{
    device_largest_pinned();
    for (mixture_t mixture = ALL_BOUNDED; mixture < MIXTURES; mixture++) {
        bool even = world_rank % 2 == 0;
        bool is_bounded = mixture == ALL_BOUNDED || even;
        MPI_Comm comm = dup_bounded(is_bounded);
        size_t most;

        run_all_bounded(comm, mixture != SOME_ON_DEVICE || even);
        MPI_Comm_free(&comm);
        most = device_largest_pinned();
        check(!is_bounded || most <= BOUND, "%zu bytes are pinned, where %d may be", most, BOUND);
        check(is_bounded || mixture == SOME_ON_DEVICE || !device_is_standin() || most > BOUND,
              "no more than %zu bytes are pinned without a bound", most);
    }
    nothing_left();
}

/* The device has no memory for sums that wait: the host adds, within the bound. */
static void without_store(void)
{
    MPI_Comm comm = dup_bounded(true);
    size_t most;
    job_t job = {.count = 20001, .send_place = IN_DEVICE, .recv_place = IN_DEVICE, .comm = comm};

    device_largest_pinned();
    device_fail("cuMemAlloc", 1);
    job_start(&job);
    device_fail(NULL, 0);
    MPI_Wait(&job.request, MPI_STATUS_IGNORE);
    job_check(&job);
    job_end(&job);
    most = device_largest_pinned();
    check(most <= BOUND, "%zu bytes are pinned, where %d may be", most, BOUND);
    MPI_Comm_free(&comm);
    nothing_left();
}

DEVICE_PROGRAM(test_device, {"allgather", allgather}, {"bounded", bounded},
               {"without_store", without_store}, {"reduce_scatter", reduce_scatter},
               {"allreduce", allreduce}, {"alltoall", alltoall}, {"many", many},
               {"users_operation", users_operation}, {"bounced", bounced},
               {"two_devices", two_devices}, {"steady", steady}, {"direct", direct},
               {"pinned_near", pinned_near});
