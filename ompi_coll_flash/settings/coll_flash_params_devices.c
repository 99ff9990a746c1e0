/*
 * coll_flash_params_devices.c: parameters of the memory of devices.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_params_internal.h"

static mca_base_var_enum_value_t cuda_direct_values[] = {
    {FLASH_GPUDIRECT_AUTO, "auto"},
    {FLASH_GPUDIRECT_YES, "yes"},
    {FLASH_GPUDIRECT_NO, "no"},
    {0, NULL},
};

static void register_plugin(void)
{
    mca_coll_flash_params.cuda_plugin = FLASH_CUDA_PLUGIN;
    mca_coll_flash_register_variable(
        "cuda_plugin", MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.cuda_plugin,
        "Path of flash_cuda.so, which flash loads at the first buffer in the memory of "
        "a CUDA device. none: there is none, and such buffers are refused");
    mca_coll_flash_register_variable(
        "cuda_cache_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_5,
        MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.cuda_cache_bytes,
        "Operations on the memory of CUDA devices go through pinned memory of the host, or through "
        "memory of the device's that UCX reaches. Up to this size in bytes, what one operation has "
        "taken is kept for the next ones, four pieces of each kind and device at most, until MPI "
        "is finalized. More pinned memory than this, which coll_flash_pinned_bytes may allow, is "
        "made and freed in each operation, and that waits for the device (coll_flash_verbose 1 "
        "tells of it). An operation for which UCX would reach more of the device's memory than "
        "this is staged, so that 0 also turns coll_flash_cuda_gpudirect off. Of that memory an "
        "operation takes 2 MiB at least, and up to a quarter more than it needs. Calls that do not "
        "use the ring copy to and from pinned memory up to this size, and beyond it ordinary "
        "memory, "
        "which takes longer. 0: none is kept");
    mca_coll_flash_params.cuda_reduce = true;
    mca_coll_flash_register_variable(
        "cuda_reduce", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.cuda_reduce,
        "Whether a CUDA device that holds both buffers of a reduction adds by itself, "
        "if it has a kernel for the operation and the type; else the host does. The "
        "results are the same");
    mca_coll_flash_register_choice(
        "cuda_gpudirect", cuda_direct_values, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.cuda_gpudirect,
        "Whether UCX sends and receives the memory of CUDA devices itself (GPUDirect "
        "RDMA, NVLink), in place of copies through the host's. It moves "
        "reductions only if the device adds, and in each process the memory of one "
        "device. auto: where UCX was built for it, and all ranks share a node or the "
        "node has RDMA devices; flash does not check that these reach the device. yes: "
        "wherever UCX was built for it. coll_flash_verbose 2 says what an operation "
        "does");
}

static void register_pinned(void)
{
    mca_coll_flash_register_variable(
        "pinned_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.pinned_bytes,
        "Most bytes of pinned host memory that an operation on the memory of CUDA devices takes, "
        "however long its blocks are (a call that does not use the ring: see "
        "coll_flash_cuda_cache_bytes). Where its blocks want more, what has arrived waits on the "
        "device until it is sent on, and is copied to the host once more for that. With three or "
        "more ranks, a reduction's sums then wait in memory that flash takes on the device, if "
        "the device adds (one block, with callbacks two), or else in ordinary host memory. Where "
        "the device has no such memory, or the application's context there is not the primary "
        "one, the host adds. A pairwise reduce-scatter that wants more than this takes ordinary "
        "memory of the host, to and from which copies take longer (coll_flash_verbose 2). Ranks "
        "may have different values. Less than three segments counts as three: 12 MiB for "
        "long blocks where coll_flash_segment_bytes is 0. The four largest pieces of memory "
        "are kept for the next operations. 0: no limit");
}

void mca_coll_flash_register_devices(void)
{
    register_plugin();
    register_pinned();
}
