/*
 * flash_gpu.h: what flash asks of a GPU's driver, and nothing else.
 *
 * A table of functions in a plugin of its own, flash_cuda.so, that is loaded where a driver is: one
 * flash serves nodes with and without GPUs. The plugin knows no MPI and no engine.
 *
 * Any thread may call any of these, but none of them from within `done`, nor with a lock that a
 * function waits for which the driver calls.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_GPU_H
#define FLASH_GPU_H

#include <stdbool.h>
#include <stddef.h>

#define FLASH_GPU_DEVICES 64 /* memory of those beyond is refused */

typedef struct flash_gpu_lane flash_gpu_lane_t; /* where copies to or from a device's memory run */

#define FLASH_GPU_WAYS 2

/* One copy, or sum, under way. Lives until `done` has been called. */
typedef struct flash_gpu_copy flash_gpu_copy_t;
struct flash_gpu_copy {
    void (*done)(flash_gpu_copy_t *copy, bool well); /* called once, by a poll() */
    unsigned way;  /* below FLASH_GPU_WAYS: what goes another one does not wait for it */
    bool pageable; /* one side may be the host's memory that is not pinned */
    /* The plugin's. */
    flash_gpu_copy_t *next;
    void *event, *to;
    const void *from;
    size_t rest; /* bytes that the driver has not been given yet */
    bool well;
};

/*
 * Reductions, as MPI's of those names (MPI 3.1, section 5.9.2), and the types they are for: what
 * else there is, there is no kernel for. F16 and BF16 add in 32 bits.
 */
typedef enum flash_gpu_operator {
    FLASH_GPU_SUM,
    FLASH_GPU_PROD,
    FLASH_GPU_MAX,
    FLASH_GPU_MIN,
    FLASH_GPU_LAND,
    FLASH_GPU_LOR,
    FLASH_GPU_LXOR,
    FLASH_GPU_BAND,
    FLASH_GPU_BOR,
    FLASH_GPU_BXOR,
    FLASH_GPU_OPERATORS
} flash_gpu_operator_t;

typedef enum flash_gpu_type {
    FLASH_GPU_I8,
    FLASH_GPU_I16,
    FLASH_GPU_I32,
    FLASH_GPU_I64,
    FLASH_GPU_U8,
    FLASH_GPU_U16,
    FLASH_GPU_U32,
    FLASH_GPU_U64,
    FLASH_GPU_F16,
    FLASH_GPU_BF16,
    FLASH_GPU_F32,
    FLASH_GPU_F64,
    FLASH_GPU_TYPES
} flash_gpu_type_t;

typedef struct flash_gpu_kernel flash_gpu_kernel_t;

/*
 * Bytes of the blocks in which a device's memory is shared with other processes. Shorter
 * allocations share one, which another process cannot map for both of them.
 */
#define FLASH_GPU_BLOCK ((size_t) 2 << 20)

