/*
 * setup_round.c: see setup_round.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "setup_round.h"

int *setup_ints(size_t count)
{
    return get_memory(count * sizeof(int));
}

void setup_open_round(setup_round_t *round, MPI_Comm comm, int salt)
{
    size_t all;

    round->comm = comm;
    round->salt = salt;
    round->calls = 0;
    round->scanned = -1;
    MPI_Comm_rank(comm, &round->rank);
    MPI_Comm_size(comm, &round->size);
    all = (size_t) round->size * SETUP_COUNT;
    round->sent = setup_ints(SETUP_COUNT);
    round->spread = setup_ints(all);
    round->gathered = setup_ints(all);
    round->again = setup_ints(all);
    round->exchanged = setup_ints(all);
    round->exchanged_again = setup_ints(all);
    round->counts = setup_ints((size_t) round->size);
    round->displs = setup_ints((size_t) round->size);
    for (int rank = 0; rank < round->size; rank++) {
        round->counts[rank] = SETUP_COUNT;
        round->displs[rank] = rank * SETUP_COUNT;
    }
    round->reduced = setup_ints(SETUP_COUNT);
    round->block = setup_ints(SETUP_COUNT);
    round->passed = setup_ints(SETUP_COUNT);
    round->collected = setup_ints(all);
    round->collected_again = setup_ints(all);
    round->dealt = setup_ints(SETUP_COUNT);
    round->summed = setup_ints(SETUP_COUNT);
    for (int k = 0; k < SETUP_COUNT; k++) {
        round->sent[k] = 1000 * round->rank + k % 97 + salt;
        round->passed[k] = round->rank == 0 ? k + salt : -1;
        round->dealt[k] = -1;
    }
    for (size_t k = 0; k < all; k++) {
        round->spread[k] = 10 * round->rank + (int) (k / SETUP_COUNT) + salt;
        round->gathered[k] = round->again[k] = round->collected[k] = -1;
        round->exchanged[k] = round->exchanged_again[k] = round->collected_again[k] = -1;
    }
}

void setup_call_all(setup_round_t *round)
{
    MPI_Request *next = round->requests;
    MPI_Comm comm = round->comm;

    MPI_Iallgather(round->sent, SETUP_COUNT, MPI_INT, round->gathered, SETUP_COUNT, MPI_INT, comm,
                   next++);
    MPI_Ibarrier(comm, next++);
    MPI_Iallreduce(round->sent, round->reduced, SETUP_COUNT, MPI_INT, MPI_SUM, comm, next++);
    MPI_Iscan(&round->rank, &round->scanned, 1, MPI_INT, MPI_SUM, comm, next++);
    MPI_Ialltoall(round->spread, SETUP_COUNT, MPI_INT, round->exchanged, SETUP_COUNT, MPI_INT, comm,
                  next++);
    MPI_Ialltoallv(round->spread, round->counts, round->displs, MPI_INT, round->exchanged_again,
                   round->counts, round->displs, MPI_INT, comm, next++);
    MPI_Iallgather(round->sent, SETUP_COUNT, MPI_INT, round->again, SETUP_COUNT, MPI_INT, comm,
                   next++);
    MPI_Ireduce_scatter_block(round->spread, round->block, SETUP_COUNT, MPI_INT, MPI_SUM, comm,
                              next++);
    MPI_Ibcast(round->passed, SETUP_COUNT, MPI_INT, 0, comm, next++);
    MPI_Igather(round->sent, SETUP_COUNT, MPI_INT, round->collected, SETUP_COUNT, MPI_INT,
                round->size - 1, comm, next++);
    MPI_Igatherv(round->sent, SETUP_COUNT, MPI_INT, round->collected_again, round->counts,
                 round->displs, MPI_INT, 0, comm, next++);
    MPI_Iscatterv(round->spread, round->counts, round->displs, MPI_INT, round->dealt, SETUP_COUNT,
                  MPI_INT, round->size - 1, comm, next++);
    MPI_Ireduce(round->sent, round->summed, SETUP_COUNT, MPI_INT, MPI_SUM, 0, comm, next++);
    round->calls = (int) (next - round->requests);
}

static bool all_gathered(const setup_round_t *round, const int *gathered)
{
    bool good = true;

    for (int k = 0; k < round->size * SETUP_COUNT; k++) {
        good &= gathered[k] == 1000 * (k / SETUP_COUNT) + k % SETUP_COUNT % 97 + round->salt;
    }
    return good;
}

void setup_end_round(setup_round_t *round)
{
    int size = round->size, ranks = size * (size - 1) / 2;
    bool reduced = true, exchanged = true, exchanged_again = true, block = true, passed = true,
         dealt = true, summed = true;

    MPI_Waitall(round->calls, round->requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < SETUP_COUNT; k++) {
        int sum = 1000 * ranks + size * (k % 97 + round->salt);

        reduced &= round->reduced[k] == sum;
        summed &= round->rank != 0 || round->summed[k] == sum;
        block &= round->block[k] == 10 * ranks + size * (round->rank + round->salt);
        passed &= round->passed[k] == k + round->salt;
        dealt &= round->dealt[k] == 10 * (size - 1) + round->rank + round->salt;
    }
    for (int k = 0; k < size * SETUP_COUNT; k++) {
        int wanted = 10 * (k / SETUP_COUNT) + round->rank + round->salt;

        exchanged &= round->exchanged[k] == wanted;
        exchanged_again &= round->exchanged_again[k] == wanted;
    }
    check(all_gathered(round, round->gathered), "the first MPI_Iallgather");
    check(all_gathered(round, round->again), "the second MPI_Iallgather");
    check(round->rank != size - 1 || all_gathered(round, round->collected), "MPI_Igather");
    check(round->rank != 0 || all_gathered(round, round->collected_again), "MPI_Igatherv");
    check(dealt, "MPI_Iscatterv");
    check(reduced, "MPI_Iallreduce");
    check(summed, "MPI_Ireduce");
    check(exchanged, "MPI_Ialltoall");
    check(exchanged_again, "MPI_Ialltoallv");
    check(block, "MPI_Ireduce_scatter_block");
    check(passed, "MPI_Ibcast");
    check(round->scanned == round->rank * (round->rank + 1) / 2, "MPI_Iscan");
    free(round->sent), free(round->spread), free(round->gathered), free(round->again);
    free(round->exchanged_again), free(round->counts), free(round->displs);
    free(round->exchanged), free(round->reduced), free(round->block), free(round->passed);
    free(round->collected), free(round->collected_again), free(round->dealt), free(round->summed);
}

void setup_run_round(MPI_Comm comm, int late, int salt)
{
    setup_round_t round;
    int token = 0;

    setup_open_round(&round, comm, salt);
    for (int rank = 0; round.rank == late && rank < round.size; rank++) {
        if (rank != late) {
            MPI_Recv(&token, 1, MPI_INT, rank, salt, comm, MPI_STATUS_IGNORE);
        }
    }
    setup_call_all(&round);
    if (late >= 0 && round.rank != late) {
        MPI_Send(&token, 1, MPI_INT, late, salt, comm);
    }
    setup_end_round(&round);
}
