/*
 * coll_flash_params_faults.c: parameters of processes that are late, or gone.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_params_internal.h"

void mca_coll_flash_register_faults(void)
{
    mca_coll_flash_register_variable(
        "probe_seconds", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5,
        MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.probe_seconds,
        "How long an operation waits for a neighbour's message before flash asks "
        "whether the neighbour's process is still there, and ends the operation with "
        "an error if it is not; UCX finds that out within a few seconds more. Then "
        "also whether what processes of this node send comes in at all. Of "
        "use in jobs that outlive a process (mpirun --enable-recovery). 0: never");
    mca_coll_flash_register_variable(
        "stall_seconds", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4,
        MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.stall_seconds,
        "How long an operation waits for a neighbour's message, in seconds in which "
        "the application waits inside MPI, before a warning says which operation, "
        "step, block and rank it is. Of several ranks' warnings mpirun shows one, "
        "unless orte_base_help_aggregate (Open MPI 5: opal_base_help_aggregate) is 0. "
        "0: never");
    mca_coll_flash_register_variable(
        "stall_error", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.stall_error,
        "Whether flash, after stall_seconds, gives that neighbour up and ends all "
        "operations with it by an error, as if its process had gone. Where one rank "
        "is late, others wait in vain, too, and give up neighbours that are not to "
        "blame: the job will not come to its end in good order. The buffers of "
        "those operations must then stay as they are until MPI_Finalize: messages "
        "that are half-way cannot be called back. Operations by recursive doubling, in "
        "Open MPI's own messages, wait on");
}