typedef struct flash_gpu_ops {
    /*
     * A lane for copies to and from that memory, in the context that it belongs to, or else in its
     * device's primary one, until it is closed. The application has waited for what it did to the
     * memory; they come behind copies and fills of the default streams that may have returned
     * before they were done, cudaMemcpy() and cudaMemset(). With a `stream` (*stream is a
     * CUstream), the lane is in its context, and they come behind what it holds now, and nothing
     * else. NULL: the driver refuses, or there is no memory, or the stream is captured into a
     * graph, or of another device than the memory.
     */
    flash_gpu_lane_t *(*open)(const void *address, void *const *stream);
    /* Whether an open lane, of the same stream or of none, is for that memory as well; if so, as
       above. */
    bool (*serves)(flash_gpu_lane_t *lane, const void *address);
    /*
     * Has what an open lane copies to or from that memory come behind copies and fills of the default
     * streams as well, as above: one buffer may have blocks in several allocations. In the thread that
     * has opened it, and before its first copy. False: the driver refuses. Takes next to no time for
     * memory of the allocation asked for last.
     */
    bool (*covers)(flash_gpu_lane_t *lane, const void *address);
    /* Bytes from that address of a device's to the end of its allocation; 0: the driver does not
       tell. It refuses copies that go beyond. */
    size_t (*reach)(const void *address);
    /* Two lanes of one operation: each comes behind what the other one does. */
    void (*join)(flash_gpu_lane_t *lane, flash_gpu_lane_t *other);
    /* Each copy's `done` has been called. Waits until those who began them have returned. */
    void (*close)(flash_gpu_lane_t *lane);
    /* Frees what lanes have left for each other: all are closed. Others may be opened. */
    void (*end)(void);
    /* Its device's number, below FLASH_GPU_DEVICES. */
    int (*device)(const flash_gpu_lane_t *lane);
    /* Whether its context is its device's primary one, in which allocate_direct()'s memory is. */
    bool (*is_at_home)(const flash_gpu_lane_t *lane);
    /*
     * Memory for lanes of the device *number; one has been opened before. NULL if there is none.
     * Pinned memory of the host's, of the NUMA node that is next to the device, which lanes of
     * others reach as well; or the device's own, which a network or another process may be told of
     * if it has whole blocks. All of these may wait for the device, and for whatever its callbacks
     * wait for.
     */
    void *(*allocate_pinned)(void *number, size_t size);
    void (*release_pinned)(void *number, void *memory, size_t size);
    void *(*allocate_direct)(void *number, size_t size);
    void (*release_direct)(void *number, void *memory, size_t size);
    /*
     * Settles, once for all, in the primary context of a device: false if it is another one's. The
     * calling thread enters it, whatever context it has, and leaves it again.
     */
    bool (*settle)(int device);
    void (*enter_home)(void);
    void (*leave_home)(void);
    /* The thread enters the lane's context, once at a time, and leaves it if it could. */
    bool (*enter)(const flash_gpu_lane_t *lane);
    void (*leave)(void);
    /* Memory of the lane's device, until it is freed, by when nothing uses it; or NULL. */
    void *(*allocate_on_device)(flash_gpu_lane_t *lane, size_t size);
    void (*release_on_device)(flash_gpu_lane_t *lane, void *memory);
    /*
     * Begins a copy between memory of any kind, in any order with others of the lane. False: it has
     * not begun, or is over, and `done` will not be called.
     */
    bool (*begin)(flash_gpu_lane_t *lane, void *to, const void *from, size_t size,
                  flash_gpu_copy_t *copy);
    /* Copies, behind what `stream` holds if it is not NULL, and waits for it; of size 0, for that
       alone. */
    bool (*copy)(flash_gpu_lane_t *lane, void *const *stream, void *to, const void *from,
                 size_t size);
    /* Has `done` called when what `stream` holds now is done. False as of begin(). */
    bool (*notify)(flash_gpu_lane_t *lane, void *stream, flash_gpu_copy_t *copy);
    /* A kernel of the lane's device that also reaches `output`; NULL: there is none. */
    const flash_gpu_kernel_t *(*kernel)(flash_gpu_lane_t *lane, const void *output,
                                        flash_gpu_operator_t operation, flash_gpu_type_t type);
    /*
     * Begins out[k] = in[k] op inout[k], as a copy is begun: each in memory of the lane's device,
     * of `output`, or from one of allocate_*(). `out` may be `inout`.
     */
    bool (*combine)(flash_gpu_lane_t *lane, const flash_gpu_kernel_t *kernel, const void *in,
                    const void *inout, void *out, size_t count, flash_gpu_copy_t *copy);
    /*
     * Looks what is done of all that has been begun, and calls its `done`, with an error of the
     * device's as well. Copies of pageable memory are made here, for about a millisecond at most.
     * Whether there was any of both. While one thread does so, others return at once.
     */
    bool (*poll)(void);
    /* Whether poll() may find something, now or later. Takes next to no time. */
    bool (*busy)(void);
    /* What the driver last refused, in its own words, and what that may come from. */
    const char *(*complaint)(void);
} flash_gpu_ops_t;

/*
 * What the plugin exports: NULL if the process has not loaded a driver, or one that is too old, and
 * then a sentence about it. The same table each time.
 */
#define FLASH_GPU_SYMBOL "flash_gpu_plugin_6"
typedef const flash_gpu_ops_t *flash_gpu_plugin_fn(const char **reason);

#endif /* FLASH_GPU_H */
