/*
 * coll_flash_pvars.c: what flash has done so far, as performance variables of the MPI tool
 * interface (MPI 3.1, section 14.3.6).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"
#include "job/coll_flash_counters.h"

/* ctx: the counter. */
static int get_count(const mca_base_pvar_t *variable, void *value, void *object)
{
    (void) object;
    *(unsigned long long *) value =
        mca_coll_flash_counted((mca_coll_flash_counter_t) (uintptr_t) variable->ctx);
    return OPAL_SUCCESS;
}

static int get_wakeups(const mca_base_pvar_t *variable, void *value, void *object)
{
    const flash_progress_t *progress = mca_coll_flash_job_progress();

    (void) variable;
    (void) object;
    *(unsigned long long *) value = progress == NULL ? 0 : flash_progress_wakeups(progress);
    return OPAL_SUCCESS;
}

static int get_thread_time(const mca_base_pvar_t *variable, void *value, void *object)
{
    const flash_progress_t *progress = mca_coll_flash_job_progress();

    (void) variable;
    (void) object;
    *(double *) value = progress == NULL ? 0 : flash_progress_cpu_time(progress);
    return OPAL_SUCCESS;
}

static int get_under_way(const mca_base_pvar_t *variable, void *value, void *object)
{
    (void) variable;
    (void) object;
    *(double *) value = mca_coll_flash_job_times().under_way;
    return OPAL_SUCCESS;
}

static int get_exposed(const mca_base_pvar_t *variable, void *value, void *object)
{
    (void) variable;
    (void) object;
    *(double *) value = mca_coll_flash_job_times().exposed;
    return OPAL_SUCCESS;
}

/* The clock is read for those alone who want to know. */
static int measure(mca_base_pvar_t *variable, mca_base_pvar_event_t event, void *object, int *count)
{
    (void) variable;
    (void) object;
    if (event == MCA_BASE_PVAR_HANDLE_BIND) {
        mca_coll_flash_job_measure();
        *count = 1;
    }
    return OPAL_SUCCESS;
}

static void register_one(const char *name, int class, mca_base_var_type_t type,
                         mca_base_get_value_fn_t get, mca_base_notify_fn_t notify, void *context,
                         const char *help)
{
    mca_base_pvar_register("ompi", "coll", "flash", name, help, OPAL_INFO_LVL_4, class, type, NULL,
                           MCA_BASE_VAR_BIND_NO_OBJECT,
                           MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS |
                               MCA_BASE_PVAR_FLAG_IWG,
                           get, NULL, notify, context);
}

static void register_count(const char *name, mca_coll_flash_counter_t counter, const char *help)
{
    register_one(name, MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, get_count,
                 NULL, (void *) (uintptr_t) counter, help);
}

static void register_calls(void)
{
    register_count(
        "ring_calls", FLASH_COUNT_RINGS,
        "Calls of this process that the ring has served, blocking ones included, and all "
        "calls of <mpix_flash.h> that are overlapped; a persistent request counts once, "
        "when it is made");
    register_count(
        "ring_bytes", FLASH_COUNT_RING_BYTES,
        "The bytes of these calls: of all ranks' blocks together, or of the one block of "
        "a broadcast or a reduce, or of the blocks of MPI_(I)alltoallv that this process receives "
        "by the ring, or of those of MPI_Igatherv and MPI_Iscatterv that it sends or receives by "
        "the ring, counted once for each call");
    register_count("callbacks", FLASH_COUNT_CALLBACKS,
                   "Compute callbacks that have been made for them");
    register_count("pairwise_calls", FLASH_COUNT_PAIRWISE,
                   "Calls of MPI_Ireduce_scatter(_block) that the pairwise algorithm has served, "
                   "and their persistent and blocking forms");
    register_count("pairwise_bytes", FLASH_COUNT_PAIRWISE_BYTES,
                   "The bytes of these calls, as of coll_flash_ring_bytes");
    register_count("shm_calls", FLASH_COUNT_SHM,
                   "Calls of MPI_Iallgather(v) and MPI_Ireduce_scatter(_block) that the ranks of a "
                   "node have served through shared memory, see coll_flash_shm, and their blocking "
                   "forms");
    register_count("shm_bytes", FLASH_COUNT_SHM_BYTES,
                   "The bytes of these calls, as of coll_flash_ring_bytes");
    register_count("recdbl_calls", FLASH_COUNT_RECDBL,
                   "Calls of MPI_Iallgather(v) and MPI_Ireduce_scatter(_block) that recursive "
                   "doubling has served");
    register_count("recdbl_bytes", FLASH_COUNT_RECDBL_BYTES,
                   "The bytes of these calls, as of coll_flash_ring_bytes");
    register_count(
        "fallback_calls", FLASH_COUNT_FALLBACKS,
        "Calls of MPI_Iallgather(v), MPI_Ireduce_scatter(_block), MPI_Iallreduce, "
        "MPI_Ialltoall(v), MPI_Ibcast, MPI_Ireduce, MPI_Igather(v), MPI_Iscatter(v) and their "
        "persistent forms on communicators that flash serves, which Open MPI's next component has "
        "served; coll_flash_verbose 2 "
        "says why of each. Not those of MPI_Iallreduce and MPI_Ireduce of one MPI_INT by "
        "MPI_MAX or MPI_MIN, nor of MPI_Ibcast of as many bytes, which Open MPI itself makes "
        "for new communicators, and no blocking calls");
    register_count(
        "fallback_bytes", FLASH_COUNT_FALLBACK_BYTES,
        "The bytes of these calls, as of coll_flash_ring_bytes, and of the blocks of "
        "MPI_(I)alltoallv, MPI_Igatherv and MPI_Iscatterv that fall back while others go "
        "by the ring");
    register_count("plain_calls", FLASH_COUNT_PLAIN,
                   "Calls of <mpix_flash.h> that a plain collective has served, without overlap");
    register_count("plain_bytes", FLASH_COUNT_PLAIN_BYTES,
                   "The bytes of these calls, as of coll_flash_ring_bytes");
}

