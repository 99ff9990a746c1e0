/*
 * test_old_driver.c: what the plugin says where there is no driver, and where it is too old.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "../unit/tap.h"
#include "plugin.h"

static flash_gpu_plugin_fn *ask;
static const char *reason;

/* Whether there is no table, and why. */
static bool is_refused(void)
{
    reason = "";
    return ask(&reason) == NULL;
}

static bool says(const char *what)
{
    return strstr(reason, what) != NULL;
}

int main(void)
{
    ask = plugin_load();
    ok(is_refused() && says("not loaded CUDA's driver"), "no driver");
    plugin_load_library("tests/gpu/old/.libs/libcuda.so.1");
    ok(is_refused() && says("of CUDA 11.8"), "an old one: which");
    ok(says("it has no cuCtxGetId"), "what it lacks");
    ok(says("CUDA 12.0 (525.60) or later"), "and which one has it");
    return tap_done();
}
