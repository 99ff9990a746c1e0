/*
 * unequal.c: see unequal.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "unequal.h"

#include "persistent.h"

enum { CANARY = 0x5a };

typedef unequal_t call_t;
typedef unequal_blocks_t blocks_t;
typedef unequal_image_t image_t;

static bool is_root(const call_t *call)
{
    return world_rank == call->root;
}

int unequal_units(const call_t *call, int rank)
{
    uint32_t drawn = mix((uint32_t) rank, (uint32_t) call->root, call->salt);
    int hub = (int) (call->salt % (unsigned) world_size);

    switch (call->shape) {
    case UNEQUAL_ALIKE:
        return call->units;
    case UNEQUAL_MIXED:
        return drawn % 4 == 0   ? 0
               : drawn % 4 == 1 ? 1 + (int) (drawn / 4 % 3)
               : drawn % 4 == 2 ? call->units
                                : (int) (drawn / 4 % (uint32_t) (call->units + 1));
    case UNEQUAL_LONE:
        return rank == hub ? call->units : 0;
    case UNEQUAL_OWN:
        return rank == call->root ? call->units : 0;
    case UNEQUAL_EMPTY:
        return rank == call->root ? 0 : call->units;
    default:
        return rank == hub ? call->units : 1;
    }
}

/* From the last rank's block on to the first one's, with an element between two; of every other call, the
   buffer's address is behind the first blocks. */
static blocks_t blocks_of(const call_t *call)
{
    blocks_t blocks = {.elements = 0};

    for (int rank = world_size - 1; rank >= 0; rank--) {
        blocks.displs[rank] = blocks.elements + 1;
        blocks.counts[rank] = unequal_units(call, rank) * call->all.per_unit;
        blocks.elements += 1 + blocks.counts[rank];
    }
    blocks.elements++;
    blocks.first = call->salt % 2 == 0 ? 0 : -(blocks.elements / 2);
    for (int rank = 0; rank < world_size; rank++) {
        blocks.displs[rank] += blocks.first;
    }
    return blocks;
}

static image_t make_image(const typed_t *typed, int elements)
{
    image_t image = {.bytes = (size_t) elements * (size_t) typed->extent + 2 * typed_margin(typed)};

    image.memory = get_memory(image.bytes);
    image.wanted = get_memory(image.bytes);
    return image;
}

static void clear_image(image_t *image)
{
    memset(image->memory, CANARY, image->bytes);
    memset(image->wanted, CANARY, image->bytes);
}

static void free_image(image_t *image)
{
    free(image->memory);
    free(image->wanted);
}

/* A rank's block, in the memory of an image or in what that must hold. */
static void write_block(const typed_t *typed, image_t *image, bool wanted, int at, int count,
                        int rank, unsigned salt)
{
    unsigned char *memory = (wanted ? image->wanted : image->memory) + typed_margin(typed);

    typed_write(typed, memory + (ptrdiff_t) at * typed->extent, (size_t) count, rank, salt);
}

/* What the root has: a gather's result, or what is scattered, which stays. */
static void write_all(unequal_run_t *run, unsigned salt)
{
    const call_t *call = run->call;

    for (int rank = 0; rank < world_size && is_root(call); rank++) {
        int at = run->blocks.displs[rank] - run->blocks.first, count = run->blocks.counts[rank];

        write_block(&call->all, &run->all, true, at, count, rank, salt);
        if (!call->gathers || (call->in_place && rank == world_rank)) {
            write_block(&call->all, &run->all, false, at, count, rank, salt);
        }
    }
}

static int own_count(const call_t *call)
{
    return unequal_units(call, world_rank) * call->one.per_unit;
}

/* What this rank has of its own: what it contributes, which stays, or what it gets. */
static void write_one(unequal_run_t *run, unsigned salt)
{
    const call_t *call = run->call;

    if (call->in_place && is_root(call)) {
        return;
    }
    write_block(&call->one, &run->one, true, 0, own_count(call), world_rank, salt);
    if (call->gathers) {
        write_block(&call->one, &run->one, false, 0, own_count(call), world_rank, salt);
    }
}

/* The arguments that MPI does not read say nothing. */
typedef struct arguments {
    void *all, *one;
    const int *counts, *displs;
    int count;
    MPI_Datatype all_type, one_type;
} arguments_t;

