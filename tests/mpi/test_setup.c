/*
 * test_setup.c: communicators that are set up by their first calls: what MPI_Init leaves undone, calls
 * that do not wait for a rank that is late, and calls of all kinds in between, which go by other ways.
 *
 * A program that knows nothing of flash.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "setup_beside.h"
#include "setup_round.h"

enum { THREADS = 3 };

/* A program that is linked with flash is in the same job: test_extension's `starts_alone`. */
static void bystander(void)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, world_rank, &comm);
}

static bool ucx_is_loaded(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        found |= strstr(line, "/flash_ucx.so") != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

/* From now on an array of the program's. */
static char **own_environment(void)
{
    static char *own[4096];

    for (size_t k = 0; k + 1 < LENGTH(own) && environ[k] != NULL; k++) {
        own[k] = environ[k];
    }
    environ = own;
    return own;
}

/* The first case: nothing is loaded until a call goes by messages of flash's. */
static void opens(void)
{
    int value = world_rank, sum = -1;
    char **own = own_environment();

    check(!ucx_is_loaded(), "MPI_Init has loaded UCX");
    MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    check(!ucx_is_loaded(), "calls that flash does not serve have loaded UCX");
    setup_run_round(MPI_COMM_WORLD, -1, 1);
    check(world_size == 1 || ucx_is_loaded(), "UCX is not loaded");
    check(world_size == 1 || setup_beside_handles(), "a thread's signal handler is lost");
    if (world_rank == 1) {
        check(getenv(SETUP_BESIDE) != NULL, "a variable that a thread has set is lost");
    } else {
        check(environ == own, "the program's environment is another one");
    }
    check(getenv("UCX_MEM_EVENTS") == NULL, "UCX_MEM_EVENTS is set");
    check(getenv("UCX_HANDLE_ERRORS") == NULL, "UCX_HANDLE_ERRORS is set");
}

static void late(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    setup_run_round(comm, world_size - 1, 2);
    setup_run_round(comm, 0, 3);
    setup_run_round(comm, -1, 4);
    MPI_Comm_free(&comm);
}

/* The last rank comes after three seconds. */
static void slow(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (world_rank == world_size - 1) {
        sleep(3);
    }
    setup_run_round(comm, -1, 10);
    MPI_Comm_free(&comm);
}

/* Two communicators at a time, of some ranks each. */
static void two_communicators(bool free_early)
{
    MPI_Comm half, copy;
    setup_round_t first, second;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
    MPI_Comm_dup(half, &copy);
    setup_open_round(&first, half, 5);
    setup_open_round(&second, copy, 6);
    /* MPI has ranks call collectives of two communicators in any order, if they do not block. */
    setup_call_all(world_rank / 2 % 2 == 0 ? &first : &second);
    setup_call_all(world_rank / 2 % 2 == 0 ? &second : &first);
    if (free_early) {
        /* libnbc's requests do not keep the communicator; flash's do. */
        MPI_Waitall(4, first.requests, MPI_STATUSES_IGNORE);
        MPI_Waitall(4, second.requests, MPI_STATUSES_IGNORE);
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
    }
    setup_end_round(&second);
    setup_end_round(&first);
    if (!free_early) {
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
    }
}

/* Types and the communicator are freed while all calls that use them are held. */
static void freed_held(void)
{
    enum { PAIRS = 3000 };
    int counts[64], displs[64], first = 2 * PAIRS * world_rank, token = 0;
    int *all = setup_ints((size_t) 2 * PAIRS * world_size), *sums = setup_ints(PAIRS);
    int *addends = setup_ints((size_t) PAIRS * world_size);
    MPI_Request requests[2];
    MPI_Datatype pair;
    MPI_Comm comm;
    bool good = true;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = PAIRS;
        displs[rank] = PAIRS * rank;
    }
    for (int k = 0; k < 2 * PAIRS; k++) {
        all[first + k] = 10 * world_rank + k;
    }
    for (int k = 0; k < PAIRS * world_size; k++) {
        addends[k] = k + world_rank;
    }
    if (world_rank == 0 && world_size > 1) { /* all others have freed theirs */
        MPI_Recv(&token, 1, MPI_INT, world_size - 1, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, displs, pair, comm,
                    &requests[0]);
    MPI_Ireduce_scatter(addends, sums, counts, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Type_free(&pair);
    MPI_Comm_free(&comm);
    if (world_rank > 0 && world_rank == world_size - 1) {
        MPI_Send(&token, 1, MPI_INT, 0, 12, MPI_COMM_WORLD);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 2 * PAIRS * world_size; k++) {
        good &= all[k] == 10 * (k / (2 * PAIRS)) + k % (2 * PAIRS);
    }
    check(good, "MPI_Iallgatherv of a type that was freed");
    for (int k = 0; k < PAIRS; k++) {
        good &=
            sums[k] == world_size * (PAIRS * world_rank + k) + world_size * (world_size - 1) / 2;
    }
    check(good, "MPI_Ireduce_scatter");
    free(all), free(sums), free(addends);
}

static void communicators(void)
{
    two_communicators(false);
}

static void freed(void)
{
    two_communicators(true);
}

/*
 * What Open MPI sends on the communicator while it makes another one is not taken for a set-up's
 * message: one rank makes its call before, the other one behind.
 */
static void beside_intercomm(void)
{
    unsigned char sent[4096], gathered[64 * 4096];
    MPI_Request request;
    MPI_Comm comm, inter;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank < 2 ? 0 : MPI_UNDEFINED, world_rank, &comm);
    if (comm == MPI_COMM_NULL) {
        return;
    }
    fill_pattern(sent, sizeof(sent), world_rank, 11);
    if (world_rank == 0) {
        MPI_Iallgather(sent, sizeof(sent), MPI_BYTE, gathered, sizeof(sent), MPI_BYTE, comm,
                       &request);
    }
    MPI_Intercomm_create(MPI_COMM_SELF, 0, comm, 1 - world_rank, 7, &inter);
    if (world_rank == 1) {
        MPI_Iallgather(sent, sizeof(sent), MPI_BYTE, gathered, sizeof(sent), MPI_BYTE, comm,
                       &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < 2; rank++) {
        check(is_pattern(gathered + rank * sizeof(sent), 0, sizeof(sent), rank, 11), "block %d",
              rank);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&comm);
}

/* These may wait for other ranks. */
static void waiting(void)
{
    size_t all = (size_t) world_size * SETUP_COUNT;
    int *gathered = setup_ints(all), *sent = setup_ints(SETUP_COUNT),
        *sums = setup_ints(SETUP_COUNT);
    MPI_Request request;
    MPI_Comm comm;
    bool good = true;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int k = 0; k < SETUP_COUNT; k++) {
        sent[k] = world_rank + k;
    }
    MPI_Allgather_init(sent, SETUP_COUNT, MPI_INT, gathered, SETUP_COUNT, MPI_INT, comm,
                       MPI_INFO_NULL, &request);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (size_t k = 0; k < all; k++) {
            good &= gathered[k] == (int) (k / SETUP_COUNT + k % SETUP_COUNT);
            gathered[k] = -1;
        }
    }
    MPI_Request_free(&request);
    check(good, "MPI_Allgather_init");
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(sent, sums, SETUP_COUNT, MPI_INT, MPI_SUM, comm);
    for (int k = 0; k < SETUP_COUNT; k++) {
        good &= sums[k] == world_size * (world_size - 1) / 2 + world_size * k;
    }
    check(good, "MPI_Allreduce");
    setup_run_round(comm, -1, 7);
    MPI_Comm_free(&comm);
    free(gathered);
    free(sent);
    free(sums);
}

