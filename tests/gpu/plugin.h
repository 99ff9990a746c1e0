/*
 * plugin.h: the plugin for CUDA, loaded from where the project is built.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PLUGIN_H
#define PLUGIN_H

#include "device/flash_gpu.h"

/*
 * Loads a library of the build folder, whose path begins there. Ends the program if there is none.
 */
void *plugin_load_library(const char *path);
/* What the plugin exports. */
flash_gpu_plugin_fn *plugin_load(void);

#endif /* PLUGIN_H */
