/*
 * coll_flash_op_id.c: the operation ids that tell a communicator's operations apart in tags.
 *
 * Those of calls come round again: an operation that has an id still must end before the next one
 * takes it. (When it has ended here, the neighbours have no message of it under way to here, nor
 * from here but such as have left and come before any later one.) A call returns at once all the
 * same: its request waits, with all that its ring needs, and is started by whoever completes the
 * one before. A persistent request's id is its own.
 *
 * `op_ids_mutex` protects the modules' `taken` and `waiting`. An id is handed over without being
 * free in between: so nobody overtakes who waits for it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_ring.h"

#include <pthread.h>

static pthread_mutex_t op_ids_mutex = PTHREAD_MUTEX_INITIALIZER;

mca_coll_flash_ticket_t mca_coll_flash_ring_ticket(mca_coll_flash_module_t *module)
{
    return (mca_coll_flash_ticket_t){.algorithm = &mca_coll_flash_ring,
                                     .sequence = module->sequence++ & (FLASH_CALL_SEQUENCES - 1),
                                     .settings = &module->settings};
}

flash_op_params_t *mca_coll_flash_op_id_waiting(const mca_coll_flash_request_t *request)
{
    return request->algorithm_state;
}

static bool take(const mca_coll_flash_request_t *request)
{
    uint64_t bit = UINT64_C(1) << request->sequence % 64;
    uint64_t *taken = &request->module->taken[request->sequence / 64];
    bool was_free = (*taken & bit) == 0;

    *taken |= bit;
    return was_free;
}

/* Open MPI's free list, whose item a request is, has no use for it meanwhile. */
static opal_list_item_t *as_item(mca_coll_flash_request_t *request)
{
    return &request->handle.super.super.super.super;
}

bool mca_coll_flash_op_id_take_or_wait(mca_coll_flash_request_t *request,
                                       const flash_op_params_t *params)
{
    bool taken;

    if (request->sequence >= FLASH_CALL_SEQUENCES) {
        return true;
    }
    pthread_mutex_lock(&op_ids_mutex);
    taken = take(request);
    if (!taken) {
        *mca_coll_flash_op_id_waiting(request) = *params;
        mca_coll_flash_op_id_waiting(request)->flow = NULL; /* it starts behind younger ones */
        opal_list_append(&request->module->waiting, as_item(request));
    }
    pthread_mutex_unlock(&op_ids_mutex);
    return taken;
}

static mca_coll_flash_request_t *first_waiting(mca_coll_flash_module_t *module, uint32_t op_id)
{
    opal_list_item_t *item;

    for (item = opal_list_get_first(&module->waiting); item != opal_list_get_end(&module->waiting);
         item = opal_list_get_next(item)) {
        if (((mca_coll_flash_request_t *) item)->sequence == op_id) {
            return (mca_coll_flash_request_t *) item;
        }
    }
    return NULL;
}

mca_coll_flash_request_t *mca_coll_flash_op_id_leave(const mca_coll_flash_request_t *request)
{
    mca_coll_flash_module_t *module = request->module;
    mca_coll_flash_request_t *next;

    if (request->sequence >= FLASH_CALL_SEQUENCES) {
        return NULL;
    }
    pthread_mutex_lock(&op_ids_mutex);
    next = first_waiting(module, request->sequence);
    if (next != NULL) {
        opal_list_remove_item(&module->waiting, as_item(next));
    } else {
        module->taken[request->sequence / 64] &= ~(UINT64_C(1) << request->sequence % 64);
    }
    pthread_mutex_unlock(&op_ids_mutex);
    return next;
}