/* The first case: the program has gone to a folder in which its relative paths lead nowhere. */
static void moved(void)
{
    char folder[4096];

    check(!ucx_is_loaded(), "MPI_Init has loaded UCX");
    check(getcwd(folder, sizeof(folder)) != NULL && chdir("/") == 0, "there is no folder");
    waiting();
    check(ucx_is_loaded(), "UCX is not loaded");
    check(chdir(folder) == 0, "the folder has gone");
}

/*
 * More calls at a time than the ring has operation ids. The two that would have the same one are
 * broadcasts, which the script has Open MPI send in segments: a rank waits for each before it asks for the
 * next.
 */
static void many(void)
{
    enum { IDS = 8192, LONG = 100000, SHORT = 8 };
    int *sent = setup_ints(SHORT), *sums = setup_ints((size_t) IDS * SHORT), *longs[2];
    MPI_Request *requests = get_memory((IDS + 1) * sizeof(MPI_Request));
    bool good = true;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int k = 0; k < SHORT; k++) {
        sent[k] = world_rank + k;
    }
    for (int which = 0; which < 2; which++) {
        longs[which] = setup_ints(LONG);
        for (int k = 0; k < LONG; k++) {
            longs[which][k] = world_rank == 0 ? k + which * LONG : -1;
        }
    }
    MPI_Ibcast(longs[0], LONG, MPI_INT, 0, comm, &requests[0]);
    for (int k = 1; k < IDS; k++) {
        MPI_Iallreduce(sent, sums + k * SHORT, SHORT, MPI_INT, MPI_SUM, comm, &requests[k]);
    }
    MPI_Ibcast(longs[1], LONG, MPI_INT, 0, comm, &requests[IDS]);
    MPI_Waitall(IDS + 1, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 2 * LONG; k++) {
        good &= longs[k / LONG][k % LONG] == k;
    }
    for (int k = SHORT; k < IDS * SHORT; k++) {
        good &= sums[k] == world_size * (world_size - 1) / 2 + world_size * (k % SHORT);
    }
    check(good, "%d calls at a time", IDS + 1);
    MPI_Comm_free(&comm);
    free(sent), free(sums), free(longs[0]), free(longs[1]), free(requests);
}

static void *in_thread(void *comm)
{
    setup_run_round(*(MPI_Comm *) comm, -1, 8);
    setup_run_round(*(MPI_Comm *) comm, -1, 9);
    return NULL;
}

static void threads(void)
{
    pthread_t running[THREADS];
    MPI_Comm comms[THREADS];
    int level;

    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        return;
    }
    for (int k = 0; k < THREADS; k++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_create(&running[k], NULL, in_thread, &comms[k]);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(running[k], NULL);
        MPI_Comm_free(&comms[k]);
    }
}

/* FLASH_TEST_SESSION in the environment: around MPI_Init and MPI_Finalize. Open MPI 4.1 has none. */
#if OMPI_MAJOR_VERSION >= 5
static MPI_Session session = MPI_SESSION_NULL;

static void open_session(void)
{
    if (getenv("FLASH_TEST_SESSION") != NULL) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    }
}

static bool close_session(void)
{
    return session == MPI_SESSION_NULL || MPI_Session_finalize(&session) == MPI_SUCCESS;
}
#else
#define open_session  NULL
#define close_session NULL
#endif

TEST_PROGRAM_WITH(test_setup, MPI_THREAD_SINGLE, open_session, close_session, {"opens", opens},
                  {"moved", moved}, {"late", late}, {"communicators", communicators},
                  {"freed", freed}, {"freed_held", freed_held},
                  {"beside_intercomm", beside_intercomm}, {"waiting", waiting},
                  {"threads", threads}, {"slow", slow}, {"bystander", bystander}, {"many", many});
TEST_MAIN(test_setup)