static void register_reasons(void)
{
    register_count("fallbacks_cost", FLASH_COUNT_COST,
                   "How many of the calls that the fallback or a plain collective has served were "
                   "so because the ring costs more, see coll_flash_costs");
    register_count("fallbacks_algorithm", FLASH_COUNT_ALGORITHM,
                   "Likewise, because coll_flash_algorithm names the fallback");
    register_count("fallbacks_on_node", FLASH_COUNT_ON_NODE,
                   "Likewise, because all ranks share a node, see coll_flash_on_node");
    register_count("fallbacks_operation", FLASH_COUNT_OPERATION,
                   "Likewise, because a ring cannot reduce by that operation, or not on that type");
    register_count("fallbacks_persistent", FLASH_COUNT_PERSISTENT,
                   "Likewise, because the communicator had 8192 persistent requests");
    register_count(
        "fallbacks_ranks", FLASH_COUNT_RANKS,
        "Likewise, because more than 4096 ranks were to exchange with each other, or more than 16 "
        "in MPI_Ialltoall(v), MPI_Igather(v) or MPI_Iscatter(v) where coll_flash_algorithm does "
        "not name "
        "the ring");
    register_count("fallbacks_merged", FLASH_COUNT_MERGED,
                   "Likewise, because callbacks could take all ranks' blocks at once (the hint "
                   "merge), and the ring costs more");
    register_count("fallbacks_large", FLASH_COUNT_LARGE,
                   "Likewise, because a block has 2 GiB and more, or the counts came in an array "
                   "of MPI_Count: with Open MPI 6 alone");
    register_count("fallbacks_communicator", FLASH_COUNT_COMMUNICATOR,
                   "Calls of <mpix_flash.h> on communicators that flash does not serve, and plain "
                   "calls that fell back because their communicator could not be set up; "
                   "coll_flash_verbose 1 says why of each communicator. Plain calls on the former "
                   "flash does not see");
}

static void register_times(void)
{
    register_one(
        "in_flight_seconds", MCA_BASE_PVAR_CLASS_TIMER, MCA_BASE_VAR_TYPE_DOUBLE, get_under_way,
        measure, NULL,
        "For how many seconds calls that coll_flash_ring_calls and coll_flash_pairwise_calls count "
        "have been "
        "under way in this process, one at least at a time. Measured from when a tool first asks "
        "for this variable "
        "or "
        "coll_flash_exposed_seconds, or from MPI_Init on with coll_flash_summary");
    register_one("exposed_seconds", MCA_BASE_PVAR_CLASS_TIMER, MCA_BASE_VAR_TYPE_DOUBLE,
                 get_exposed, measure, NULL,
                 "For how many of coll_flash_in_flight_seconds the application was in MPI, and "
                 "neither in a compute callback nor with one pending: the rest was hidden. Seen "
                 "poll by poll: MPI calls that follow each other within 0.2 ms count as one, so "
                 "that a program that calls MPI_Test more often than that is seen to wait; and "
                 "where a waiting process does not have its core for longer, as ranks that share "
                 "one, it is not");
    register_one("wakeups", MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
                 get_wakeups, NULL, NULL,
                 "How often the progress thread of this process has woken up");
    register_one("thread_seconds", MCA_BASE_PVAR_CLASS_TIMER, MCA_BASE_VAR_TYPE_DOUBLE,
                 get_thread_time, NULL, NULL,
                 "CPU time in seconds that the progress thread of this process has used");
}

void mca_coll_flash_pvars_register(void)
{
    register_calls();
    register_reasons();
    register_times();
}
