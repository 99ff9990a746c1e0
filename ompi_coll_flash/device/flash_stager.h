/*
 * flash_stager.h: operations on the memory of GPUs, which go through pinned memory of the host, or
 * through memory of the GPU's that the transport reaches.
 *
 * Knows no MPI, and GPUs by flash_gpu.h alone, whose plugin it loads once a buffer needs it. None
 * of these is to be called under the lock of the progress: the driver may wait for callbacks of the
 * application's, and these for that lock.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_STAGER_H
#define FLASH_STAGER_H

#include <stdbool.h>
#include <stddef.h>

#include "device/flash_gpu.h"
#include "progress/flash_progress.h"

typedef struct flash_stager flash_stager_t; /* one operation's */

/* Memory of a pool's; pool NULL: none, or it is not to be used again. */
typedef struct flash_loan {
    struct flash_pool *pool;
    void *memory;
    size_t size;
} flash_loan_t;

/* Loads the plugin at that path, once. False: it cannot be used, and why. */
#define FLASH_STAGER_REASON_MAX 1024
/* `keeps`: memory that an operation takes of a device's, or pinned, is kept up to so many bytes. */
bool flash_stager_load(const char *plugin, size_t keeps, char *reason);

/* A stream of the application's that an operation takes its place in. Outlives the operation. */
typedef struct flash_stager_order {
    void *stream;
    bool produces; /* the callback's results are to be in memory of the stream's device */
    bool awaits;   /* what it writes elsewhere is there when the stream is done */
} flash_stager_order_t;

/*
 * For an operation with an input or an output, or both, in a device's memory; NULL: not in one, or
 * none. `order`: NULL for none. The plugin has been loaded. FLASH_OK, FLASH_ERR_NO_MEMORY,
 * FLASH_ERR_DEVICE.
 */
int flash_stager_open(flash_progress_t *progress, const void *input, const void *output,
                      const flash_stager_order_t *order, flash_stager_t **stager);
/*
 * Has what is copied to or from a block of its input, or of its output, come behind what may still
 * write to it: of a block that lies in another allocation than the first one. In the thread that has
 * opened it, and before the first copy. False: the driver refuses.
 */
bool flash_stager_covers(const flash_stager_t *stager, bool input, const void *block);
/* Bytes from that address to the end of its allocation, which no copy may go beyond; 0: unknown. */
size_t flash_stager_reach(const void *address);
/* Of an operation that is complete, or was never started. NULL: does nothing. */
void flash_stager_close(flash_stager_t *stager);
/* The same of one whose scratch something may still write to: that memory is never used again. */
void flash_stager_abandon(flash_stager_t *stager);
/*
 * Has an operation staged whose parameters are complete but for that, and finds memory for it:
 * pinned, or with `direct`, if it can be, of the device (params->scratch_on_device). FLASH_OK,
 * FLASH_ERR_NO_MEMORY or FLASH_ERR_DEVICE.
 */
int flash_stager_fill(flash_stager_t *stager, bool direct, flash_op_params_t *params);
/*
 * Whether that memory, if it is the host's, is pinned: a pairwise reduce-scatter's is not if that
 * would be more than its bound.
 */
bool flash_stager_pins(const flash_stager_t *stager);
/* Bytes of that pinned memory, if it is too much to be kept; else 0. */
size_t flash_stager_unkept(const flash_stager_t *stager);
/* Has sums made on the device, before flash_stager_fill(): whether it has a kernel for them. */
bool flash_stager_add_by(flash_stager_t *stager, const void *output, flash_gpu_operator_t operation,
                         flash_gpu_type_t type);
/*
 * A callback has returned with that status, and left work in the order's stream: FLASH_PENDING, and
 * the piece is done when that is, or an error.
 */
int flash_stager_await(flash_stager_t *stager, flash_op_t *op, uint64_t number, int status);
/*
 * For a callback in a thread of flash's: makes the context of its buffers, or of the order's
 * stream, the current one, until the thread leaves it. NULL, or false: there is none.
 */
bool flash_stager_enter(const flash_stager_t *stager);
void flash_stager_leave(void);
/*
 * Without an engine: memory of the order's device, once, and its content behind what its stream
 * holds by then, which is waited for.
 */
int flash_stager_make_pieces(flash_stager_t *stager, size_t size, void **pieces);
bool flash_stager_fetch_pieces(const flash_stager_t *stager, void *to, size_t size);
/* Waits for what the order's stream holds. */
bool flash_stager_wait(const flash_stager_t *stager);
/* Copies to or from the memory of its input, or of its output, and waits for it. */
bool flash_stager_copy(const flash_stager_t *stager, bool input, void *to, const void *from,
                       size_t size);
/*
 * Begins such a copy. Whoever polls calls copy->done, in any thread; copy->way: a copy of another
 * way does not wait for it. False: it has not begun, or is over, and nobody will.
 */
bool flash_stager_begin(const flash_stager_t *stager, bool input, void *to, const void *from,
                        size_t size, flash_gpu_copy_t *copy);
/* Looks for copies that are done, of all operations. */
void flash_stager_poll(void);
/*
 * Pinned memory for copies of a stager's, which it outlives: no more than is kept for the next one.
 * False: there is none.
 */
bool flash_stager_borrow(const flash_stager_t *stager, size_t size, flash_loan_t *loan);
/* Gives it back, if there is any. */
void flash_stager_repay(flash_loan_t *loan);
/* What the driver last refused. */
const char *flash_stager_complaint(void);
/* Frees what operations have left for each other, once there are no more of them. */
void flash_stager_fini(void);

#endif /* FLASH_STAGER_H */
