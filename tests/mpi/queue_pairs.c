/*
 * queue_pairs.c: a library that is loaded before UCX into each rank: with SIGUSR1 each connected queue pair of the rank
 * goes to its error state, as one does whose device has given up.
 *
 * `pairs` are written by threads that connect, before `connected` counts them (release), and read by the handler, which
 * acquires that.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

typedef int modify_fn(struct ibv_qp *pair, struct ibv_qp_attr *attributes, int mask);
typedef int destroy_fn(struct ibv_qp *pair);

enum { MOST = 256 };
static _Atomic(struct ibv_qp *) pairs[MOST]; /* NULL: destroyed since */
static atomic_uint begun, connected;
static modify_fn *modify;
static destroy_fn *destroy;

/* UCX's plugins bring the library, which is behind this one for nobody: RTLD_NEXT does not find it. */
__attribute__((constructor)) static void find(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);

    if (library != NULL) {
        *(void **) &modify = dlsym(library, "ibv_modify_qp");
        *(void **) &destroy = dlsym(library, "ibv_destroy_qp");
    }
}

static void break_pairs(int number)
{
    (void) number;
    for (unsigned k = 0; k < atomic_load_explicit(&connected, memory_order_acquire); k++) {
        struct ibv_qp_attr broken = {.qp_state = IBV_QPS_ERR};
        struct ibv_qp *pair = atomic_load_explicit(&pairs[k], memory_order_relaxed);

        if (pair != NULL) {
            modify(pair, &broken, IBV_QP_STATE);
            pair->state = IBV_QPS_RTS; /* as the process knows it: a device tells nobody */
        }
    }
}

int ibv_modify_qp(struct ibv_qp *pair, struct ibv_qp_attr *attributes, int mask)
{
    int result = modify(pair, attributes, mask);

    if (result == 0 && (mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_RTS &&
        pair->qp_type == IBV_QPT_RC) {
        unsigned k = atomic_fetch_add_explicit(&begun, 1, memory_order_relaxed);

        if (k >= MOST) {
            abort();
        }
        atomic_store_explicit(&pairs[k], pair, memory_order_relaxed);
        signal(SIGUSR1, break_pairs);
        atomic_fetch_add_explicit(&connected, 1, memory_order_release);
    }
    return result;
}

int ibv_destroy_qp(struct ibv_qp *pair)
{
    for (unsigned k = 0; k < atomic_load_explicit(&connected, memory_order_acquire); k++) {
        struct ibv_qp *expected = pair;

        atomic_compare_exchange_strong_explicit(&pairs[k], &expected, NULL, memory_order_relaxed,
                                                memory_order_relaxed);
    }
    return destroy(pair);
}
