/*
 * flash_cuda.h: what the plugin's files share. flash_cuda.c has the driver and contexts,
 * flash_cuda_memory.c memory, flash_cuda_lane.c the lanes, flash_cuda_order.c what they come
 * behind, flash_cuda_copy.c what runs in them, flash_cuda_pageable.c copies that would make a thread
 * wait, flash_cuda_track.c how one learns that it is done, flash_cuda_kernel.c the sums.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_CUDA_H
#define FLASH_CUDA_H

#include "device/flash_gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "flash_cuda_driver.h"

/* The first tracks of a lane have a stream; the last one follows the application's. */
#define FLASH_CUDA_STREAMS FLASH_GPU_WAYS
#define FLASH_CUDA_NOTICES FLASH_CUDA_STREAMS
#define FLASH_CUDA_TRACKS  (FLASH_CUDA_STREAMS + 1)
#define FLASH_CUDA_ORDERS  2 /* events of streams that a lane comes behind */

/* What has been begun, oldest first; see flash_cuda_track.c. */
typedef struct flash_cuda_track flash_cuda_track_t;
struct flash_cuda_track {
    flash_gpu_lane_t *lane;
    CUstream stream;   /* NULL: the application's */
    bool comes_behind; /* the lane's `orders`, already; under its mutex */
    flash_gpu_copy_t *first, *last;
    flash_cuda_track_t *next;
};

/* Where a lane's streams are. The id is no other context's, ever; an address may become one's. */
typedef struct flash_cuda_place {
    CUcontext context;
    CUdevice device;
    unsigned long long id;
} flash_cuda_place_t;

/* An operation's, and kept for the next one. */
struct flash_gpu_lane {
    flash_cuda_place_t place;
    flash_gpu_lane_t *next;        /* of those that are kept */
    const flash_gpu_lane_t *other; /* of the same operation, in another context; or NULL */
    bool ordered;                  /* by a stream of the application's */
    flash_cuda_track_t tracks[FLASH_CUDA_TRACKS];
    CUevent orders[FLASH_CUDA_ORDERS];
    unsigned order;    /* so many of these */
    uintptr_t covered; /* the allocation asked for last: where it begins, and its bytes, or 0 */
    size_t covered_size;
    CUevent *spare; /* `spares` of `events`: the others are in tracks, or among the orders */
    unsigned spares, events;
    pthread_mutex_t mutex; /* what comes into the streams, and in which order */
    atomic_bool failed;    /* relaxed: it is not to be used again */
    /* Whether nobody knows when the application's stream is done with what callbacks left in it;
       relaxed, before the operation ends. */
    atomic_bool unwaited;
    CUstream users;     /* that stream, once it has been asked for */
    atomic_uint inside; /* calls that begin something, and have not returned: who leaves releases
                              what it did there, who closes acquires that */
};

/* flash_cuda.c */
extern flash_cuda_driver_t flash_cuda_driver;
/* Notes what the driver refuses. */
bool flash_cuda_well(CUresult result);

/* What flash does is none of a graph's that the application may be capturing. */
typedef struct flash_cuda_visit {
    CUstreamCaptureMode mode;
} flash_cuda_visit_t;

bool flash_cuda_enter(CUcontext context, flash_cuda_visit_t *visit);
void flash_cuda_leave(flash_cuda_visit_t *visit);
/* A device's primary context, kept; or NULL. */
CUcontext flash_cuda_home(CUdevice device);

/* flash_cuda_order.c */
bool flash_cuda_ask(void *answer, CUpointer_attribute attribute, const void *address);
/* The context that it belongs to; or NULL: to none, as a pool's, or what is mapped piece by piece. */
CUresult flash_cuda_ask_owner(CUcontext *owner, const void *address);
/* STREAM_CAPTURE_UNSUPPORTED: it is captured into a graph; or an error. */
CUresult flash_cuda_ask_captured(CUstream stream);
/*
 * The lane comes behind what that stream holds; or, with NULL, behind what of the default streams'
 * may still write to `address`, or read it. In its context.
 */
