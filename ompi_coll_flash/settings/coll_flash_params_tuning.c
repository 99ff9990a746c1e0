/*
 * coll_flash_params_tuning.c: parameters of progress, of the ring, and of what is told.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_params_internal.h"

static mca_base_var_enum_value_t progress_values[] = {
    {FLASH_PROGRESS_AUTO, "auto"},
    {FLASH_PROGRESS_ON, "on"},
    {FLASH_PROGRESS_OFF, "off"},
    {0, NULL},
};

static mca_base_var_enum_value_t setup_values[] = {
    {FLASH_SETUP_AUTO, "auto"},
    {FLASH_SETUP_INIT, "init"},
    {FLASH_SETUP_CALL, "call"},
    {0, NULL},
};

static mca_base_var_enum_value_t order_values[] = {
    {FLASH_ORDER_MACHINE, "machine"},
    {FLASH_ORDER_RANK, "rank"},
    {0, NULL},
};

static void register_progress(void)
{
    mca_coll_flash_register_choice(
        "progress", progress_values, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.progress,
        "Whether a thread moves the data while the application computes. It sleeps "
        "until something arrives and takes no processor time with nothing in flight. "
        "on: start it with the first operation, and say so if it cannot be. auto: "
        "the same, but only coll_flash_verbose 1 says so. off: "
        "data moves only inside MPI calls, and, if UCX was built with threads, after each "
        "callback of coll_flash_callback_thread");
    mca_coll_flash_register_variable(
        "bind", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.bind,
        "Bind the progress thread to the nearest hardware thread that the launcher gave the job "
        "and that no rank of this node is bound to. Without such a one, with ranks that are not "
        "bound, or with a part of a node of Slurm's, the thread may run wherever its rank may");
    mca_coll_flash_register_variable(
        "callback_thread", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.callback_thread,
        "Which thread runs the compute callbacks of <mpix_flash.h>. no: application threads, "
        "inside MPI calls. yes: a callback thread, as soon as there is something to compute, "
        "whether the application is in MPI or not. Only for programs that were written for it: "
        "their callbacks run beside application threads, and may call MPI only at "
        "MPI_THREAD_MULTIPLE. The callback thread starts with the first call that uses it, "
        "inherits that thread's CPU affinity, and sleeps while no callback is due. The info key "
        "mpix_flash_callback_thread decides for one communicator");
}

static void register_order(void)
{
    mca_coll_flash_register_choice(
        "setup", setup_values, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.setup,
        "When processes open UCX and tell each other its addresses. init: in MPI_Init. call: with "
        "the first call on each communicator that the ring or the pairwise algorithm is to serve; "
        "until then MPI_Init costs what the ranks' agreement costs. An MPI_(I)alltoallv, "
        "MPI_Igatherv or MPI_Iscatterv that may have blocks for the ring is such a call, whatever "
        "its blocks. Non-blocking calls do not "
        "wait for that: they start when all ranks have made the first call. Blocking calls, the "
        "making of persistent requests and the calls of <mpix_flash.h> wait. If UCX turns out not "
        "to be usable on some rank, such calls of the communicator fall back. At "
        "MPI_THREAD_MULTIPLE non-blocking ones fall back in any case. auto: init if the program is "
        "linked with libmpix_flash, runs at MPI_THREAD_MULTIPLE, is to outlive a process (Open MPI "
        "4.1's mpirun --enable-recovery, coll_flash_probe_seconds), has hcoll, ucc or portals4 "
        "among Open MPI's "
        "components, a relative path in LD_LIBRARY_PATH, or a device for which UCX registers "
        "memory (an RDMA adapter, a GPU) and another pml than ucx; call otherwise. One rank's init "
        "counts for all");
    mca_coll_flash_register_choice(
        "ring_order", order_values, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.ring_order,
        "In which order the ranks stand in a ring. machine: those of a node, package, "
        "NUMA node and cache next to each other, so that a ring enters and leaves each "
        "of them once, however the ranks are mapped. rank: by their numbers, so that a "
        "reduction adds in the same order, and gives the same bits, under any mapping. "
        "Where ranks were given different values: rank");
}

static void register_segments(void)
{
    mca_coll_flash_register_variable(
        "segment_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.segment_bytes,
        "Size in bytes of the segments into which a block is cut on its way around "
        "the ring: one is reduced or sent on while the next arrives. 0: flash chooses, 256 KiB for "
        "blocks, or pieces that callbacks see, up to 2 MiB, an eighth of longer ones, at most 4 "
        "MiB: each segment costs messages and, of a device's memory, copies. Between nodes that "
        "RDMA "
        "devices join, and that have no GPU, an allgather's blocks are whole up to 4 MiB, and a "
        "reduction's segments as long as the square root of the block's length says. In MPI_Ibcast "
        "and MPI_Ireduce 256 KiB of blocks of any length. Where ranks were "
        "given different values, all use the smallest that is not 0. Less than 64, but for 0, "
        "counts as 64");
    mca_coll_flash_register_variable(
        "segment_window", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5,
        MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.segment_window,
        "Segments of one operation that are under way at a time, at least; more are "
        "where a block has more. The number is for segments of 256 KiB: where flash has chosen "
        "longer ones, so many are under way that they have as many bytes. 0: none but a block's. A "
        "reduction has memory for each of them");
    mca_coll_flash_register_variable(
        "max_sends", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5,
        MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.max_sends,
        "Segments of one operation on their way to the neighbour at a time, or, where the "
        "neighbour has begun the operation, groups of up to four segments and 1 MiB: enough to "
        "keep the link busy while a computation keeps the progress thread from its "
        "core (8 of 256 KiB: 8 ms at 2 Gbit/s), few enough that none waits long "
        "behind others. Where flash has chosen longer segments, it sends as many bytes at a time, "
        "but two segments at least; where UCX moves a device's memory, as many segments. 0: any "
        "number");
    mca_coll_flash_register_variable(
        "scratch_cache_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_6,
        MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.scratch_cache_bytes,
        "Size in bytes of an operation's scratch memory, in the host's, up to which "
        "it is kept for the next ones instead of being given back to the system: "
        "fresh memory takes longer than what is done with it. A reduction's is one "
        "block, with callbacks about three. The four largest are kept, until "
        "MPI_Finalize. 0: none");
    mca_coll_flash_register_variable(
        "verbose", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_8, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.verbose,
        "0: silent. 1: what flash decided for the job and each communicator. 2: a "
        "line for each operation, with its algorithm and why");
    mca_coll_flash_register_variable(
        "summary", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.summary,
        "Whether MPI_Finalize prints a table on the standard error of rank 0: for "
        "all ranks of MPI_COMM_WORLD, what flash has served, for how long it was "
        "under way, how much of that was hidden and exposed, and why calls by the fallback and "
        "by plain collectives did not use the ring: what the performance variables say. For all, "
        "if one process "
        "asks for it. Each poll of a waiting application then reads the clock; "
        "where ranks share cores, time in which another rank has the core counts "
        "as hidden. Not for jobs of one rank, where flash serves nothing, or of "
        "ranks with different releases, and not for those that outlive a process");
    mca_coll_flash_register_variable(
        "trace", MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.trace,
        "Prefix of the trace files. In MPI_Finalize each process writes NAME.RANK.json, a timeline "
        "of the operations that the engine ran (by the ring and pairwise): callbacks, combining, "
        "sending, receiving, and the time in which the application waits in MPI (calls that follow "
        "each other within 0.2 ms count as one). ui.perfetto.dev and the tool flash_timeline read "
        "these files, which are Chrome's trace-event JSON. A process keeps up to a million spans "
        "(48 MiB). flash does not align the clocks of the hosts. Empty: no trace");
    mca_coll_flash_params.help_dir = FLASH_PKGDATADIR;
    mca_coll_flash_register_variable(
        "help_dir", MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.help_dir,
        "Folder that holds help-mpi-coll-flash.txt, the texts of flash's messages");
}

void mca_coll_flash_register_tuning(void)
{
    register_progress();
    register_order();
    register_segments();
}
