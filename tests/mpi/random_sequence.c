/*
 * random_sequence.c: one thread's calls: communicators that come and go, other traffic between.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

#include <unistd.h>

/* --------------------------------------------------------------- communicators */

/* Whether a slot has a communicator of that epoch's, or keeps the one that it has. */
static bool is_made_in(const sequence_t *sequence, int slot, uint64_t epoch)
{
    uint64_t all = stream(sequence->thread, epoch, FOR_SLOT + slot);

    return epoch == 0 || prng_percent(&all, 40);
}

/* Any order and any part of the processes: each has a color and a key that all can work out. */
static void split(sequence_t *sequence, uint64_t all, MPI_Comm *comm)
{
    static const char *const what = "MPI_Comm_split";
    uint32_t colors = 1 + prng_below(&all, 3);
    uint32_t outside = prng_percent(&all, 40) ? 35 : 0;
    bool odd_even = prng_percent(&all, 30), backwards = prng_percent(&all, 30);
    int color = 0, key = 0;

    for (int rank = 0; rank <= world_rank; rank++) { /* draws of the ranks before this one's */
        bool out = prng_percent(&all, outside);

        color = out ? MPI_UNDEFINED : odd_even ? rank % 2 : (int) prng_below(&all, colors);
        key = (int) prng_below(&all, 100);
        key = backwards ? -rank : key;
    }
    must(MPI_Comm_split(sequence->home, color, key, comm), sequence, sequence->number, what);
}

static void make_comm(sequence_t *sequence, int slot, uint64_t epoch)
{
    slot_t *made = &sequence->slots[slot];
    uint64_t all = stream(sequence->thread, epoch, FOR_SLOT + slot);
    int active = 0;

    prng_next(&all); /* is_made_in() */
    sequence->doing = "making a communicator";
    if (slot == 0) {
        made->comm = sequence->home;
    } else if (prng_percent(&all, 30)) {
        must(MPI_Comm_dup(sequence->home, &made->comm), sequence, sequence->number, "MPI_Comm_dup");
    } else {
        split(sequence, all, &made->comm);
    }
    if (made->comm != MPI_COMM_NULL) {
        MPI_Comm_rank(made->comm, &made->rank);
        MPI_Comm_size(made->comm, &made->size);
        must(MPIX_Flash_active(made->comm, &active), sequence, sequence->number,
             "MPIX_Flash_active");
        made->active = active;
        if (made->active != is_served(made->size)) {
            fail(sequence, sequence->number, "flash serves a communicator of %d ranks: %d",
                 made->size, active);
        }
    }
}

static void free_comm(sequence_t *sequence, int slot, uint64_t *own)
{
    slot_t *freed = &sequence->slots[slot];

    if (freed->comm == MPI_COMM_NULL) {
        return;
    }
    detach_pending(sequence, freed->comm, own);
    sequence->doing = "MPI_Comm_free";
    must(MPI_Comm_free(&freed->comm), sequence, sequence->number, "MPI_Comm_free");
}

/* Those of the epoch in which the run begins, whenever each was made. */
static void make_comms(sequence_t *sequence, uint64_t epoch)
{
    for (int slot = 0; slot < RANDOM_SLOTS; slot++) {
        uint64_t made = slot == 0 ? 0 : epoch;

        while (!is_made_in(sequence, slot, made)) {
            made--;
        }
        make_comm(sequence, slot, made);
    }
}

static void renew_comms(sequence_t *sequence, uint64_t epoch, uint64_t *own)
{
    for (int slot = 1; slot < RANDOM_SLOTS; slot++) {
        if (is_made_in(sequence, slot, epoch)) {
            free_comm(sequence, slot, own);
            make_comm(sequence, slot, epoch);
        }
    }
}

/* --------------------------------------------------------------- other traffic */

static void send_around(sequence_t *sequence, const slot_t *slot, int token)
{
    int right = (slot->rank + 1) % slot->size, left = (slot->rank + slot->size - 1) % slot->size;
    int found = -1;

    must(MPI_Sendrecv(&token, 1, MPI_INT, right, 5, &found, 1, MPI_INT, left, 5, slot->comm,
                      MPI_STATUS_IGNORE),
         sequence, sequence->number, "MPI_Sendrecv");
    if (found != token) {
        fail(sequence, sequence->number, "MPI_Sendrecv beside: %d, not %d", found, token);
    }
}

