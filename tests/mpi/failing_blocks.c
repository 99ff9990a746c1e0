/*
 * failing_blocks.c: cases of test_faults: blocks that a rank cannot read where they are, and those
 * that it has no memory for.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "failing.h"
#include "faults.h"

/* A plain allgather of so many elements: its error, with the result looked at. */
static int gather_of(MPI_Comm comm, int count, int salt)
{
    int *mine = get_memory(sizeof(int) * (size_t) count);
    int *all = get_memory(sizeof(int) * (size_t) (count * world_size)), error;
    MPI_Request request;

    for (int k = 0; k < count; k++) {
        mine[k] = world_rank * 1000 + k + salt;
    }
    error = MPI_Iallgather(mine, count, MPI_INT, all, count, MPI_INT, comm, &request);
    error = error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
    for (int k = 0; k < count * world_size && error == MPI_SUCCESS; k++) {
        check(all[k] == k / count * 1000 + k % count + salt, "element %d is %d", k, all[k]);
    }
    free(mine);
    free(all);
    return error;
}

static int gather(MPI_Comm comm, int salt)
{
    return gather_of(comm, COUNT, salt);
}

/* Of blocks that two ranks read where they are, if they may. */
void failing_gathers(void)
{
    check_class(gather_of(MPI_COMM_WORLD, 64 << 10, 1), MPI_SUCCESS, "an allgather");
}

/* One rank cannot read another's block where it is, which is shown to it: at each read in turn. */
void failing_unreadable_at_first(void)
{
    MPI_Comm comm = failing_make_comm(false);

    for (int nth = 1; nth < 2 * world_size; nth++) {
        if (world_rank == nth % world_size) {
            fault_arm("process_vm_readv", nth / 2 + 1, 0);
        }
        check_class(gather(comm, nth), MPI_SUCCESS, "the block is shown");
        check(nth / 2 + 1 >= world_size || world_rank != nth % world_size ||
                  fault_disarm("process_vm_readv"),
              "nothing was read");
        fault_disarm("process_vm_readv");
    }
    check(handler_calls == 0, "an error is told");
    MPI_Comm_free(&comm);
}

/*
 * Some ranks cannot read at all: each in turn, and all. Blocks of one piece, of several, and not of
 * whole ones.
 */
void failing_unreadable(void)
{
    static const int counts[] = {1 << 13, 1 << 14, (1 << 14) + 1, 300001};
    MPI_Comm comm = failing_make_comm(false);

    for (int who = 0; who <= world_size; who++) {
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
            bool cannot = who == world_rank || who == world_size;

            if (cannot) {
                fault_arm_lasting("process_vm_readv", 1, 0);
            }
            check_class(gather_of(comm, counts[k], who), MPI_SUCCESS, "blocks are shown");
            check(!cannot || fault_disarm("process_vm_readv"), "nothing was read");
        }
    }
    check(handler_calls == 0, "an error is told");
    check_class(gather(comm, 2), MPI_SUCCESS, "the next operation");
    MPI_Comm_free(&comm);
}

/* A plain reduce-scatter likewise. */
static int reduce_of(MPI_Comm comm, int count, int salt)
{
    int *mine = get_memory(sizeof(int) * (size_t) (count * world_size));
    int *sum = get_memory(sizeof(int) * (size_t) count), error;
    MPI_Request request;

    for (int k = 0; k < count * world_size; k++) {
        mine[k] = world_rank * 1000 + k + salt;
    }
    error = MPI_Ireduce_scatter_block(mine, sum, count, MPI_INT, MPI_SUM, comm, &request);
    error = error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
    for (int k = 0; k < count && error == MPI_SUCCESS; k++) {
        int each = world_rank * count + k + salt;

        check(sum[k] == world_size * (world_size - 1) / 2 * 1000 + world_size * each,
              "element %d is %d", k, sum[k]);
    }
    free(mine);
    free(sum);
    return error;
}

/*
 * One rank has no memory for an operation's blocks: it says so, and all others come to their ends.
 * They are `times` as long as those of the operation before, whose memory is too little for them.
 */
static void no_memory_for_blocks(int (*call)(MPI_Comm comm, int count, int salt), int times)
{
    MPI_Comm comm = failing_make_comm(false);
    int error;

    check_class(call(comm, COUNT, 1), MPI_SUCCESS, "an operation before");
    if (world_rank == 1) {
        fault_arm("malloc", 1, 0);
    }
    error = call(comm, times * COUNT, 2);
    check(world_rank != 1 || fault_disarm("malloc"), "nothing was allocated");
    check_class(error, world_rank == 1 ? MPI_ERR_NO_MEM : MPI_ERR_OTHER, "a rank without memory");
    check_class(call(comm, COUNT, 3), MPI_SUCCESS, "the next operation");
    MPI_Comm_free(&comm);
}

void failing_no_memory_for_recdbl(void)
{
    no_memory_for_blocks(gather_of, 10);
    no_memory_for_blocks(reduce_of, 1000);
}
