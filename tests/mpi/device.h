/*
 * device.h: buffers in the memory of a device, by CUDA's driver or what stands in for it.
 *
 * FLASH_TEST_DRIVER in the environment is the path of the driver; default: the system's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* IN_OTHER: in another device's, where there is one; beside what PLACES counts. */
typedef enum { IN_HOST, IN_PINNED, IN_MANAGED, IN_DEVICE, PLACES, IN_OTHER } place_t;

/* Memory between two canaries. */
typedef struct buffer {
    place_t place;
    size_t bytes;
    void *data;
} buffer_t;

/* Whether it is a device's memory. */
static inline bool is_in_device(place_t place)
{
    return place == IN_DEVICE || place == IN_OTHER;
}

/* Loads the driver, once, and gives the thread a context. Ends the program if it cannot. */
void device_open(void);

/* Whatever fails here ends the program. */
buffer_t buffer_make(place_t place, size_t bytes);
void buffer_write(const buffer_t *buffer, const void *content); /* `bytes` of it */
void buffer_read(const buffer_t *buffer, void *content);
/* Frees it. False: a canary has changed. */
bool buffer_free(buffer_t *buffer);

/* `bytes` from anywhere in a device's memory to the host, and the other way. */
void device_fetch(void *to, const void *from, size_t bytes);
void device_put(void *to, const void *from, size_t bytes);
/* An allocation of a device's, with nothing around it. */
void *device_take(size_t bytes);
void device_give(void *memory);

/* A stream of a device; NULL: there is no such device. */
void *stream_make(int device);
void stream_free(void *stream);
/* Copies between memory of any kind, after all that the stream holds. Returns at once. */
void stream_copy(void *stream, void *to, const void *from, size_t bytes);
bool stream_wait(void *stream); /* false: something there has failed */
/* Begins or ends to capture it into a graph, which is then dropped. */
void stream_capture(void *stream, bool begin);
/* Gives the calling thread a context, as an application that uses a default stream has one. */
void device_enter(void);
void device_leave(void);

/*
 * The stand-in's nth call of that function fails, from now on; NULL: none does, and what an error
 * has broken is whole again.
 */
void device_fail(const char *name, unsigned long nth);

/* Waits for all that the stand-in's streams hold, as memory that is made and freed does. */
void device_drain(void);
/* Has buffer_write() to a device end so much later than it returns, with the stand-in. */
void device_lag(unsigned milliseconds);
/* Of the stand-in's allocations, every other one is as if of a pool: the next one is of the kind that
   the one after it would have been. */
void device_skip_kind(void);
/* Where the processor reaches a device's memory, by the stand-in; NULL if it is none. */
void *device_reach(const void *address, size_t size);
/* Whether another process could map it, by the stand-in: in its blocks of 2 MiB is nothing else. */
bool device_is_alone(const void *address);
bool device_has_context(void); /* the calling thread */

/* What the stand-in has made and nobody has freed; 0 with any other driver. */
int device_streams(void);
int device_events(void);
unsigned long device_made(void); /* streams, events and pieces of pinned memory, ever */
int device_pinned(void);
size_t device_largest_pinned(void); /* bytes of a piece that was made since the last call */
int device_registered(void);        /* ordinary memory that is pinned now */
int device_on_device(void);         /* pieces of devices' memory */
int device_retained(void);          /* primary contexts */
unsigned long device_launches(void);
bool device_is_standin(void);
bool device_is_broken(void); /* by an error: then what is read from it means nothing */
int device_pushed(void);     /* contexts of this thread */

#endif /* DEVICE_H */
