/*
 * mca_coll_flash.c: what Open MPI loads: the component's structure. All the rest is in
 * libmpix_flash, which applications link too.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"

extern mca_coll_base_component_t mca_coll_flash_component;

mca_coll_base_component_t mca_coll_flash_component = {
    .collm_version =
        {
            FLASH_COLL_VERSION,
            .mca_component_name = "flash",
            MCA_BASE_MAKE_VERSION(component, FLASH_MAJOR_VERSION, FLASH_MINOR_VERSION,
                                  FLASH_RELEASE_VERSION),
            .mca_open_component = mca_coll_flash_open,
            .mca_close_component = mca_coll_flash_close,
            .mca_register_component_params = mca_coll_flash_register,
        },
    .collm_data.param_field = MCA_BASE_METADATA_PARAM_NONE,
    .collm_init_query = mca_coll_flash_init_query,
    .collm_comm_query = mca_coll_flash_comm_query,
};
