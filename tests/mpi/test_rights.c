/*
 * test_rights.c: the right to read another rank's memory is lost after MPI_Init: before an
 * operation, in the middle of one, on one rank or on all. Each operation brings what it would have
 * brought.
 *
 * Root may read any process: the ranks give that capability up.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT = 1 << 12, LONG = 700001 };

/*
 * Only what the process makes use of: it keeps the permission, which who reads it must have, too.
 */
static void give_capability_up(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, sets) == 0) {
        sets[CAP_SYS_PTRACE / 32].effective &= ~(1U << CAP_SYS_PTRACE % 32);
        check(syscall(SYS_capset, &header, sets) == 0, "a capability stays");
    }
}

static void set_readable(bool readable)
{
    check(prctl(PR_SET_DUMPABLE, readable ? 1 : 0) == 0, "prctl");
}

typedef struct gather {
    int count, salt;
    int *mine, *all;
    MPI_Request request;
} gather_t;

static void begin(gather_t *gather, int count, int salt)
{
    gather->count = count;
    gather->salt = salt;
    gather->mine = get_memory((size_t) count * sizeof(int));
    gather->all = get_memory((size_t) count * (size_t) world_size * sizeof(int));
    for (int k = 0; k < count; k++) {
        gather->mine[k] = world_rank * 1000003 + salt * 101 + k;
    }
    check_class(MPI_Iallgather(gather->mine, count, MPI_INT, gather->all, count, MPI_INT,
                               MPI_COMM_WORLD, &gather->request),
                MPI_SUCCESS, "an allgather begins");
}

static void end(gather_t *gather)
{
    int wrong = 0;

    check_class(MPI_Wait(&gather->request, MPI_STATUS_IGNORE), MPI_SUCCESS, "an allgather ends");
    for (int rank = 0; rank < world_size; rank++) {
        for (int k = 0; k < gather->count; k++) {
            wrong += gather->all[(size_t) rank * (size_t) gather->count + (size_t) k] !=
                     rank * 1000003 + gather->salt * 101 + k;
        }
    }
    check(wrong == 0, "%d elements are wrong", wrong);
    free(gather->mine);
    free(gather->all);
}

static void exchange(void)
{
    gather_t gather;

    begin(&gather, SHORT, 1);
    end(&gather);
    begin(&gather, LONG, 2);
    end(&gather);
}

/* Of a program that its user may execute and not read. */
static void unreadable_program(void)
{
    check(prctl(PR_GET_DUMPABLE) != 1, "the process is not protected");
    exchange();
}

/*
 * The operation begins, and may have read some, when the right is lost; the others may not have
 * begun.
 */
static void lose_in_the_middle(bool loses)
{
    gather_t gather[2];

    for (int k = 0; k < 2; k++) {
        begin(&gather[k], LONG, k);
        MPI_Test(&gather[k].request, &(int){0}, MPI_STATUS_IGNORE);
    }
    set_readable(!loses);
    for (int k = 0; k < 2; k++) {
        end(&gather[k]);
    }
    set_readable(true);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void each(void)
{
    give_capability_up();
    for (int who = 0; who < world_size; who++) {
        set_readable(who != world_rank);
        exchange();
        set_readable(true);
        MPI_Barrier(MPI_COMM_WORLD);
        exchange();
        lose_in_the_middle(who == world_rank);
    }
}

static void all(void)
{
    give_capability_up();
    set_readable(false);
    exchange();
    set_readable(true);
    MPI_Barrier(MPI_COMM_WORLD);
    lose_in_the_middle(true);
    exchange();
}

/* As a container's runtime, or the program itself, may have it: the call fails, for good. */
static void forbid_reading(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = (unsigned short) LENGTH(rules), .filter = rules};

    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0,
          "no filter");
}

/* Of a job of its own. */
static void filter(void)
{
    for (int who = 0; who < world_size; who++) {
        if (who == world_rank) {
            forbid_reading();
        }
        exchange();
    }
}

TEST_PROGRAM(test_rights, MPI_THREAD_SINGLE, {"unreadable_program", unreadable_program},
             {"each", each}, {"all", all}, {"filter", filter});
