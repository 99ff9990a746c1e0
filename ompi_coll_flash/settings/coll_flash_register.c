/*
 * coll_flash_register.c: all parameters, declared to Open MPI.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_costs.h"
#include "settings/coll_flash_params_internal.h"

void mca_coll_flash_params_register(void)
{
    mca_coll_flash_params_t before = mca_coll_flash_params;

    mca_coll_flash_register_paths();
    mca_coll_flash_register_tuning();
    mca_coll_flash_register_devices();
    mca_coll_flash_register_faults();
    if (mca_coll_flash_params.help_dir != NULL) {
        opal_show_help_add_dir(mca_coll_flash_params.help_dir);
    }
    mca_coll_flash_param_check(&before);
    mca_coll_flash_costs_open();
}
