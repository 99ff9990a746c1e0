/*
 * coll_flash_params.c: parameters: their values, and how one is declared.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_params_internal.h"

#include "engine/flash_pool.h"
#include "settings/coll_flash_costs.h"

mca_coll_flash_params_t mca_coll_flash_params = {
    .priority = FLASH_DEFAULT_PRIORITY,
    .progress = FLASH_PROGRESS_AUTO,
    .bind = true,
    .ring_order = FLASH_ORDER_MACHINE,
    .on_node = FLASH_ON_NODE_AUTO,
    .setup = FLASH_SETUP_AUTO,
    .any_fabric = false,
    .algorithm = FLASH_AUTO,
    .costs = NULL,
    .blocking = FLASH_BLOCKING_AUTO,
    .shm = FLASH_SHM_AUTO,
    .callback_thread = false,
    .segment_window = 32,
    .max_sends = 8,
    .scratch_cache_bytes = FLASH_POOL_LARGEST,
    .pinned_bytes = (size_t) 64 << 20,
    .cuda_cache_bytes = (size_t) 320 << 20, /* a block of 256 MiB, and the segments under way */
    .probe_seconds = 5,
    .stall_seconds = 60,
    .stall_error = false,
    .verbose = 0,
    .summary = false,
    .trace = NULL,
    .help_dir = NULL,
};
const char *const mca_coll_flash_shm_names[] = {[FLASH_SHM_NO] = "no",
                                                [FLASH_SHM_COPY] = "copy",
                                                [FLASH_SHM_AUTO] = "auto",
                                                [FLASH_SHM_READ] = "read"};
const char *const mca_coll_flash_blocking_names[] = {
    [FLASH_BLOCKING_NO] = "no", [FLASH_BLOCKING_AUTO] = "auto", [FLASH_BLOCKING_YES] = "yes"};
int mca_coll_flash_output = -1;

int mca_coll_flash_register_variable(const char *name, mca_base_var_type_t type,
                                     mca_base_var_enum_t *enumerator, mca_base_var_info_lvl_t level,
                                     mca_base_var_scope_t scope, void *storage, const char *help)
{
    /* DWG: forgotten when the component is closed; its storage goes away with the library. */
    int index = mca_base_var_register("ompi", "coll", "flash", name, help, type, enumerator, 0,
                                      MCA_BASE_VAR_FLAG_DWG, level, scope, storage);

    return index < 0 ? index : OMPI_SUCCESS;
}

void mca_coll_flash_register_choice(const char *name, const mca_base_var_enum_value_t *words,
                                    mca_base_var_info_lvl_t level, mca_base_var_scope_t scope,
                                    int *storage, const char *help)
{
    mca_base_var_enum_t *values = NULL;

    mca_base_var_enum_create(name, words, &values);
    mca_coll_flash_register_variable(name, MCA_BASE_VAR_TYPE_INT, values, level, scope, storage,
                                     help);
    if (values != NULL) {
        OBJ_RELEASE(values); /* the variable holds it */
    }
}
