/*
 * coll_flash_component.c: registration, parameters, opening and closing.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension/mpix_flash_fallback_operation.h"

#include <stdio.h>
#include <string.h>

mca_coll_flash_params_t mca_coll_flash_params = {
    .priority = FLASH_DEFAULT_PRIORITY,
    .progress = FLASH_PROGRESS_AUTO,
    .bind = true,
    .ring_order = FLASH_ORDER_MACHINE,
    .on_node = FLASH_ON_NODE_AUTO,
    .board = true,
    .board_bytes = 16 * 1024,
    .board_read_ranks = 2,
    .min_bytes = 512 * 1024,
    .step_bytes = 64 * 1024,
    .merge_bytes = 512 * 1024,
    .direct_bytes = 48 * 1024,
    .direct_ranks = 16,
    .doubling_bytes = 128 * 1024,
    .doubling_ranks = 4,
    .schedule = FLASH_SCHEDULE_RING,
    .callback_thread = false,
    .depth = 32,
    .sends = 8,
    .keep_bytes = FLASH_POOL_LARGEST,
    .pinned_bytes = (size_t) 64 << 20,
    .cuda_keep_bytes = (size_t) 320 << 20, /* a block of 256 MiB, and the segments under way */
    .probe_seconds = 5,
    .stuck_seconds = 60,
    .stuck_error = false,
    .verbose = 0,
    .summary = false,
    .trace = NULL,
    .help_dir = NULL,
};
int mca_coll_flash_output = -1;

static mca_base_var_enum_value_t progress_values[] = {
    {FLASH_PROGRESS_AUTO, "auto"},
    {FLASH_PROGRESS_ON, "on"},
    {FLASH_PROGRESS_OFF, "off"},
    {0, NULL},
};

static mca_base_var_enum_value_t order_values[] = {
    {FLASH_ORDER_MACHINE, "machine"},
    {FLASH_ORDER_RANK, "rank"},
    {0, NULL},
};

static mca_base_var_enum_value_t schedule_values[] = {
    {FLASH_SCHEDULE_RING, "ring"},
    {FLASH_SCHEDULE_DIRECT, "direct"},
    {0, NULL},
};

static mca_base_var_enum_value_t on_node_values[] = {
    {FLASH_ON_NODE_AUTO, "auto"},
    {FLASH_ON_NODE_YES, "yes"},
    {FLASH_ON_NODE_NO, "no"},
    {0, NULL},
};

static mca_base_var_enum_value_t cuda_direct_values[] = {
    {FLASH_DIRECT_AUTO, "auto"},
    {FLASH_DIRECT_YES, "yes"},
    {FLASH_DIRECT_NO, "no"},
    {0, NULL},
};

static int register_variable(const char *name, mca_base_var_type_t type,
                             mca_base_var_enum_t *enumerator, mca_base_var_info_lvl_t level,
                             mca_base_var_scope_t scope, void *storage, const char *help)
{
    /* DWG: forgotten when the component is closed; its storage goes away with the library. */
    int index = mca_base_var_register("ompi", "coll", "flash", name, help, type, enumerator, 0,
                                      MCA_BASE_VAR_FLAG_DWG, level, scope, storage);

    return index < 0 ? index : OMPI_SUCCESS;
}

/* A variable that takes one of some words. */
static void register_choice(const char *name, const mca_base_var_enum_value_t *words,
                            mca_base_var_info_lvl_t level, mca_base_var_scope_t scope, int *storage,
                            const char *help)
{
    mca_base_var_enum_t *values = NULL;

    mca_base_var_enum_create(name, words, &values);
    register_variable(name, MCA_BASE_VAR_TYPE_INT, values, level, scope, storage, help);
    if (values != NULL) {
        OBJ_RELEASE(values); /* the variable holds it */
    }
}

