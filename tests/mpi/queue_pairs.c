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

enum { MOST = 256 };
static struct ibv_qp *pairs[MOST];
static atomic_uint begun, connected;
static modify_fn *modify;

/* UCX's plugins bring the library, which is behind this one for nobody: RTLD_NEXT does not find it. */
__attribute__((constructor)) static void find(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);

    if (library != NULL) {
        *(void **) &modify = dlsym(library, "ibv_modify_qp");
    }
}

static void break_pairs(int number)
{
    (void) number;
    for (unsigned k = 0; k < atomic_load_explicit(&connected, memory_order_acquire); k++) {
        struct ibv_qp_attr broken = {.qp_state = IBV_QPS_ERR};

        modify(pairs[k], &broken, IBV_QP_STATE);
        pairs[k]->state = IBV_QPS_RTS; /* as the process knows it: a device tells nobody */
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
        pairs[k] = pair;
        signal(SIGUSR1, break_pairs);
        atomic_fetch_add_explicit(&connected, 1, memory_order_release);
    }
    return result;
}