static void reduce(sequence_t *sequence, const slot_t *slot, int token)
{
    int number = token + slot->rank, sum = -1, size = slot->size;
    int wanted = size * token + size * (size - 1) / 2;

    must(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, slot->comm), sequence, sequence->number,
         "MPI_Allreduce");
    if (sum != wanted) {
        fail(sequence, sequence->number, "MPI_Allreduce beside: %d, not %d", sum, wanted);
    }
}

static void broadcast(sequence_t *sequence, const slot_t *slot, int token)
{
    int root = token % slot->size, found = slot->rank == root ? token : -1;
    MPI_Request request;

    must(MPI_Ibcast(&found, 1, MPI_INT, root, slot->comm, &request), sequence, sequence->number,
         "MPI_Ibcast");
    must(MPI_Wait(&request, MPI_STATUS_IGNORE), sequence, sequence->number, "MPI_Ibcast");
    if (found != token) {
        fail(sequence, sequence->number, "MPI_Ibcast beside: %d, not %d", found, token);
    }
}

static void other_traffic(sequence_t *sequence, const slot_t *slot, uint64_t *all, uint64_t *own)
{
    uint32_t kind = prng_below(all, 100);
    int token = (int) prng_below(all, 10000);

    sequence->doing = "other traffic";
    if (kind < 4) {
        send_around(sequence, slot, token);
    } else if (kind < 7) {
        reduce(sequence, slot, token);
    } else if (kind < 9) {
        broadcast(sequence, slot, token);
    } else if (kind < 10) {
        must(MPI_Barrier(slot->comm), sequence, sequence->number, "MPI_Barrier");
    }
    if (prng_percent(own, 2)) {
        usleep(prng_below(own, 300)); /* ranks drift apart; nothing depends on how far */
    }
}

/* -------------------------------------------------------------------- the calls */

static void run_operation(sequence_t *sequence, uint64_t *own)
{
    uint64_t all = stream(sequence->thread, sequence->number, FOR_ALL + 1);
    const slot_t *slot = &sequence->slots[prng_below(&all, RANDOM_SLOTS)];
    operation_t *operation;
    MPI_Request request;

    if (slot->comm == MPI_COMM_NULL) {
        return;
    }
    other_traffic(sequence, slot, &all, own);
    operation = post_operation(sequence, slot, &request);
    if (operation->blocking) {
        finish_operation(operation);
    } else {
        add_pending(operation, request);
    }
}

/* How many calls may be under way in an epoch. */
static int draw_depth(const sequence_t *sequence, uint64_t epoch)
{
    uint64_t all = stream(sequence->thread, epoch, FOR_EPOCH);

    return 1 + (int) prng_below(&all, RANDOM_DEPTH);
}

void run_sequence(sequence_t *sequence)
{
    uint64_t own = 0;

    sequence->number = options.first;
    make_comms(sequence, options.first / RANDOM_EPOCH);
    for (uint64_t done = 0; done < options.operations; done++) {
        uint64_t number = options.first + done, epoch = number / RANDOM_EPOCH;
        int depth = draw_depth(sequence, epoch);

        sequence->number = number;
        own = stream(sequence->thread, number, FOR_ALL + 2 + world_rank);
        if (number % RANDOM_EPOCH == 0 && done > 0) {
            renew_comms(sequence, epoch, &own);
        }
        /* Room for one more, and at times for many. */
        complete_pending(sequence, depth - 1, &own);
        run_operation(sequence, &own);
        if (prng_percent(&own, 10)) {
            complete_pending(sequence, (int) prng_below(&own, (uint32_t) depth), &own);
        }
        if (sequence->thread == 0) {
            show_progress(sequence, done + 1);
        }
    }
    complete_pending(sequence, 0, &own);
    for (int slot = 1; slot < RANDOM_SLOTS; slot++) {
        free_comm(sequence, slot, &own);
    }
}