static void register_selection(void)
{
    register_variable(
        "priority", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.priority,
        "Priority of flash among the collective components. The highest one that offers an "
        "operation serves it; those of Open MPI lie between 5 and 78. Negative on any rank: "
        "flash is not used. At 10 or less, what flash passes on has nowhere to go, and flash is "
        "not used either");
    register_variable("min_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4,
                      MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_flash_params.min_bytes,
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
    register_variable("step_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4,
                      MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_flash_params.step_bytes,
                      "Size in bytes of a rank's block, on average, below which these calls do "
                      "not go around the ring either, twice that for MPI_Iallgather(v): a ring "
                      "takes a step for each rank, and each step some time beside that of its "
                      "block. Where ranks were given different values, all use the smallest");
    register_variable("merge_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4,
                      MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_flash_params.merge_bytes,
                      "Size in bytes, all ranks' blocks together, up to which calls of "
                      "<mpix_flash.h> whose hints say that callbacks may be merged "
                      "(MPIX_Flash_hints, merge) have one for all blocks, before or after a plain "
                      "collective, and take no ring: what is computed in small pieces takes longer "
                      "than at once, by more than the ring would hide. 0: none but where flash "
                      "does not serve them. The default is where that was found faster, for matrix "
                      "products, over TCP. Where ranks were given different values, all use the "
                      "smallest");
    register_variable(
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
    register_variable("direct_ranks", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_4,
                      MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_flash_params.direct_ranks,
                      "Ranks of a communicator up to which these calls are direct; each has an "
                      "endpoint of UCX to each other one then. 0: none are; more than 4096 never "
                      "are. Where ranks were given different values, all use the smallest");
    register_variable(
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
    register_variable(
        "doubling_ranks", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.doubling_ranks,
        "Ranks of a communicator from which on these calls go in rounds; those of two "
        "do anyway. Three ranks have two rounds, in which Open MPI's own calls are "
        "done with fewer messages. Where ranks were given different values, all use "
        "the smallest");
    register_choice(
        "on_node", on_node_values, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.on_node,
        "Whether these calls also go around the ring where all ranks of a communicator share a "
        "node. There it is the processor that moves the data, so that nothing is gained by "
        "moving it while the same core computes. auto: if every node has two hardware threads or "
        "more for each of this job's ranks there. yes: also for computations that leave the "
        "processor idle, as on an accelerator. no: such calls take a board (coll_flash_board), "
        "or go to the component of the next lower priority, as on all ranks where one says so. "
        "The calls of <mpix_flash.h> use the ring: but see coll_flash_merge_bytes");
    register_variable(
        "board", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.board,
        "Whether calls of MPI_Iallgather(v) and MPI_Ireduce_scatter(_block) that take no ring go "
        "over a board, where all ranks of a communicator share a node: through memory that each "
        "of them maps, inside MPI calls, without messages or a thread. Not where an operation or "
        "a type is in the way, nor on communicators whose number, as coll_flash_verbose 1 says, "
        "is 64 or more. Each rank has 256 KiB for each communicator, once it is used, in files "
        "without a name (memfd_create), which the ranks of a node open by /proc; where they "
        "cannot, as in containers of their own, or where one says no, none is used on all ranks");
    register_variable("board_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4,
                      MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_flash_params.board_bytes,
                      "Size in bytes of the longest block up to which MPI_Iallgather(v) of two "
                      "ranks go through the memory of boards, which copies each byte twice. Larger "
                      "ones are read where they are, see coll_flash_board_read_ranks. Where that "
                      "cannot be, they go to the component of the next lower priority if blocks "
                      "are larger than that on average. MPI_Ireduce_scatter(_block), and "
                      "allgathers of more ranks, for which two copies are not many, go through "
                      "boards at any size. The default is where that was found no slower. Where "
                      "ranks were given different values, all use the smallest");
    register_variable("board_read_ranks", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_4,
                      MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_flash_params.board_read_ranks,
                      "Ranks of a communicator up to which MPI_Iallgather(v) over boards, of "
                      "blocks larger than coll_flash_board_bytes, are read by each rank from the "
                      "others' memory (process_vm_readv(2)), which copies each byte once, but lets "
                      "a call end only when all have read. 0: none are, as where a rank may not "
                      "read another's memory of its node (the kernel asks for what lets a debugger "
                      "attach). The default is where that was found faster. Where ranks were given "
                      "different values, all use the smallest");
}

static void register_progress(void)
{
    register_choice("progress", progress_values, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_LOCAL,
                    &mca_coll_flash_params.progress,
                    "Whether a thread moves the data while the application computes. It sleeps "
                    "until something arrives and takes no processor time with nothing in flight. "
                    "on: start it with the first operation, and say so if it cannot be. auto: "
                    "the same without a word where UCX was built without threads. off: "
                    "data moves only inside MPI calls, and after each callback of "
                    "coll_flash_callback_thread");
    register_variable(
        "bind", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.bind,
        "Bind the progress thread to the nearest hardware thread that no rank of this "
        "node is bound to. Without such a one, or with ranks that are not bound, the "
        "thread may run wherever its rank may");
    register_variable(
        "callback_thread", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.callback_thread,
        "Whether a thread of flash's own runs the compute callbacks of <mpix_flash.h>, as soon as "
        "they have something to compute, while the application is in MPI or not, on communicators "
        "whose info key mpix_flash_callback_thread says nothing else. Only for programs that were "
        "written for it: their callbacks run beside application threads, and call MPI at "
        "MPI_THREAD_MULTIPLE alone. The thread starts with the first such call, where that may "
        "run, and sleeps while there is nothing to call back for. no: application threads do so, "
        "inside MPI calls");
}

static void register_order(void)
{
    register_choice("ring_order", order_values, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ,
                    &mca_coll_flash_params.ring_order,
                    "In which order the ranks stand in a ring. machine: those of a node, package, "
                    "NUMA node and cache next to each other, so that a ring enters and leaves each "
                    "of them once, however the ranks are mapped. rank: by their numbers, so that a "
                    "reduction adds in the same order, and gives the same bits, under any mapping. "
                    "Where ranks were given different values: rank");
    register_choice("schedule", schedule_values, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ,
                    &mca_coll_flash_params.schedule,
                    "How reduce-scatters go. ring: sums travel from rank to rank, each of which "
                    "adds to them. direct: each rank sends what it contributes straight to whom "
                    "it is for, who adds it all, in the order of the ring, so that the results are "
                    "the same; but those of 16 bits, which are then added in 32 and rounded once. "
                    "Each rank then has connections to all others, messages cross as many links "
                    "as lie between two ranks, and of what devices hold the host makes the sums "
                    "(coll_flash_cuda_reduce and coll_flash_cuda_direct do not count). Up to 4096 "
                    "ranks; beyond, and where ranks were given different values: ring");
}

static void register_tuning(void)
{
    register_variable(
        "segment_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_flash_params.segment_bytes,
        "Size in bytes of the segments into which a block is cut on its way around "
        "the ring: one is reduced or sent on while the next arrives. 0: flash chooses, 256 KiB for "
        "blocks, or pieces that callbacks see, up to 2 MiB, an eighth of longer ones, at most 4 "
        "MiB: each segment costs messages and, of a device's memory, copies. Where ranks were "
        "given different values, all use the smallest that is not 0. Less than 64, but for 0, "
        "counts as 64");
    register_variable(
        "depth", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.depth,
        "Segments of one operation that are under way at a time, at least; more are "
        "where a block has more. The number is for segments of 256 KiB: where flash has chosen "
        "longer ones, so many are under way that they have as many bytes. 0: none but a block's. A "
        "reduction has memory for each of them");
    register_variable(
        "sends", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.sends,
        "Segments of one operation on their way to the neighbour at a time: enough to "
        "keep the link busy while a computation keeps the progress thread from its "
        "core (8 of 256 KiB: 8 ms at 2 Gbit/s), few enough that none waits long "
        "behind others. Where flash has chosen longer segments, it sends as many bytes at a time, "
        "but two segments at least; where UCX moves a device's memory, as many segments. 0: any "
        "number");
    register_variable("keep_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_6,
                      MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.keep_bytes,
                      "Size in bytes of an operation's scratch memory, in the host's, up to which "
                      "it is kept for the next ones instead of being given back to the system: "
                      "fresh memory takes longer than what is done with it. A reduction's is one "
                      "block, with callbacks about three. The four largest are kept, until "
                      "MPI_Finalize. 0: none");
    register_variable("verbose", MCA_BASE_VAR_TYPE_INT, NULL, OPAL_INFO_LVL_8,
                      MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.verbose,
                      "0: silent. 1: what flash decided for the job and each communicator. 2: a "
                      "line for each operation, with the path it took and why");
    register_variable("summary", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_3,
                      MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.summary,
                      "Whether MPI_Finalize prints a table on the standard error of rank 0: for "
                      "all ranks of MPI_COMM_WORLD, what flash has served, for how long it was "
                      "under way, how much of that was hidden and exposed, and why other calls "
                      "took no ring: what the performance variables say. For all, if one process "
                      "asks for it. Each poll of a waiting application then reads the clock; "
                      "where ranks share cores, time in which another rank has the core counts "
                      "as hidden. Not for jobs of one rank, where flash serves nothing, or of "
                      "ranks with different releases, and not for those that outlive a process");
    register_variable(
        "trace", MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.trace,
        "What the names of the files begin with that a timeline of all operations but "
        "those of boards is written to: NAME.RANK.json for each process, in MPI_Finalize. They are "
        "Chrome's trace-event JSON, which ui.perfetto.dev and the tool flash_timeline "
        "read: callbacks, combining, sending, receiving, and when the application "
        "waits in MPI (calls that follow each other within 0.2 ms). Up to a million "
        "spans a process (48 MiB). The clocks of the hosts are taken as they are. Empty: no "
        "trace");
    mca_coll_flash_params.help_dir = FLASH_PKGDATADIR;
    register_variable("help_dir", MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_9,
                      MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.help_dir,
                      "Folder that holds help-mpi-coll-flash.txt, the texts of flash's messages");
}

static void register_devices(void)
{
    mca_coll_flash_params.cuda_plugin = FLASH_CUDA_PLUGIN;
    register_variable(
        "cuda_plugin", MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.cuda_plugin,
        "Path of flash_cuda.so, which flash loads at the first buffer in the memory of "
        "a CUDA device. none: there is none, and such buffers are refused");
    register_variable(
        "cuda_keep_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_5,
        MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.cuda_keep_bytes,
        "Operations on the memory of CUDA devices go through pinned memory of the host, or through "
        "memory of the device's that UCX reaches. Up to this size in bytes, what one operation has "
        "taken is kept for the next ones, four pieces of each kind and device at most, until MPI "
        "is finalized. More pinned memory than this, which coll_flash_pinned_bytes may allow, is "
        "made and freed in each operation, and that waits for the device (coll_flash_verbose 1 "
        "tells of it). An operation for which UCX would reach more of the device's memory than "
        "this is staged, so that 0 also turns coll_flash_cuda_direct off. Of that memory an "
        "operation takes 2 MiB at least, and up to a quarter more than it needs. Calls that take "
        "no ring copy to and from pinned memory up to this size, and beyond it ordinary memory, "
        "which takes longer. 0: none is kept");
    mca_coll_flash_params.cuda_reduce = true;
    register_variable(
        "cuda_reduce", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.cuda_reduce,
        "Whether a CUDA device that holds both buffers of a reduction adds by itself, "
        "if it has a kernel for the operation and the type; else the host does. The "
        "results are the same");
    register_choice("cuda_direct", cuda_direct_values, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
                    &mca_coll_flash_params.cuda_direct,
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
    register_variable(
        "pinned_bytes", MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
        &mca_coll_flash_params.pinned_bytes,
        "Most bytes of pinned host memory that an operation on the memory of CUDA devices takes, "
        "however long its blocks are (a call that takes no ring: see "
        "coll_flash_cuda_keep_bytes). Where its blocks want more, what has arrived waits on the "
        "device until it is sent on, and is copied to the host once more for that. With three or "
        "more ranks, a reduction's sums then wait in memory that flash takes on the device, if "
        "the device adds (one block, with callbacks two), or else in ordinary host memory. Where "
        "the device has no such memory, or the application's context there is not the primary "
        "one, the host adds. A direct reduce-scatter that wants more than this takes ordinary "
        "memory of the host, to and from which copies take longer (coll_flash_verbose 2). Ranks "
        "may have different values. Less than three segments counts as three: 12 MiB for "
        "long blocks where coll_flash_segment_bytes is 0. The four largest pieces of memory "
        "are kept for the next operations. 0: no limit");
}

static void register_faults(void)
{
    register_variable("probe_seconds", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5,
                      MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.probe_seconds,
                      "How long an operation waits for a neighbour's message before flash asks "
                      "whether the neighbour's process is still there, and ends the operation with "
                      "an error if it is not; UCX finds that out within a few seconds more. Then "
                      "also whether what processes of this node send comes in at all. Of "
                      "use in jobs that outlive a process (mpirun --enable-recovery). 0: never");
    register_variable(
        "stuck_seconds", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4,
        MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.stuck_seconds,
        "How long an operation waits for a neighbour's message, in seconds in which "
        "the application waits inside MPI, before a warning says which operation, "
        "step, block and rank it is. Of several ranks' warnings mpirun shows one, "
        "unless orte_base_help_aggregate (Open MPI 5: opal_base_help_aggregate) is 0. "
        "0: never");
    register_variable("stuck_error", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5,
                      MCA_BASE_VAR_SCOPE_LOCAL, &mca_coll_flash_params.stuck_error,
                      "Whether flash, after stuck_seconds, gives that neighbour up and ends all "
                      "operations with it by an error, as if its process had gone. Where one rank "
                      "is late, others wait in vain, too, and give up neighbours that are not to "
                      "blame: the job will not come to its end in good order. The buffers of "
                      "those operations must then stay as they are until MPI_Finalize: messages "
                      "that are half-way cannot be called back. Operations in rounds of Open MPI's "
                      "own messages (doubling_bytes) wait on");
}

/*
 * `mpirun --mca coll flash` makes Open MPI load flash and nothing else, and then abort, since
 * flash has no barrier. What its user means is "flash above all, the rest as usual": the rest is
 * registered here. A list of several components is taken as it is meant.
 */
static int register_the_others(void)
{
    const char *others = "^flash", *none = "";
    const char *selection = ompi_coll_base_framework.framework_selection;
    int index, rc;

    if (selection == NULL || strcmp(selection, "flash") != 0) {
        return OMPI_SUCCESS;
    }
    index = mca_base_var_find("ompi", "coll", NULL, NULL);
    if (index < 0) {
        return index;
    }
    rc = mca_base_var_set_value(index, others, strlen(others) + 1, MCA_BASE_VAR_SOURCE_SET, NULL);
    if (rc == OPAL_SUCCESS) {
        rc = mca_base_framework_components_register(&ompi_coll_base_framework,
                                                    MCA_BASE_REGISTER_DEFAULT);
        mca_base_var_set_value(index, none, strlen(none) + 1, MCA_BASE_VAR_SOURCE_SET, NULL);
    }
    return rc;
}

int mca_coll_flash_register(void)
{
    static bool entered; /* with the others, Open MPI registers flash once more */
    mca_coll_flash_params_t before = mca_coll_flash_params;
    int rc;

    if (entered) {
        return OMPI_SUCCESS;
    }
    if (!mca_coll_flash_version_fits()) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    entered = true;
    register_selection();
    register_progress();
    register_order();
    register_tuning();
    register_devices();
    register_pinned();
    register_faults();
    mca_coll_flash_counters_register();
    if (mca_coll_flash_params.help_dir != NULL) {
        opal_show_help_add_dir(mca_coll_flash_params.help_dir);
    }
    mca_coll_flash_spelling_check(&before);
    rc = register_the_others();
    entered = false;
    return rc;
}

int mca_coll_flash_open(void)
{
    mca_coll_flash_output = opal_output_open(NULL);
    opal_output_set_verbosity(mca_coll_flash_output, mca_coll_flash_params.verbose);
    mca_coll_flash_job_open();
    return OMPI_SUCCESS;
}

int mca_coll_flash_init_query(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    mca_coll_flash_persistent_init();
    return mca_coll_flash_requests_init();
}

int mca_coll_flash_close(void)
{
    opal_progress_unregister(mca_coll_flash_progress_all);
    flash_fallback_close();
    mca_coll_flash_summary_close();
    mca_coll_flash_job_close();
    mca_coll_flash_requests_fini();
    mca_coll_flash_modules_fini();
    mca_coll_flash_ring_fini();
    opal_output_close(mca_coll_flash_output);
    return OMPI_SUCCESS;
}
