/*
 * coll_flash_handle.h: what each of flash's requests is to Open MPI and to whoever holds it: how it
 * is freed, completed and recycled.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_HANDLE_H
#define COLL_FLASH_HANDLE_H

#include "compat/coll_flash_compat.h"

#include <stdatomic.h>
#include <stdbool.h>

/* A part of each kind of request, see coll_flash_deferred_free.c. */
typedef struct mca_coll_flash_deferred_free {
    struct mca_coll_flash_deferred_free *next;
    ompi_request_t *request;
    void (*free_it)(ompi_request_t *request);
} mca_coll_flash_deferred_free_t;

/* What such a request begins with. */
typedef struct mca_coll_flash_handle {
    ompi_coll_base_nbc_request_t super;
    mca_coll_flash_deferred_free_t deferred_free;
    atomic_int holders; /* the last one recycles it, see coll_flash_handle.c */
    /* The one that completes when this one is recycled, and how; or NULL. */
    ompi_request_t *persistent;
    void (*complete_persistent)(ompi_request_t *persistent, int error);
    void (*recycle)(struct mca_coll_flash_handle *handle); /* gives its memory back */
} mca_coll_flash_handle_t;

OBJ_CLASS_DECLARATION(mca_coll_flash_handle_t);

/* Makes it an inactive request of that communicator, which it keeps, with one holder: its user. */
void mca_coll_flash_handle_init(mca_coll_flash_handle_t *handle, ompi_communicator_t *comm,
                                bool persistent, void (*recycle)(mca_coll_flash_handle_t *handle));
/* Makes it active: what completes it holds it, too. */
ompi_request_t *mca_coll_flash_handle_begin(mca_coll_flash_handle_t *handle);
/* In an application thread, once for each beginning. */
void mca_coll_flash_handle_complete(mca_coll_flash_handle_t *handle, int error);
/* One holder less, of a request that its user has not got. */
void mca_coll_flash_handle_leave(mca_coll_flash_handle_t *handle);

/*
 * For the function that frees a request: whether it has failed. Then this thread's next operation
 * frees it, by free_it().
 */
bool mca_coll_flash_defer_free(ompi_request_t *request,
                               mca_coll_flash_deferred_free_t *deferred_free,
                               void (*free_it)(ompi_request_t *request));
/* Frees those of this thread. */
void mca_coll_flash_free_deferred(void);
/* When the component is closed: no thread touches any more what it has set aside. */
void mca_coll_flash_drop_deferred(void);

#endif /* COLL_FLASH_HANDLE_H */
