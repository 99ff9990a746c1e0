/*
 * flash_gpu.h: what flash asks of a GPU's driver, and nothing else.
 *
 * A table of functions in a plugin of its own, flash_cuda.so, that is loaded where a driver is: one
 * flash serves nodes with and without GPUs. The plugin knows no MPI and no engine.
 *
 * Any thread may call any of these, but none of them from within `done`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_GPU_H
#define FLASH_GPU_H

#include <stdbool.h>
#include <stddef.h>

typedef struct flash_gpu_lane flash_gpu_lane_t; /* where copies to or from a device's memory run */

/* One copy under way. Lives until `done` has been called. */
typedef struct flash_gpu_copy flash_gpu_copy_t;
struct flash_gpu_copy {
    /* Called once, in a thread of the driver's, which is not to wait for anything there. */
    void (*done)(flash_gpu_copy_t *copy, bool well);
    flash_gpu_lane_t *lane; /* the plugin's */
};

typedef struct flash_gpu_ops {
    /*
     * A lane for copies to and from that memory, in the context that it belongs to, or else in its
     * device's primary one. They come behind what the calling thread's default streams hold now.
     * NULL: the driver refuses, or there is no memory.
     */
    flash_gpu_lane_t *(*open)(const void *address);
    /* All copies are done. Waits until those who began them, and each `done`, have returned. */
    void (*close)(flash_gpu_lane_t *lane);
    /*
     * Pinned memory for any lane; one has been opened before. NULL if there is none. Both may wait
     * for the device, and for whatever its callbacks wait for.
     */
    void *(*allocate)(void *unused, size_t size);
    void (*release)(void *unused, void *memory);
    /*
     * Begins a copy between memory of any kind, in any order with others of the lane. False: it has
     * not begun, and `done` will not be called.
     */
    bool (*begin)(flash_gpu_lane_t *lane, void *to, const void *from, size_t size,
                  flash_gpu_copy_t *copy);
    /* Copies, and waits for it. */
    bool (*copy)(flash_gpu_lane_t *lane, void *to, const void *from, size_t size);
    /* What the driver last refused, in its own words. */
    const char *(*complaint)(void);
} flash_gpu_ops_t;

/*
 * What the plugin exports: NULL if the process has not loaded a driver, or one that is too old. The
 * same table each time.
 */
#define FLASH_GPU_SYMBOL "flash_gpu_plugin_1"
typedef const flash_gpu_ops_t *flash_gpu_plugin_fn(void);

#endif /* FLASH_GPU_H */
