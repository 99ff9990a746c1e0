/*
 * coll_flash_params_paths.c: parameters that say which algorithm serves a call.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_costs.h"
#include "settings/coll_flash_params_internal.h"

static mca_base_var_enum_value_t algorithm_values[] = {
    {FLASH_AUTO, "auto"},
    {FLASH_RING, "ring"},
    {FLASH_PAIRWISE, "pairwise"},
    {FLASH_RECDBL, "recdbl"},
    {FLASH_SHM, "shm"},
    {FLASH_FALLBACK, "fallback"},
    {0, NULL},
};

static mca_base_var_enum_value_t blocking_values[] = {
    {FLASH_BLOCKING_AUTO, "auto"},
    {FLASH_BLOCKING_YES, "yes"},
    {FLASH_BLOCKING_NO, "no"},
    {0, NULL},
};

static mca_base_var_enum_value_t on_node_values[] = {
    {FLASH_ON_NODE_AUTO, "auto"},
    {FLASH_ON_NODE_YES, "yes"},
    {FLASH_ON_NODE_NO, "no"},
    {0, NULL},
};

static mca_base_var_enum_value_t shm_values[] = {
    {FLASH_SHM_AUTO, "auto"},
    {FLASH_SHM_COPY, "copy"},
    {FLASH_SHM_READ, "read"},
    {FLASH_SHM_NO, "no"},
    {0, NULL},
};

static void register_choosing(void)
{
    mca_coll_flash_register_variable(
        "priority", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.priority,
        "Priority of flash among the collective components. Open MPI takes each function from the "
        "component with the highest priority that has it; Open MPI's own priorities lie between 0 "
        "and 78, NVIDIA's hcoll has 90, and of equal ones it is not defined which comes first. "
        "monitoring comes before all, and passes on. A negative value on any rank, or "
        "values that differ, switch flash off. At 10 or less, flash does not "
        "rank above libnbc, its fallback, and switches itself off");
    mca_coll_flash_register_variable(
        "any_fabric", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.any_fabric,
        "Whether flash serves a job also where Open MPI's own messages reach other nodes by a "
        "faster fabric than UCX does. no: if UCX has found nothing but TCP on some rank, and that "
        "rank's Open MPI sends by an MTL (libfabric, unless mtl_ofi_provider_include names TCP "
        "alone; PSM2; Portals), by a BTL that is not tcp, or by a PML that flash does not know, "
        "flash does not serve the job. yes: flash does. One rank's no counts for all. "
        "coll_flash_verbose 1 tells both fabrics");
    mca_coll_flash_register_choice(
        "algorithm", algorithm_values, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.algorithm,
        "Which algorithm serves MPI_Iallgather(v), MPI_Ireduce_scatter(_block), MPI_Iallreduce, "
        "MPI_Ialltoall(v), MPI_Ibcast, MPI_Ireduce, MPI_Igather(v), MPI_Iscatter(v) and their "
        "persistent forms. auto: the one with the least cost (coll_flash_costs) among those that "
        "can serve the call; of MPI_Ialltoallv, MPI_Igatherv and MPI_Iscatterv, for each block by "
        "its own length. ring: messages to the right "
        "neighbour (MPI_Ialltoall(v): to each rank in turn; MPI_Ibcast, MPI_Ireduce: from the "
        "root, "
        "or to it, once along the ring; MPI_Igather(v), MPI_Iscatter(v): between the root and each "
        "rank in turn), moved by the progress thread, also on "
        "one node. pairwise: each rank sends each contribution of a reduce-scatter straight to its "
        "owner, with the progress thread; 16-bit floating-point sums are rounded once. recdbl: "
        "recursive doubling inside MPI calls, up to 1 MiB in total. shm: memory that the ranks of "
        "a node share; neither of the two serves MPI_Iallreduce, MPI_Ialltoall(v) or a call with a "
        "root. fallback: Open "
        "MPI's next component. A call that the named algorithm cannot serve is treated as by auto. "
        "The calls of <mpix_flash.h> use the ring; with pairwise, their reduce-scatters are "
        "pairwise. If ranks have different values, all use auto");
    mca_coll_flash_register_variable(
        "costs", MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.costs,
        "File with the costs by which coll_flash_algorithm auto chooses. Each line is: network or "
        "node; allgather, reduce_scatter, allreduce, alltoall, bcast, reduce, gather or scatter, "
        "or blocking_ and one of the first five; fallback, ring, pairwise, recdbl or shm; and four "
        "whole numbers: "
        "nanoseconds of a call, nanoseconds for each other rank, nanoseconds for each doubling of "
        "the ranks, picoseconds for each byte that a rank sends (of a bcast or a reduce, each byte "
        "of "
        "the block counts for each doubling). An algorithm without a line is "
        "not chosen. One more line, network reduce_scatter "
        "pairwise_of_three and a number, says from how many bytes in total, 49152 without it, "
        "three ranks may be pairwise: the four numbers cannot express this. flash_tune writes such "
        "a file from measurements on this machine, flash_info --explain prints what it means. "
        "Empty: built-in costs, which follow measurements over TCP at 2 Gbit/s "
        "and within one node. If ranks have different costs, all use the built-in ones");
}

static void register_blocking(void)
{
    mca_coll_flash_register_choice(
        "blocking", blocking_values, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.blocking,
        "Whether flash serves the blocking calls MPI_Allgather(v), MPI_Reduce_scatter(_block), "
        "MPI_Allreduce, MPI_Alltoall(v) and MPI_Bcast, too. auto: where the costs of blocking "
        "calls (coll_flash_costs), which are "
        "their times alone, say that an algorithm of flash's takes less time than Open MPI's call; "
        "coll_flash_algorithm does not count, but for fallback. yes: by the algorithm that "
        "coll_flash_algorithm names, if it can serve the call, otherwise as auto. no: not. Calls "
        "that flash does not serve go to Open MPI's next component as they are (but for an "
        "MPI_Alltoallv's buffers on a device, if it may exchange long blocks), and are not "
        "counted. If ranks have different values, all use no if one says no, else auto");
}

static void register_node(void)
{
    mca_coll_flash_register_choice(
        "on_node", on_node_values, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.on_node,
        "Whether auto may choose the ring if all ranks of a communicator share a node. There the "
        "CPU moves the data, so that nothing is gained while the same core computes. auto: if each "
        "node has at least two hardware threads for each rank of this job there. yes: also for "
        "computations that leave the CPU idle, as on an accelerator. no: not; one rank's no counts "
        "for all. The calls of <mpix_flash.h> use the ring anyway");
    mca_coll_flash_register_choice(
        "shm", shm_values, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_flash_params.shm,
        "Whether calls may use memory that the ranks of a node share, if all ranks of a "
        "communicator share a node. copy: each block is copied into shared memory and out of it. "
        "read: the blocks of an allgather are read from the sender's memory (process_vm_readv), "
        "one copy, but a call ends only when all ranks have read. auto: allgathers of two ranks "
        "with blocks above 16 KiB are read, all others copied. no: shared memory is not used. Each "
        "rank has 256 KiB for each of the first 64 communicators, once used, in files without a "
        "name (memfd_create), which the ranks of a node open through /proc. If a rank cannot open "
        "them, as in containers of their own, no rank uses shared memory; if a rank may not read "
        "another's memory (the kernel asks for the right that a debugger needs), none reads, and "
        "such allgathers are left to the other algorithms. If "
        "ranks have different values, all use no if one says no, else copy if one says copy");
}

void mca_coll_flash_register_paths(void)
{
    register_choosing();
    register_blocking();
    register_node();
}
