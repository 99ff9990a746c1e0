/*
 * test_engine_flow.c: operations of one communicator whose receiver is late: how much of theirs is
 * in flight, and that none waits for a younger one.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_engine.h"
#include "fake_transport.h"
#include "tap.h"

enum { MOST_RANKS = 3, CALLS = 20, SEGMENT = 1 << 18, BLOCK = 4 * SEGMENT };
/* Calls of other lengths, on two ranks. */
enum { LONG_SEGMENT = 4 << 20, LONG_BLOCK = 4 * LONG_SEGMENT, BRIEF = 1000 };

/*
 * The ranks of a communicator with a flow, each of which makes the same calls; and of another one,
 * of one call.
 */
typedef struct job {
    uint32_t ranks;
    fake_net_t *net;
    flash_engine_t *engines[MOST_RANKS];
    flash_flow_t flows[MOST_RANKS], others[MOST_RANKS];
    char *blocks[MOST_RANKS][CALLS + 1];
    bool ended[MOST_RANKS][CALLS + 1];
    unsigned failures;
} job_t;

static const int other = CALLS; /* the other communicator's call */

static job_t *make_job(uint32_t ranks)
{
    static const fake_options_t options = {.rendezvous = 100, .unordered = FLASH_TAG_MARKS};
    job_t *job = calloc(1, sizeof(*job));

    must(job != NULL, "memory");
    job->ranks = ranks;
    job->net = fake_net_create(ranks, 1, &options);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        job->engines[rank] = flash_engine_create(fake_net_transport(job->net, rank));
        must(job->engines[rank] != NULL, "an engine");
        flash_flow_init(&job->flows[rank]);
        flash_flow_init(&job->others[rank]);
        for (int call = 0; call <= CALLS; call++) {
            job->blocks[rank][call] = calloc(ranks, BLOCK);
            must(job->blocks[rank][call] != NULL, "memory");
            memset(job->blocks[rank][call] + rank * (size_t) BLOCK, 16 * call + (int) rank + 1,
                   BLOCK);
        }
    }
    return job;
}

static void free_job(job_t *job)
{
    for (uint32_t rank = 0; rank < job->ranks; rank++) {
        flash_engine_destroy(job->engines[rank]);
        for (int call = 0; call <= CALLS; call++) {
            free(job->blocks[rank][call]);
        }
    }
    fake_net_destroy(job->net);
    free(job);
}

/* An allgather in place. */
static void start(job_t *job, uint32_t rank, int call)
{
    uint32_t n = job->ranks;
    uint64_t tag = (uint64_t) (call + 1) << FLASH_TAG_SHIFT;
    char *blocks = job->blocks[rank][call];
    flash_op_params_t params = {.schedule = {.kind = FLASH_ALLGATHER,
                                             .ring = {.nranks = n, .place = rank},
                                             .blocks = {.count = BLOCK},
                                             .segment_elements = SEGMENT,
                                             .pieces = 1,
                                             .row = 1},
                                .element = 1,
                                .left = fake_net_peer(job->net, rank, (rank + n - 1) % n),
                                .right = fake_net_peer(job->net, rank, (rank + 1) % n),
                                .recv_tag = tag,
                                .send_tag = tag,
                                .sends = 8,
                                .flow = call == other ? &job->others[rank] : &job->flows[rank],
                                .input = blocks + rank * (size_t) BLOCK,
                                .output = blocks,
                                .user = &job->ended[rank][call]};
    flash_op_t *op;

    must(flash_op_create(job->engines[rank], &params, &op) == FLASH_OK, "an operation");
    flash_op_start(op);
}

/* Until nothing happens any more. */
static void settle(job_t *job)
{
    unsigned happened;

    do {
        happened = 0;
        for (uint32_t rank = 0; rank < job->ranks; rank++) {
            flash_op_t *op;

            happened += flash_engine_progress(job->engines[rank]);
            while ((op = flash_engine_completed(job->engines[rank])) != NULL) {
                job->failures += flash_op_status(op) != FLASH_OK;
                *(bool *) flash_op_user(op) = true;
                flash_op_destroy(op);
            }
        }
    } while (happened > 0);
}

/* Whether a call has ended on all ranks, and all have all blocks. */
static bool is_right(const job_t *job, int call)
{
    for (uint32_t rank = 0; rank < job->ranks; rank++) {
        for (size_t at = 0; at < job->ranks * (size_t) BLOCK; at += BLOCK / 4 - 1) {
            if (job->blocks[rank][call][at] != (char) (16 * call + (int) (at / BLOCK) + 1)) {
                return false;
            }
        }
        if (!job->ended[rank][call]) {
            return false;
        }
    }
    return job->failures == 0;
}

static void start_all(job_t *job, uint32_t rank, int first)
{
    for (int call = first; call < CALLS; call++) {
        start(job, rank, call);
    }
}

