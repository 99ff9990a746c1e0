/*
 * coll_flash_counters.c: what flash has done so far, as performance variables of the MPI tool
 * interface (MPI 3.1, section 14.3.6).
 *
 * Shared between threads: the counters are atomic, relaxed; they order nothing.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

#include <stdatomic.h>

static atomic_ullong rings, passed_on;

void mca_coll_flash_count(bool ring)
{
    atomic_fetch_add_explicit(ring ? &rings : &passed_on, 1, memory_order_relaxed);
}

/* ctx: the counter. */
static int get_count(const mca_base_pvar_t *variable, void *value, void *object)
{
    (void) object;
    *(unsigned long long *) value =
        atomic_load_explicit((atomic_ullong *) variable->ctx, memory_order_relaxed);
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

static void register_one(const char *name, int class, mca_base_var_type_t type,
                         mca_base_get_value_fn_t get, void *context, const char *help)
{
    mca_base_pvar_register("ompi", "coll", "flash", name, help, OPAL_INFO_LVL_4, class, type, NULL,
                           MCA_BASE_VAR_BIND_NO_OBJECT,
                           MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS |
                               MCA_BASE_PVAR_FLAG_IWG,
                           get, NULL, NULL, context);
}

void mca_coll_flash_counters_register(void)
{
    register_one("rings", MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
                 get_count, &rings,
                 "Calls of this process that flash has served by a ring, those of <mpix_flash.h> "
                 "among them; a persistent request counts once, when it is made");
    register_one("passed_on", MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
                 get_count, &passed_on,
                 "Calls of MPI_Iallgather(v), MPI_Ireduce_scatter(_block) and their persistent "
                 "forms on communicators that flash serves, which it has given to the component "
                 "of the next lower priority; coll_flash_verbose 2 says why");
    register_one("wakeups", MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
                 get_wakeups, NULL, "How often the progress thread of this process has woken up");
    register_one("thread_seconds", MCA_BASE_PVAR_CLASS_TIMER, MCA_BASE_VAR_TYPE_DOUBLE,
                 get_thread_time, NULL,
                 "CPU time in seconds that the progress thread of this process has used");
}
