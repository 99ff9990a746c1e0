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
        "Seconds of silence after which flash asks whether a neighbour's process is still there. "
        "If the process has gone, the operation ends with an error. For a process of the same "
        "node the kernel answers at once; for one of another node UCX takes some seconds more. "
        "From then on flash also checks whether messages of this node's processes come in at all. "
        "Only an application thread inside MPI counts these seconds, one at a time: a program that "
        "calls MPI_Test every ten seconds waits ten times as long. Recursive doubling and calls "
        "that fall back use Open MPI's messages, of which flash does not ask. Of use in jobs that "
        "outlive a process (mpirun --enable-recovery). 0: never");
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
        "those operations must then stay as they are until MPI_Finalize returns: UCX cannot "
        "cancel messages that are half-way. Operations by recursive doubling, in "
        "Open MPI's own messages, wait on");
}
