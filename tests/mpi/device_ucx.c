/*
 * device_ucx.c: with FLASH_TEST_UCX=cuda in the environment, UCX is as if it had been built for
 * CUDA; with FLASH_TEST_UCX=odd, that of ranks of an odd number.
 *
 * These stand in for functions of UCX in a test program that is linked with them. What is said to
 * be in a device's memory is carried through the host's, by the stand-in for the driver; UCX itself
 * knows nothing of it. As UCX would, they want a context in the thread that calls them, go by what
 * they are told of a buffer alone, have a peer map all of the blocks in which it lies, and now and
 * then wait for whatever the device does.
 *
 * Shared between threads: `carried` is atomic.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_ucx.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "device.h"

#define REAL(name) ((__typeof__(name) *) (uintptr_t) dlsym(RTLD_NEXT, #name))

/* One message of so many waits for the device. */
#define WAITS 64

static atomic_ulong carried;

unsigned long device_ucx_carried(void)
{
    return atomic_load_explicit(&carried, memory_order_relaxed);
}

bool device_ucx_is_for_cuda(void)
{
    const char *ucx = getenv("FLASH_TEST_UCX");

    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return ucx != NULL && (strcmp(ucx, "cuda") == 0 ||
                           (strcmp(ucx, "odd") == 0 && rank != NULL && atoi(rank) % 2 == 1));
}

ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
    ucs_status_t status = REAL(ucp_context_query)(context, attr);

    if (status == UCS_OK && device_ucx_is_for_cuda() &&
        (attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES)) {
        attr->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
    }
    return status;
}

/* A message of a device's memory, in memory of the host's. */
typedef struct message {
    void *place;
    size_t size;
    ucp_send_nbx_callback_t sent;
    ucp_tag_recv_nbx_callback_t received;
    void *user_data;
    char content[];
} message_t;

static void *reach(void *place, size_t size)
{
    void *reached = device_reach(place, size);

    if (reached == NULL || !(device_has_context() || device_is_broken())) {
        fprintf(stderr, "UCX was given %p: %s\n", place,
                reached == NULL ? "no memory of a device" : "the thread has no context");
        abort();
    }
    return reached;
}

/* NULL: the message is none of a device's memory. */
static message_t *carry(void *place, size_t size, const ucp_request_param_t *param)
{
    /* Where UCX itself knows CUDA, all is its own. */
    bool told = device_ucx_is_for_cuda() &&
                (param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) != 0 &&
                param->memory_type == UCS_MEMORY_TYPE_CUDA;
    message_t *message;

    if (!told || size == 0) {
        return NULL;
    }
    reach(place, size);
    if (!device_is_alone(place)) {
        fprintf(stderr, "UCX was given %p: a peer could not map it beside what shares its block\n",
                place);
        abort();
    }
    if (atomic_fetch_add_explicit(&carried, 1, memory_order_relaxed) % WAITS == 0) {
        device_drain(); /* as memory that is registered may */
    }
    message = malloc(sizeof(*message) + size);
    if (message == NULL) {
        abort();
    }
    *message = (message_t){.place = place, .size = size, .user_data = param->user_data};
    return message;
}

/* It may call the driver, too. */
ucs_status_t ucp_worker_arm(ucp_worker_h worker)
{
    if (atomic_load_explicit(&carried, memory_order_relaxed) > 0 && !device_has_context() &&
        !device_is_broken()) {
        fprintf(stderr, "UCX is armed by a thread without a context\n");
        abort();
    }
    return REAL(ucp_worker_arm)(worker);
}

static ucp_request_param_t param_of(message_t *message, const ucp_request_param_t *param)
{
    ucp_request_param_t changed = *param;

    changed.memory_type = UCS_MEMORY_TYPE_HOST;
    changed.user_data = message;
    return changed;
}

static void sent(void *request, ucs_status_t status, void *arg)
{
    message_t *message = arg;

    if (memcmp(reach(message->place, message->size), message->content, message->size) != 0) {
        fprintf(stderr, "a device's memory changed while it was being sent\n");
        abort();
    }
    message->sent(request, status, message->user_data);
    free(message);
}

typedef ucs_status_ptr_t send_t(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                const ucp_request_param_t *param);

static ucs_status_ptr_t send_by(send_t *real, ucp_ep_h ep, const void *buffer, size_t count,
                                ucp_tag_t tag, const ucp_request_param_t *param)
{
    void *place = (void *) (uintptr_t) buffer;
    message_t *message = carry(place, count, param);
    ucp_request_param_t changed;
    ucs_status_ptr_t request;

    if (message == NULL) {
        return real(ep, buffer, count, tag, param);
    }
    memcpy(message->content, reach(place, count), count);
    message->sent = param->cb.send;
    changed = param_of(message, param);
    changed.cb.send = sent;
    request = real(ep, message->content, count, tag, &changed);
    if (!UCS_PTR_IS_PTR(request)) {
        free(message);
    }
    return request;
}

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    return send_by(REAL(ucp_tag_send_nbx), ep, buffer, count, tag, param);
}

ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                       const ucp_request_param_t *param)
{
    return send_by(REAL(ucp_tag_send_sync_nbx), ep, buffer, count, tag, param);
}

static void received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
    message_t *message = arg;

    if (status == UCS_OK) {
        memcpy(reach(message->place, message->size), message->content, info->length);
    }
    message->received(request, status, info, message->user_data);
    free(message);
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                  ucp_tag_t tag_mask, const ucp_request_param_t *param)
{
    message_t *message = carry(buffer, count, param);
    ucp_request_param_t changed;
    ucs_status_ptr_t request;

    if (message == NULL) {
        return REAL(ucp_tag_recv_nbx)(worker, buffer, count, tag, tag_mask, param);
    }
    message->received = param->cb.recv;
    changed = param_of(message, param);
    changed.cb.recv = received;
    request = REAL(ucp_tag_recv_nbx)(worker, message->content, count, tag, tag_mask, &changed);
    if (!UCS_PTR_IS_PTR(request)) {
        free(message);
    }
    return request;
}