bool flash_cuda_find_order(flash_gpu_lane_t *lane, void *const *stream, const void *address);
/* See flash_gpu.h. */
bool flash_cuda_covers(flash_gpu_lane_t *lane, const void *address);
size_t flash_cuda_reach(const void *address);
void flash_cuda_forget_order(flash_gpu_lane_t *lane);
/* A track's stream comes behind what the lane does. In its context, with its mutex. */
CUresult flash_cuda_come_behind(flash_cuda_track_t *track);

/* flash_cuda_lane.c */
flash_gpu_lane_t *flash_cuda_open(const void *address, void *const *stream);
void flash_cuda_close(flash_gpu_lane_t *lane);
int flash_cuda_device(const flash_gpu_lane_t *lane);
bool flash_cuda_is_at_home(const flash_gpu_lane_t *lane);
bool flash_cuda_enter_lane(const flash_gpu_lane_t *lane);
void flash_cuda_leave_lane(void);
bool flash_cuda_device_of(const void *address, CUdevice *device);
bool flash_cuda_serves(flash_gpu_lane_t *lane, const void *address);
void flash_cuda_join(flash_gpu_lane_t *lane, flash_gpu_lane_t *other);
void flash_cuda_end(void);

/* flash_cuda_memory.c */
void *flash_cuda_allocate_pinned(void *number, size_t size);
void flash_cuda_release_pinned(void *number, void *memory, size_t size);
void *flash_cuda_allocate_direct(void *number, size_t size);
void flash_cuda_release_direct(void *number, void *memory, size_t size);
void *flash_cuda_allocate_on_device(flash_gpu_lane_t *lane, size_t size);
void flash_cuda_release_on_device(flash_gpu_lane_t *lane, void *memory);

/* flash_cuda_track.c */
/* In the lane's context: takes an event of its own; and records what the stream holds. */
CUresult flash_cuda_take_event(flash_gpu_lane_t *lane, CUevent *event);
bool flash_cuda_record(flash_gpu_lane_t *lane, CUstream stream, CUevent *event);
void flash_cuda_keep_event(flash_gpu_lane_t *lane, CUevent event);
/* The copy's event has been recorded, or it has `rest`. */
void flash_cuda_follow(flash_cuda_track_t *track, flash_gpu_copy_t *copy);
/* Nobody will know when that stream of callbacks is done: see `unwaited`. */
void flash_cuda_lose_sight(flash_gpu_lane_t *lane, CUstream stream);
bool flash_cuda_busy(void);
bool flash_cuda_poll(void);

/* flash_cuda_pageable.c */
/* Whether it is of the host's that the driver does not know. */
bool flash_cuda_is_pageable(const void *address);
/*
 * The oldest copy of a track, of which nothing is under way: gives the driver the next piece, if it
 * may come already. NOT_READY, or an error. In the lane's context, in the thread that polls.
 */
CUresult flash_cuda_advance(flash_cuda_track_t *track, flash_gpu_copy_t *copy);

/* flash_cuda_copy.c */
bool flash_cuda_begin(flash_gpu_lane_t *lane, void *to, const void *from, size_t size,
                      flash_gpu_copy_t *copy);
bool flash_cuda_copy(flash_gpu_lane_t *lane, void *const *stream, void *to, const void *from,
                     size_t size);
/*
 * If that fails, now or later, what callbacks write to there is freed in the order of the stream.
 */
bool flash_cuda_notify(flash_gpu_lane_t *lane, void *stream, flash_gpu_copy_t *copy);
bool flash_cuda_combine(flash_gpu_lane_t *lane, const flash_gpu_kernel_t *kernel, const void *in,
                        const void *inout, void *out, size_t count, flash_gpu_copy_t *copy);

/* flash_cuda_kernel.c */
const flash_gpu_kernel_t *flash_cuda_kernel(flash_gpu_lane_t *lane, const void *output,
                                            flash_gpu_operator_t operation, flash_gpu_type_t type);
CUresult flash_cuda_launch(const flash_gpu_kernel_t *kernel, const void *in, const void *inout,
                           void *out, size_t count, CUstream stream);

#endif /* FLASH_CUDA_H */
