/*
 * test_counters.c: flash's performance variables, as a tool reads them (MPI 3.1, section 14.3).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <time.h>

#include "mpitest.h"

/* More than the default of coll_flash_min_bytes, and less. */
enum { LARGE = 2 << 20, SMALL = 16 };

static MPI_T_pvar_session session;

static int find(const char *wanted, int *class, MPI_Datatype *type)
{
    int count = 0;

    MPI_T_pvar_get_num(&count);
    for (int index = 0; index < count; index++) {
        char name[128];
        int length = sizeof(name), none = 0, level, bind, readonly, continuous, atomic;
        MPI_T_enum values;

        if (MPI_T_pvar_get_info(index, name, &length, &level, class, type, &values, NULL, &none,
                                &bind, &readonly, &continuous, &atomic) == MPI_SUCCESS &&
            strcmp(name, wanted) == 0) {
            check(readonly && continuous, "%s: read-only %d, continuous %d", name, readonly,
                  continuous);
            return index;
        }
    }
    check(false, "no variable %s", wanted);
    return -1;
}

static MPI_T_pvar_handle handle_of(const char *name, int class_wanted, MPI_Datatype type_wanted)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    MPI_Datatype type;
    int class, values, index = find(name, &class, &type);

    if (index >= 0) {
        check(class == class_wanted && type == type_wanted, "%s: class %d", name, class);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &values);
        check(values == 1, "%s: %d values", name, values);
    }
    return handle;
}

static unsigned long long count_of(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;

    check(handle != MPI_T_PVAR_HANDLE_NULL &&
              MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS,
          "MPI_T_pvar_read");
    return value;
}

/* Leaves the moving of data to the progress thread for a moment. */
static void gather(int bytes)
{
    char *recv = get_memory((size_t) bytes * (size_t) world_size);
    char *send = get_memory((size_t) bytes);
    struct timespec pause = {.tv_nsec = 5000000};
    MPI_Request request;

    memset(send, world_rank, (size_t) bytes);
    MPI_Iallgather(send, bytes, MPI_CHAR, recv, bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
    nanosleep(&pause, NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(send);
    free(recv);
}

static void count_calls(void)
{
    MPI_T_pvar_handle rings =
        handle_of("coll_flash_rings", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    MPI_T_pvar_handle passed =
        handle_of("coll_flash_passed_on", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    unsigned long long served = world_size > 1;

    for (int i = 0; i < 3; i++) {
        gather(LARGE);
    }
    check(count_of(rings) == 3 * served, "%llu rings", count_of(rings));
    check(count_of(passed) == 0, "%llu calls passed on", count_of(passed));
    gather(SMALL);
    check(count_of(rings) == 3 * served, "%llu rings after a small call", count_of(rings));
    check(count_of(passed) == served, "%llu small calls passed on", count_of(passed));
    MPI_T_pvar_handle_free(session, &rings);
    MPI_T_pvar_handle_free(session, &passed);
}

static void watch_thread(void)
{
    MPI_T_pvar_handle wakeups =
        handle_of("coll_flash_wakeups", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    MPI_T_pvar_handle time =
        handle_of("coll_flash_thread_seconds", MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE);
    const char *off = getenv("OMPI_MCA_coll_flash_progress");
    bool expected = world_size > 1 && (off == NULL || strcmp(off, "off") != 0);
    double seconds = -1;

    for (int i = 0; i < 3; i++) {
        gather(LARGE);
    }
    check(time != MPI_T_PVAR_HANDLE_NULL && MPI_T_pvar_read(session, time, &seconds) == MPI_SUCCESS,
          "MPI_T_pvar_read");
    check((count_of(wakeups) > 0) == expected, "%llu wake-ups", count_of(wakeups));
    check((seconds > 0) == expected && seconds >= 0, "%g seconds", seconds);
    MPI_T_pvar_handle_free(session, &wakeups);
    MPI_T_pvar_handle_free(session, &time);
}

/* Within MPI: Open MPI 4.1 does not survive an MPI_T_finalize() that comes after MPI_Finalize(). */
static void with_tools(void (*run)(void))
{
    int level;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    run();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

static void calls(void)
{
    with_tools(count_calls);
}

static void thread(void)
{
    with_tools(watch_thread);
}

int main(int argc, char **argv)
{
    static const test_case_t cases[] = {{"calls", calls}, {"thread", thread}};

    return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, LENGTH(cases));
}
