/*
 * model_ring.c: see model_ring.h.
 *
 * Each place has two that work, one thing at a time each: what stands for the application's thread,
 * which computes the callbacks' pieces, and for the progress thread, which combines.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "model_ring.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/flash_engine.h"
#include "engine/flash_segments.h"

typedef struct model_rank model_rank_t;

typedef struct model_worker {
    model_rank_t *rank;
    unsigned kinds; /* of the engine's work */
    bool busy;
    flash_work_t work;
} model_worker_t;

struct model_rank {
    const model_ring_t *ring;
    model_network_t *network;
    flash_engine_t *engine;
    flash_op_t *op;
    model_worker_t application, thread;
    bool completed;
};

static double duration(const model_ring_t *ring, const flash_work_t *work)
{
    if (work->kind == FLASH_WORK_CALLBACK) {
        return ring->block_seconds * (double) work->piece.count / (double) ring->block_bytes;
    }
    return (double) work->count / ring->combine_rate;
}

static void end_work(void *arg)
{
    model_worker_t *worker = arg;

    flash_engine_finish(&worker->work, FLASH_OK);
    worker->busy = false;
}

static void give_work(model_worker_t *worker)
{
    model_rank_t *rank = worker->rank;

    if (!worker->busy && flash_engine_take(rank->engine, worker->kinds, &worker->work)) {
        worker->busy = true;
        model_network_after(rank->network, duration(rank->ring, &worker->work), end_work, worker);
    }
}

/* Lets a place act on what has happened to it. */
static void advance(model_rank_t *rank)
{
    flash_op_t *op;

    flash_engine_progress(rank->engine);
    give_work(&rank->application);
    give_work(&rank->thread);
    op = flash_engine_completed(rank->engine);
    rank->completed |= op != NULL;
}

/* Neither is called: the work takes its time in the model alone. */
static int compute(void *arg, const flash_piece_t *piece)
{
    (void) arg, (void) piece;
    return FLASH_OK;
}

static int combine(void *arg, const void *in, void *inout, size_t count)
{
    (void) arg, (void) in, (void) inout, (void) count;
    return FLASH_OK;
}

static bool make_rank(model_rank_t *rank, const model_ring_t *ring, model_network_t *network,
                      uint32_t place)
{
    /* Elements are bytes. No buffer is touched: the addresses stand for any. */
    static char input, output;
    flash_op_params_t params = {
        .schedule = {.kind = ring->allgather ? FLASH_ALLGATHER : FLASH_REDUCE_SCATTER,
                     .ring = {.nranks = ring->nranks, .place = place},
                     .pieces = ring->pieces,
                     .row = 1,
                     .blocks = {.count = ring->block_bytes}},
        .element = 1,
        .left = model_network_peer(network, (place + ring->places - 1) % ring->places),
        .right = model_network_peer(network, (place + 1) % ring->places),
        .depth = ring->depth,
        .sends = ring->sends,
        .input = &input,
        .output = &output,
        .combine = combine,
        .user = rank};

    if (ring->segment_bytes == 0) {
        flash_segments_cut(&params.schedule, params.element, NULL);
    } else {
        flash_segments_cut_equal(&params.schedule, params.element, ring->segment_bytes);
    }
    if (ring->block_seconds > 0 && ring->allgather) {
        params.consume = compute;
    } else if (ring->block_seconds > 0) {
        params.produce = compute;
    }
    *rank = (model_rank_t){.ring = ring, .network = network};
    rank->application = (model_worker_t){.rank = rank, .kinds = FLASH_WORK_CALLBACK};
    rank->thread = (model_worker_t){.rank = rank, .kinds = FLASH_WORK_COMBINE | FLASH_WORK_COPY};
    rank->engine = flash_engine_create(model_network_transport(network, place));
    return rank->engine != NULL && flash_op_create(rank->engine, &params, &rank->op) == FLASH_OK;
}

static void free_rank(model_rank_t *rank)
{
    if (rank->op != NULL) {
        flash_op_destroy(rank->op);
    }
    if (rank->engine != NULL) {
        flash_engine_destroy(rank->engine);
    }
}

/* Until all is done, or nothing happens any more. */
static bool run(model_network_t *network, model_rank_t *ranks, uint32_t places, double *seconds)
{
    uint32_t left = places;

    for (uint32_t k = 0; k < places; k++) {
        flash_op_start(ranks[k].op);
    }
    do {
        for (uint32_t k = 0; k < places; k++) {
            bool before = ranks[k].completed;

            advance(&ranks[k]);
            left -= ranks[k].completed && !before;
        }
        *seconds = model_network_now(network);
    } while (left > 0 && model_network_step(network));
    while (model_network_step(network)) {
        /* the last messages' senders still hear of them */
    }
    return left == 0;
}

bool model_ring_run(const model_ring_t *ring, model_result_t *result)
{
    model_network_t *network = model_network_create(&ring->link, ring->places, ring->seed);
    model_rank_t *ranks = calloc(ring->places, sizeof(*ranks));
    const char *reason = "no memory";
    bool good = false;

    if (network == NULL || ranks == NULL) {
        goto out;
    }
    for (uint32_t k = 0; k < ring->places; k++) {
        if (!make_rank(&ranks[k], ring, network, k)) {
            goto out;
        }
    }
    reason = "the ring does not come to its end";
    good = run(network, ranks, ring->places, &result->seconds);
    result->memory = flash_op_memory(ranks[0].op);
    result->messages = 0;
    for (uint32_t k = 0; k < ring->places; k++) {
        uint64_t messages = model_network_messages(network, k);

        result->messages = messages > result->messages ? messages : result->messages;
    }
out:
    if (!good) {
        fprintf(stderr, "flash_simulate: %u ranks: %s\n", (unsigned) ring->nranks, reason);
    }
    for (uint32_t k = 0; ranks != NULL && k < ring->places; k++) {
        free_rank(&ranks[k]);
    }
    free(ranks);
    if (network != NULL) {
        model_network_destroy(network);
    }
    return good;
}
