/*
 * test_gather.c: MPI_Igather, MPI_Iscatter and their persistent forms: each root, types that differ from
 * rank to rank, lengths, in place, and ranks that lack their buffer.
 *
 * Each rank works out what its buffers must hold in the end, gaps and guards included, and compares all
 * of it. What MPI says is significant at the root alone, or not in place, is nothing that could be used.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "chain.h"
#include "persistent.h"
#include "typed.h"

enum { CANARY = 0x5a, OWN_WAY = -1 };

/* The root has all blocks, by a type of its own, and each rank one of them. */
typedef struct call {
    bool gathers; /* or scatters */
    typed_t all, one;
    int units, root;
    bool persistent, in_place;
    unsigned salt;
} call_t;

/* A buffer, and what all of it must hold in the end. */
typedef struct image {
    unsigned char *memory, *wanted, *buffer;
    size_t bytes;
} image_t;

static bool is_root(const call_t *call)
{
    return world_rank == call->root;
}

static image_t make_image(const typed_t *typed, int units, int blocks)
{
    size_t margin = typed_margin(typed);
    size_t bytes = (size_t) (blocks * units * typed->per_unit) * (size_t) typed->extent;
    image_t image = {.bytes = bytes + 2 * margin};

    image.memory = get_memory(image.bytes);
    image.wanted = get_memory(image.bytes);
    image.buffer = image.memory + margin;
    return image;
}

static void free_image(image_t *image)
{
    free(image->memory);
    free(image->wanted);
}

static void clear_image(image_t *image)
{
    memset(image->memory, CANARY, image->bytes);
    memset(image->wanted, CANARY, image->bytes);
}

/* A rank's block, in the memory of an image or in what that must hold. */
static void write_block(const call_t *call, const typed_t *typed, image_t *image, bool wanted,
                        int at, int rank, unsigned salt)
{
    size_t elements = (size_t) (call->units * typed->per_unit);
    unsigned char *memory = (wanted ? image->wanted : image->memory) + typed_margin(typed);

    typed_write(typed, memory + (size_t) at * elements * (size_t) typed->extent, elements, rank,
                salt);
}

/* What the root has: a gather's result, or what is scattered, which stays. */
static void write_all(const call_t *call, image_t *all, unsigned salt)
{
    for (int rank = 0; rank < world_size && is_root(call); rank++) {
        write_block(call, &call->all, all, true, rank, rank, salt);
        if (!call->gathers || (call->in_place && rank == world_rank)) {
            write_block(call, &call->all, all, false, rank, rank, salt);
        }
    }
}

/* What this rank has of its own: what it contributes, which stays, or what it gets. */
static void write_one(const call_t *call, image_t *one, unsigned salt)
{
    if (call->in_place && is_root(call)) {
        return;
    }
    write_block(call, &call->one, one, true, 0, world_rank, salt);
    if (call->gathers) {
        write_block(call, &call->one, one, false, 0, world_rank, salt);
    }
}

/* The arguments of one side: those that MPI does not read say nothing. */
typedef struct side {
    void *buffer;
    int count;
    MPI_Datatype type;
} side_t;

static side_t side_of(const call_t *call, const typed_t *typed, void *buffer, bool read)
{
    return read ? (side_t){buffer, call->units * typed->per_unit, typed->type}
                : (side_t){buffer, -1, MPI_DATATYPE_NULL};
}

static void start(const call_t *call, unsigned char *all_buffer, unsigned char *one_buffer,
                  MPI_Request *request)
{
    bool in_place = call->in_place && is_root(call);
    void *nowhere = (void *) (uintptr_t) 64;
    side_t all = side_of(call, &call->all, is_root(call) ? all_buffer : nowhere, is_root(call));
    side_t one = side_of(call, &call->one, in_place ? MPI_IN_PLACE : one_buffer, !in_place);
    side_t from = call->gathers ? one : all, to = call->gathers ? all : one;

    if (!call->persistent) {
        (call->gathers ? MPI_Igather : MPI_Iscatter)(from.buffer, from.count, from.type, to.buffer,
                                                     to.count, to.type, call->root, MPI_COMM_WORLD,
                                                     request);
        return;
    }
    if (*request == MPI_REQUEST_NULL) {
        (call->gathers ? MPI_Gather_init : MPI_Scatter_init)(
            from.buffer, from.count, from.type, to.buffer, to.count, to.type, call->root,
            MPI_COMM_WORLD, MPI_INFO_NULL, request);
    }
    MPI_Start(request);
}