static void test_late_receiver(void)
{
    job_t *job = make_job(2);
    size_t sent;
    bool right = true;

    start_all(job, 0, 0);
    settle(job);
    sent = (size_t) fake_net_stats(job->net, 0).bytes;
    ok(sent <= FLASH_FLOW_BYTES && sent > FLASH_FLOW_BYTES - SEGMENT,
       "the receiver is late: %zu bytes of %d calls of %d are sent, %zu at most", sent, CALLS,
       BLOCK, FLASH_FLOW_BYTES);
    for (int call = 0; call < CALLS; call++) {
        start(job, 1, call);
        settle(job);
        right = right && is_right(job, call);
    }
    ok(right, "each call ends with its receiver's");
    free_job(job);
}

/* Its second block is sent while younger operations have all in flight that they may have. */
static void test_oldest_goes_on(void)
{
    job_t *job = make_job(3);
    bool right = true;

    start_all(job, 0, 0);
    settle(job);
    start(job, 1, 0);
    start(job, 2, 0);
    settle(job);
    ok(is_right(job, 0), "the oldest call ends though the others' receivers have not begun");
    start_all(job, 1, 1);
    start_all(job, 2, 1);
    settle(job);
    for (int call = 1; call < CALLS; call++) {
        right = right && is_right(job, call);
    }
    ok(right, "and they end once these have");
    free_job(job);
}

static void test_other_communicator(void)
{
    job_t *job = make_job(2);

    start_all(job, 0, 0);
    start(job, 0, other);
    start(job, 1, other);
    settle(job);
    ok(is_right(job, other), "another communicator's call does not wait for those");
    start_all(job, 1, 0);
    settle(job);
    ok(is_right(job, CALLS - 1), "which end as well");
    free_job(job);
}

static void start_of_length(flash_engine_t *engine, fake_net_t *net, uint32_t rank,
                            flash_flow_t *flow, size_t length, char *blocks)
{
    flash_op_params_t params = {.schedule = {.kind = FLASH_ALLGATHER,
                                             .ring = {.nranks = 2, .place = rank},
                                             .blocks = {.count = length},
                                             .segment_elements = LONG_SEGMENT,
                                             .pieces = 1,
                                             .row = 1},
                                .element = 1,
                                .left = fake_net_peer(net, rank, 1 - rank),
                                .right = fake_net_peer(net, rank, 1 - rank),
                                .recv_tag = (uint64_t) length << FLASH_TAG_SHIFT,
                                .send_tag = (uint64_t) length << FLASH_TAG_SHIFT,
                                .sends = 4,
                                .flow = flow,
                                .input = blocks + rank * length,
                                .output = blocks,
                                .user = blocks};
    flash_op_t *op;

    must(flash_op_create(engine, &params, &op) == FLASH_OK, "an operation");
    flash_op_start(op);
}

/* A long call has more in flight than the limit; a brief one behind it is sent all the same. */
static void test_brief_behind_long(void)
{
    static const fake_options_t options = {.rendezvous = 100, .unordered = FLASH_TAG_MARKS};
    job_t job = {.ranks = 2, .net = fake_net_create(2, 1, &options)};
    char *blocks[2][2];
    size_t sent[2];

    for (uint32_t rank = 0; rank < 2; rank++) {
        job.engines[rank] = flash_engine_create(fake_net_transport(job.net, rank));
        flash_flow_init(&job.flows[rank]);
        blocks[rank][0] = calloc(2, LONG_BLOCK);
        blocks[rank][1] = calloc(2, BRIEF);
        must(job.engines[rank] != NULL && blocks[rank][0] != NULL && blocks[rank][1] != NULL,
             "memory");
    }
    for (uint32_t rank = 0; rank < 2; rank++) {
        for (int call = 0; call < 2; call++) {
            start_of_length(job.engines[rank], job.net, rank, &job.flows[rank],
                            call == 0 ? LONG_BLOCK : BRIEF, blocks[rank][call]);
            settle(&job);
            if (rank == 0) {
                sent[call] = (size_t) fake_net_stats(job.net, 0).bytes;
            }
        }
    }
    ok(sent[0] > FLASH_FLOW_BYTES && sent[1] == sent[0] + BRIEF,
       "a brief call does not wait for a long one: %zu bytes, then %zu", sent[0], sent[1]);
    for (uint32_t rank = 0; rank < 2; rank++) {
        flash_engine_destroy(job.engines[rank]);
        free(blocks[rank][0]);
        free(blocks[rank][1]);
    }
    fake_net_destroy(job.net);
}

int main(void)
{
    test_brief_behind_long();
    test_late_receiver();
    test_oldest_goes_on();
    test_other_communicator();
    return tap_done();
}
