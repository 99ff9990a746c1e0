/*
 * coll_flash_op_id.c: the operation ids that tell a communicator's operations apart in tags.
 *
 * Those of calls come round again: an operation that has an id still must end before the next one
 * takes it. (When it has ended here, the neighbours have no message of it under way to here, nor
 * from here but such as have left and come before any later one.) A call returns at once all the
 * same: its request waits, with all that its ring needs, and is started by whoever completes the
 * one before.
 *
 * A persistent request's id is its own until it is freed, since ranks may start the rounds of their
 * requests in different orders (MPI 4.0, section 6.13). The same id must go to the same request on
 * all ranks, but ranks free requests when they like. So each rank notes the ids that it has got
 * back, and when no id is left that all ranks know to be free, the call that makes the next request
 * finds out, by one allreduce, which ids all ranks have got back. MPI lets these calls wait for each
 * other (section 6.13: they are nonlocal). An id of a request that failed is never given back:
 * messages of it may still arrive.
 *
 * `op_ids_mutex` protects the modules' `taken`, `waiting` and `persistent_returned`. An id of a call
 * is handed over without being free in between, so that no later call overtakes one that waits.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_ring.h"

#include <pthread.h>
#include <string.h>

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

/* --------------------------------------------------------- of persistent requests */

enum { ID_WORDS = FLASH_CALL_SEQUENCES / 64 };

/* The first word with an id that is free, or ID_WORDS. */
static uint32_t first_free_word(const mca_coll_flash_module_t *module)
{
    uint32_t word = 0;

    while (word < ID_WORDS && module->persistent_free[word] == 0) {
        word++;
    }
    return word;
}

/* All ids that every rank has got back are free from now on. */
static void agree_on_free(mca_coll_flash_module_t *module)
{
    uint64_t returned[ID_WORDS];

    mca_coll_flash_free_deferred();
    pthread_mutex_lock(&op_ids_mutex);
    memcpy(returned, module->persistent_returned, sizeof(returned));
    pthread_mutex_unlock(&op_ids_mutex);
    if (flash_compat_allreduce(returned, module->persistent_free, ID_WORDS, MPI_UINT64_T, MPI_BAND,
                               module->comm) != MPI_SUCCESS) {
        mca_coll_flash_no_memory(module->comm); /* the other ranks wait, or have agreed */
    }
    pthread_mutex_lock(&op_ids_mutex);
    for (int word = 0; word < ID_WORDS; word++) {
        module->persistent_returned[word] &= ~module->persistent_free[word];
    }
    pthread_mutex_unlock(&op_ids_mutex);
}

bool mca_coll_flash_persistent_id_find(mca_coll_flash_module_t *module)
{
    if (first_free_word(module) == ID_WORDS) {
        agree_on_free(module);
    }
    return first_free_word(module) < ID_WORDS;
}

uint32_t mca_coll_flash_persistent_id_take(mca_coll_flash_module_t *module)
{
    uint32_t word = first_free_word(module);
    uint32_t bit = (uint32_t) __builtin_ctzll(module->persistent_free[word]);

    module->persistent_free[word] &= ~(UINT64_C(1) << bit);
    return 64 * word + bit;
}

void mca_coll_flash_persistent_id_return(mca_coll_flash_module_t *module, uint32_t id)
{
    pthread_mutex_lock(&op_ids_mutex);
    module->persistent_returned[id / 64] |= UINT64_C(1) << id % 64;
    pthread_mutex_unlock(&op_ids_mutex);
}