static void check_image(const call_t *call, const image_t *image, const char *name, unsigned salt)
{
    check(memcmp(image->memory, image->wanted, image->bytes) == 0,
          "%s of %d units, root %d%s%s, salt %u: %s wrong", call->gathers ? "gather" : "scatter",
          call->units, call->root, call->in_place ? ", in place" : "",
          call->persistent ? ", persistent" : "", salt, name);
}

static void run(call_t *call, int signature, int all_way, int one_way)
{
    image_t all, one;
    MPI_Request request = MPI_REQUEST_NULL;

    typed_make(&call->all, signature, all_way == OWN_WAY ? (int) call->salt % WAYS : all_way);
    typed_make(&call->one, signature,
               one_way == OWN_WAY ? (3 * world_rank + (int) call->salt) % WAYS : one_way);
    all = make_image(&call->all, call->units, is_root(call) ? world_size : 0);
    one = make_image(&call->one, call->units, 1);
    for (unsigned round = 0; round < (call->persistent ? 3 : 1); round++) {
        clear_image(&all);
        clear_image(&one);
        write_all(call, &all, call->salt + round);
        write_one(call, &one, call->salt + round);
        start(call, all.buffer, one.buffer, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_image(call, &all, "all blocks are", call->salt + round);
        check_image(call, &one, "the own block is", call->salt + round);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    typed_free(&call->all);
    typed_free(&call->one);
    free_image(&all);
    free_image(&one);
}

static unsigned salts; /* alike on all ranks, which run the same calls */

/* Both calls, plain or persistent, in place or not. */
static void run_forms(int signature, int all_way, int one_way, int units, int root)
{
    for (int form = 0; form < 8; form++) {
        call_t call = {.gathers = form % 2 == 0,
                       .units = units,
                       .root = root,
                       .persistent = form / 2 % 2 == 1,
                       .in_place = form >= 4,
                       .salt = ++salts};

        run(&call, signature, all_way, one_way);
    }
}

/* ------------------------------------------------------------------ the cases */

static void roots(void)
{
    static const int units[] = {0, 1, 2, 3, 17, 513};

    for (int root = 0; root < world_size; root++) {
        for (size_t k = 0; k < LENGTH(units); k++) {
            int signature = (int) ((size_t) root + k) % SIGNATURES;

            if (is_turn(k + (size_t) root)) {
                run_forms(signature, WAY_PREDEFINED, WAY_PREDEFINED, units[k], root);
            }
        }
    }
}

static void types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int way = 1; way < WAYS; way++) {
            if (is_turn((size_t) (signature + way))) {
                run_forms(signature, way, WAY_PREDEFINED, 3, way % world_size);
                run_forms(signature, WAY_PREDEFINED, way, 1, (way + 1) % world_size);
                run_forms(signature, way, way, 41, (way + 2) % world_size);
            }
        }
    }
}

/* Each rank describes the data in its own way. */
static void signatures(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int units = 1, k = 0; units <= 1000; units *= 10, k++) {
            if (is_turn((size_t) (signature + k))) {
                run_forms(signature, OWN_WAY, OWN_WAY, units, (signature + k) % world_size);
            }
        }
    }
}

/* Blocks in several segments. */
static void big(void)
{
    const int bytes = world_size <= 2 ? 1500000 : 400000;
    const int units = bytes / (TYPED_BASICS * 8) + 1;

    run_forms(SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED, units, 0);
    run_forms(SIGNATURE_DOUBLE, OWN_WAY, OWN_WAY, units / 5, world_size - 1);
}

/* What an element holds that is gathered from, or scattered to, a rank in a call. */
static int64_t element_of(int call, int rank, int k)
{
    return 1000000 * (int64_t) call + 1000 * rank + k;
}