static arguments_t arguments_of(unequal_run_t *run)
{
    const call_t *call = run->call;
    bool root = is_root(call), in_place = root && call->in_place;
    unsigned char *all = run->all.memory + typed_margin(&call->all) -
                         (ptrdiff_t) run->blocks.first * call->all.extent;
    unsigned char *one = run->one.memory + typed_margin(&call->one);

    return (arguments_t){.all = root ? all : (void *) (uintptr_t) 64,
                         .one = in_place ? MPI_IN_PLACE : one,
                         .counts = root ? run->blocks.counts : NULL,
                         .displs = root ? run->blocks.displs : NULL,
                         .count = in_place ? -1 : own_count(call),
                         .all_type = root ? call->all.type : MPI_DATATYPE_NULL,
                         .one_type = in_place ? MPI_DATATYPE_NULL : call->one.type};
}

static void begin(unequal_run_t *run)
{
    const call_t *call = run->call;
    const arguments_t a = arguments_of(run);

    if (!call->persistent && call->gathers) {
        MPI_Igatherv(a.one, a.count, a.one_type, a.all, a.counts, a.displs, a.all_type, call->root,
                     run->comm, &run->request);
    } else if (!call->persistent) {
        MPI_Iscatterv(a.all, a.counts, a.displs, a.all_type, a.one, a.count, a.one_type, call->root,
                      run->comm, &run->request);
    } else if (run->request == MPI_REQUEST_NULL && call->gathers) {
        MPI_Gatherv_init(a.one, a.count, a.one_type, a.all, a.counts, a.displs, a.all_type,
                         call->root, run->comm, MPI_INFO_NULL, &run->request);
    } else if (run->request == MPI_REQUEST_NULL) {
        MPI_Scatterv_init(a.all, a.counts, a.displs, a.all_type, a.one, a.count, a.one_type,
                          call->root, run->comm, MPI_INFO_NULL, &run->request);
    }
    if (call->persistent) {
        MPI_Start(&run->request);
    }
}

void unequal_types(call_t *call, int signature, int all_way, int one_way)
{
    typed_make(&call->all, signature,
               all_way == UNEQUAL_OWN_WAY ? (int) call->salt % WAYS : all_way);
    typed_make(&call->one, signature,
               one_way == UNEQUAL_OWN_WAY ? (3 * world_rank + (int) call->salt) % WAYS : one_way);
}

unequal_run_t unequal_prepare(call_t *call, MPI_Comm comm)
{
    unequal_run_t run = {
        .call = call, .blocks = blocks_of(call), .comm = comm, .request = MPI_REQUEST_NULL};

    run.all = make_image(&call->all, is_root(call) ? run.blocks.elements : 0);
    run.one = make_image(&call->one, own_count(call));
    return run;
}

void unequal_start(unequal_run_t *run, unsigned round)
{
    clear_image(&run->all);
    clear_image(&run->one);
    write_all(run, run->call->salt + round);
    write_one(run, run->call->salt + round);
    begin(run);
}

static void check_image(const call_t *call, const image_t *image, const char *name, unsigned round)
{
    check(memcmp(image->memory, image->wanted, image->bytes) == 0,
          "%s of shape %d, %d units, root %d%s%s, salt %u, round %u: %s wrong",
          call->gathers ? "gatherv" : "scatterv", (int) call->shape, call->units, call->root,
          call->in_place ? ", in place" : "", call->persistent ? ", persistent" : "", call->salt,
          round, name);
}

void unequal_end(unequal_run_t *run, unsigned round)
{
    MPI_Wait(&run->request, MPI_STATUS_IGNORE);
    see_request(run->request);
    check_image(run->call, &run->all, "all blocks are", round);
    check_image(run->call, &run->one, "the own block is", round);
}

void unequal_free(unequal_run_t *run)
{
    if (run->request != MPI_REQUEST_NULL) {
        MPI_Request_free(&run->request);
    }
    free_image(&run->all);
    free_image(&run->one);
}

void unequal_run(call_t *call, int signature, int all_way, int one_way)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    unequal_run_t run;

    if (call->apart) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    unequal_types(call, signature, all_way, one_way);
    run = unequal_prepare(call, comm);
    for (unsigned round = 0; round < (call->persistent ? 3 : 1); round++) {
        unequal_start(&run, round);
        unequal_end(&run, round);
    }
    unequal_free(&run);
    typed_free(&call->all);
    typed_free(&call->one);
    if (call->apart) {
        MPI_Comm_free(&comm);
    }
}
