/*
 * random_paths.c: which way the calls took: what flash has counted against what was expected.
 *
 * Without this, nothing would be wrong if no call ever took a ring, or shared memory, or went
 * pairwise.
 *
 * Shared between threads: the numbers wanted, atomic.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

#include <stdatomic.h>

#include "blocking.h"

static atomic_ullong rings_wanted, pairwise_wanted, recdbl_wanted, passed_on_wanted;
static MPI_T_pvar_session session;
static MPI_T_pvar_handle rings, pairwise, shm, recdbl, passed_on;

bool is_served(int size)
{
    const char *components = getenv("OMPI_MCA_coll");

    return size > 1 && components != NULL && strcmp(components, "flash") == 0;
}

static bool is_empty(const operation_t *operation)
{
    for (int rank = 0; rank < operation->size; rank++) {
        if (operation->counts[rank] > 0) {
            return false;
        }
    }
    return true;
}

/* The call is the blocking form, where that is asked for. */
static bool may_block(const operation_t *operation)
{
    bool form =
        !operation->rooted || (operation->gathers && !operation->collects && !operation->deals);

    return form && !operation->compute && !operation->persistent;
}

/*
 * A call with callbacks that gets no ring makes a plain one, which is passed on. Open MPI lets no
 * component see plain reduce-scatters of no elements, but for those, and one of the persistent forms.
 * Nothing is expected of blocking calls: Open MPI makes some itself, which count, too.
 */
void expect_path(const operation_t *operation)
{
    bool block_init = operation->persistent && !operation->unequal && !operation->everywhere &&
                      !operation->rooted;
    bool seen = operation->gathers || operation->compute || block_init || !is_empty(operation);

    if (calls_block() && may_block(operation)) {
        return;
    }
    if (operation->slot->active && seen && !operation->unseen) {
        atomic_fetch_add_explicit(operation->pairwise ? &pairwise_wanted
                                  : operation->recdbl ? &recdbl_wanted
                                  : operation->ring   ? &rings_wanted
                                                      : &passed_on_wanted,
                                  1, memory_order_relaxed);
    }
}

/* One of flash's performance variables, from now on; MPI_T_PVAR_HANDLE_NULL without flash. */
static MPI_T_pvar_handle begin_counting(const char *name)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int index, values;

    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS) {
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &values);
    }
    return handle;
}

static unsigned long long end_counting(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;

    if (handle != MPI_T_PVAR_HANDLE_NULL) {
        MPI_T_pvar_read(session, handle, &value);
        MPI_T_pvar_handle_free(session, &handle);
    }
    return value;
}

void count_paths(void)
{
    int level;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    rings = begin_counting("coll_flash_ring_calls");
    pairwise = begin_counting("coll_flash_pairwise_calls");
    shm = begin_counting("coll_flash_shm_calls");
    recdbl = begin_counting("coll_flash_recdbl_calls");
    passed_on = begin_counting("coll_flash_fallback_calls");
}

void check_paths(const sequence_t *sequence)
{
    unsigned long long rings_found = end_counting(rings) + end_counting(shm);
    unsigned long long pairwise_found = end_counting(pairwise);
    unsigned long long recdbl_found = end_counting(recdbl);
    unsigned long long passed_on_found = end_counting(passed_on);

    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    if (calls_block() && rings_found > rings_wanted) {
        rings_found = rings_wanted;
    }
    if (rings_found != rings_wanted || pairwise_found != pairwise_wanted ||
        recdbl_found != recdbl_wanted || passed_on_found != passed_on_wanted) {
        fail(sequence, sequence->number,
             "%llu calls took rings or shared memory instead of %llu, %llu went pairwise instead "
             "of %llu, "
             "%llu went by recursive doubling instead of %llu, %llu were passed on instead of %llu",
             rings_found, rings_wanted, pairwise_found, pairwise_wanted, recdbl_found,
             recdbl_wanted, passed_on_found, passed_on_wanted);
    }
}