/* To and from all roots at a time, and more of them on one rank before others have begun. */
static void many(void)
{
    enum { ROUNDS = 8, COUNT = 300 };
    int calls = ROUNDS * world_size, per_call = (world_size + 1) * COUNT;
    int64_t *memory = get_memory((size_t) (calls * per_call) * sizeof(int64_t));
    MPI_Request *requests = get_memory((size_t) calls * sizeof(*requests));

    for (int call = 0; call < calls; call++) {
        int64_t *all = memory + call * per_call, *one = all + world_size * COUNT;
        bool gathers = call % 3 > 0;
        int root = call % world_size;

        for (int k = 0; k < world_size * COUNT; k++) {
            all[k] = gathers ? -1 : element_of(call, k / COUNT, k % COUNT);
        }
        for (int k = 0; k < COUNT; k++) {
            one[k] = gathers ? element_of(call, world_rank, k) : -1;
        }
        if (gathers) {
            MPI_Igather(one, COUNT, MPI_INT64_T, all, COUNT, MPI_INT64_T, root, MPI_COMM_WORLD,
                        &requests[call]);
        } else {
            MPI_Iscatter(all, COUNT, MPI_INT64_T, one, COUNT, MPI_INT64_T, root, MPI_COMM_WORLD,
                         &requests[call]);
        }
    }
    MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
    for (int call = 0; call < calls; call++) {
        const int64_t *all = memory + call * per_call, *one = all + world_size * COUNT;
        bool gathers = call % 3 > 0, root = call % world_size == world_rank, right = true;

        for (int k = 0; k < world_size * COUNT; k++) {
            right &= all[k] == (gathers && !root ? -1 : element_of(call, k / COUNT, k % COUNT));
        }
        for (int k = 0; k < COUNT; k++) {
            right &= one[k] == element_of(call, world_rank, k);
        }
        check(right, "call %d is wrong", call);
    }
    free(memory);
    free(requests);
}

/* Freed as soon as the calls have begun. */
static void handles_gone(void)
{
    for (int form = 0; form < 2; form++) {
        call_t call = {
            .gathers = form == 0, .units = 3000, .root = world_size - 1, .salt = ++salts};
        image_t all, one;
        MPI_Request request = MPI_REQUEST_NULL;

        typed_make(&call.all, SIGNATURE_INT32, WAY_VECTOR);
        typed_make(&call.one, SIGNATURE_INT32, WAY_LONG_EXTENT);
        all = make_image(&call.all, call.units, is_root(&call) ? world_size : 0);
        one = make_image(&call.one, call.units, 1);
        clear_image(&all);
        clear_image(&one);
        write_all(&call, &all, call.salt);
        write_one(&call, &one, call.salt);
        start(&call, all.buffer, one.buffer, &request);
        typed_free(&call.all);
        typed_free(&call.one);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_image(&call, &all, "all blocks, of a type that is gone, are", call.salt);
        check_image(&call, &one, "the own block, of a type that is gone, is", call.salt);
        free_image(&all);
        free_image(&one);
    }
}

/* ------------------------------------------------------------ a rank refuses */

enum { MOST = 70000, MOST_RANKS = 8 };
static int64_t all_data[MOST_RANKS * MOST], one_data[MOST];
static bool gathering;

static int start_lacking(int root, int count, bool lacks, MPI_Comm comm, MPI_Request *request)
{
    bool is_root = world_rank == root;
    int64_t *all = lacks && is_root ? NULL : all_data, *one = lacks && !is_root ? NULL : one_data;

    for (int k = 0; k < world_size * count; k++) {
        all_data[k] = gathering ? -1 : element_of(root, k / count, k % count);
    }
    for (int k = 0; k < count; k++) {
        one_data[k] = gathering ? element_of(root, world_rank, k) : -1;
    }
    return gathering
               ? MPI_Igather(one, count, MPI_INT64_T, all, count, MPI_INT64_T, root, comm, request)
               : MPI_Iscatter(all, count, MPI_INT64_T, one, count, MPI_INT64_T, root, comm,
                              request);
}

static bool is_right(int root, int count)
{
    bool right = true;

    for (int k = 0; k < world_size * count && gathering && world_rank == root; k++) {
        right &= all_data[k] == element_of(root, k / count, k % count);
    }
    for (int k = 0; k < count && !gathering; k++) {
        right &= one_data[k] == element_of(root, world_rank, k);
    }
    return right;
}

/*
 * A root that gathers lacks the blocks of others alone, and a root that scatters is lacked by all
 * others.
 */
static void no_buffer(void)
{
    static const int counts[] = {10, MOST};

    for (size_t k = 0; k < 2 * LENGTH(counts); k++) {
        gathering = k % 2 == 0;
        chain_refuse(gathering ? "Igather" : "Iscatter", counts[k / 2], start_lacking, is_right,
                     world_size * (world_size - 1), false);
    }
}

TEST_PROGRAM(test_gather, MPI_THREAD_SINGLE, {"roots", roots}, {"types", types},
             {"signatures", signatures}, {"big", big}, {"many", many},
             {"handles_gone", handles_gone}, {"no_buffer", no_buffer});
