/*
 * coll_flash_params_internal.h: what the files that declare parameters have in common.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_PARAMS_INTERNAL_H
#define COLL_FLASH_PARAMS_INTERNAL_H

#include "settings/coll_flash_params.h"

/* coll_flash_NAME, with its help text, which docs/man takes from the sources. */
int mca_coll_flash_register_variable(const char *name, mca_base_var_type_t type,
                                     mca_base_var_enum_t *enumerator, mca_base_var_info_lvl_t level,
                                     mca_base_var_scope_t scope, void *storage, const char *help);
/* One that takes one of some words. */
void mca_coll_flash_register_choice(const char *name, const mca_base_var_enum_value_t *words,
                                    mca_base_var_info_lvl_t level, mca_base_var_scope_t scope,
                                    int *storage, const char *help);

/* By which algorithm a call goes. */
void mca_coll_flash_register_paths(void);
/* How a ring goes: progress, order, segments; and what is told of it. */
void mca_coll_flash_register_tuning(void);
/* The memory of devices. */
void mca_coll_flash_register_devices(void);
/* Processes that are late, or gone. */
void mca_coll_flash_register_faults(void);

#endif /* COLL_FLASH_PARAMS_INTERNAL_H */
