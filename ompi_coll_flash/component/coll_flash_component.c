/*
 * coll_flash_component.c: registration, opening and closing.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"

#include <stdio.h>
#include <string.h>

#include "calls/coll_flash_calls.h"
#include "calls/flash_fallback.h"
#include "job/coll_flash_modex.h"
#include "recdbl/coll_flash_recdbl.h"
#include "ring/coll_flash_ring.h"
#include "shm/coll_flash_shm.h"

static const mca_coll_flash_algorithm_t *const algorithms[] = {
    &mca_coll_flash_shm, &mca_coll_flash_recdbl, &mca_coll_flash_ring};

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
    int rc;

    if (entered) {
        return OMPI_SUCCESS;
    }
    if (!mca_coll_flash_version_fits()) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    entered = true;
    mca_coll_flash_params_register();
    mca_coll_flash_pvars_register();
    rc = register_the_others();
    entered = false;
    return rc;
}

static ompi_hook_base_component_t hooks = {.hookm_mpi_finalize_top = mca_coll_flash_job_flush};

int mca_coll_flash_open(void)
{
    uint32_t ranks = flash_compat_job_size(); /* UINT32_MAX: not known */

    mca_coll_flash_output = opal_output_open(NULL);
    opal_output_set_verbosity(mca_coll_flash_output, mca_coll_flash_params.verbose);
    mca_coll_flash_agree_anew();
    mca_coll_flash_algorithms_open(algorithms, sizeof(algorithms) / sizeof(algorithms[0]));
    mca_coll_flash_job_open();
    flash_compat_hook(&hooks);
    if (ranks > 1) {
        mca_coll_flash_shm_open(ranks == UINT32_MAX ? 0 : mca_coll_flash_seats_bytes(ranks));
        mca_coll_flash_decide_late();
        if (!mca_coll_flash_is_late()) {
            (void) mca_coll_flash_job_open_ucx(); /* a failure is kept, for the agreement to find */
        }
        /* Before MPI_Init commits, and exchanges, what was published. */
        mca_coll_flash_modex_publish(mca_coll_flash_job_transport(), mca_coll_flash_shm_memory());
        mca_coll_flash_release_publish();
    }
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
    mca_coll_flash_unpoll();
    flash_fallback_close();
    mca_coll_flash_summary_close();
    flash_compat_unhook(&hooks);
    mca_coll_flash_job_close();
    mca_coll_flash_seats_fini();
    mca_coll_flash_shm_close();
    mca_coll_flash_recdbl_close();
    mca_coll_flash_drop_deferred();
    mca_coll_flash_requests_fini();
    mca_coll_flash_tags_fini();
    opal_output_close(mca_coll_flash_output);
    return OMPI_SUCCESS;
}
