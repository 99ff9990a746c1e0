/*
 * coll_flash_params_paths.c: parameters that say by which algorithm a call goes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_params_internal.h"

static mca_base_var_enum_value_t on_node_values[] = {
    {FLASH_ON_NODE_AUTO, "auto"},
    {FLASH_ON_NODE_YES, "yes"},
    {FLASH_ON_NODE_NO, "no"},
    {0, NULL},
};

void mca_coll_flash_register_paths(void)
{
    mca_coll_flash_register_variable(
        "priority", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.priority,
        "Priority of flash among the collective components. The highest one that offers an "
        "operation serves it; those of Open MPI lie between 5 and 78. Negative on any rank: "
        "flash is not used. At 10 or less, what flash passes on has nowhere to go, and flash is "
        "not used either");
    mca_coll_flash_register_variable(
        "min_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.min_bytes,
        "Size in bytes, all ranks' blocks together, from which on "
        "MPI_Ireduce_scatter(_block) go around flash's ring, and from twice that on "
        "MPI_Iallgather(v), of which Open MPI's own move fewer bytes than its "
        "reductions do; smaller ones take a board (coll_flash_board), are direct "
        "(coll_flash_direct_bytes), go in rounds (coll_flash_doubling_bytes), or go "
        "to the component of the next lower priority. 0: no size is too small, and "
        "coll_flash_step_bytes does not count. The default is where the ring was "
        "found faster under computation, over TCP. Where ranks were given different "
        "values, all use the smallest. The calls of <mpix_flash.h> use the ring: but "
        "see coll_flash_merge_bytes");
    mca_coll_flash_register_variable(
        "step_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.step_bytes,
        "Size in bytes of a rank's block, on average, below which these calls do "
        "not go around the ring either, twice that for MPI_Iallgather(v): a ring "
        "takes a step for each rank, and each step some time beside that of its "
        "block. Where ranks were given different values, all use the smallest");
    mca_coll_flash_register_variable(
        "merge_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.merge_bytes,
        "Size in bytes, all ranks' blocks together, up to which calls of "
        "<mpix_flash.h> whose hints say that callbacks may be merged "
        "(MPIX_Flash_hints, merge) have one for all blocks, before or after a plain "
        "collective, and take no ring: what is computed in small pieces takes longer "
        "than at once, by more than the ring would hide. 0: none but where flash "
        "does not serve them. The default is where that was found faster, for matrix "
        "products, over TCP. Where ranks were given different values, all use the "
        "smallest");
    mca_coll_flash_register_variable(
        "direct_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.direct_bytes,
        "Size in bytes, all ranks' blocks together, from which on MPI_Ireduce_scatter(_block) that "
        "take neither a ring nor a board, and are too large for coll_flash_doubling_bytes, are "
        "direct: each rank sends each other one its part of that one's block when it is called, "
        "and adds up what has come to it while it waits inside MPI; the progress thread is not "
        "woken for it. Not where coll_flash_on_node keeps rings away. The default is where that "
        "was found faster, over TCP, on 2 to 8 hosts, than Open MPI's own calls, which reduce "
        "everything to one rank first. Where ranks were given different values, all use the "
        "smallest");
    mca_coll_flash_register_variable(
        "direct_ranks", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.direct_ranks,
        "Ranks of a communicator up to which these calls are direct; each has an "
        "endpoint of UCX to each other one then. 0: none are; more than 4096 never "
        "are. Where ranks were given different values, all use the smallest");
    mca_coll_flash_register_variable(
        "doubling_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4,
        MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_flash_params.doubling_bytes,
        "Size in bytes, all ranks' blocks together, up to which MPI_Ireduce_scatter(_block), and "
        "up to half of which MPI_Iallgather(v), of two ranks a sixteenth, that take neither a "
        "ring nor a board go in a few rounds of Open MPI's own messages, the logarithm of the "
        "number of ranks: recursive doubling and halving. Open MPI's own non-blocking calls have a "
        "message for each rank. Not where coll_flash_on_node keeps rings away, nor on fewer than "
        "coll_flash_doubling_ranks. 0: none do; more than 64 MiB counts as 64 MiB. The default is "
        "where that was found faster, over TCP. Where ranks were given different values, all use "
        "the smallest");
    mca_coll_flash_register_variable(
        "doubling_ranks", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.doubling_ranks,
        "Ranks of a communicator from which on these calls go in rounds; those of two "
        "do anyway. Three ranks have two rounds, in which Open MPI's own calls are "
        "done with fewer messages. Where ranks were given different values, all use "
        "the smallest");
    mca_coll_flash_register_choice(
        "on_node", on_node_values, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.on_node,
        "Whether these calls also go around the ring where all ranks of a communicator share a "
        "node. There it is the processor that moves the data, so that nothing is gained by "
        "moving it while the same core computes. auto: if every node has two hardware threads or "
        "more for each of this job's ranks there. yes: also for computations that leave the "
        "processor idle, as on an accelerator. no: such calls take a board (coll_flash_board), "
        "or go to the component of the next lower priority, as on all ranks where one says so. "
        "The calls of <mpix_flash.h> use the ring: but see coll_flash_merge_bytes");
    mca_coll_flash_register_variable(
        "board", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.board,
        "Whether calls of MPI_Iallgather(v) and MPI_Ireduce_scatter(_block) that take no ring go "
        "over a board, where all ranks of a communicator share a node: through memory that each "
        "of them maps, inside MPI calls, without messages or a thread. Not where an operation or "
        "a type is in the way, nor on communicators whose number, as coll_flash_verbose 1 says, "
        "is 64 or more. Each rank has 256 KiB for each communicator, once it is used, in files "
        "without a name (memfd_create), which the ranks of a node open by /proc; where they "
        "cannot, as in containers of their own, or where one says no, none is used on all ranks");
    mca_coll_flash_register_variable(
        "board_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.board_bytes,
        "Size in bytes of the longest block up to which MPI_Iallgather(v) of two "
        "ranks go through the memory of boards, which copies each byte twice. Larger "
        "ones are read where they are, see coll_flash_board_read_ranks. Where that "
        "cannot be, they go to the component of the next lower priority if blocks "
        "are larger than that on average. MPI_Ireduce_scatter(_block), and "
        "allgathers of more ranks, for which two copies are not many, go through "
        "boards at any size. The default is where that was found no slower. Where "
        "ranks were given different values, all use the smallest");
    mca_coll_flash_register_variable(
        "board_read_ranks", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.board_read_ranks,
        "Ranks of a communicator up to which MPI_Iallgather(v) over boards, of "
        "blocks larger than coll_flash_board_bytes, are read by each rank from the "
        "others' memory (process_vm_readv(2)), which copies each byte once, but lets "
        "a call end only when all have read. 0: none are, as where a rank may not "
        "read another's memory of its node (the kernel asks for what lets a debugger "
        "attach). The default is where that was found faster. Where ranks were given "
        "different values, all use the smallest");
}
