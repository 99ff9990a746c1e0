/*
 * random_operation.c: what random calls share: what is drawn, memory with guards, pieces.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "choice.h"
#include "random_ops.h"

uint64_t stream(int thread, uint64_t number, int purpose)
{
    uint64_t state = prng_mix(options.seed + UINT64_C(0x9e3779b97f4a7c15));

    state = prng_mix(state ^ number);
    return prng_mix(state ^ ((uint64_t) purpose << 8 | (uint64_t) thread));
}

/* ------------------------------------------------------------------------ draws */

/* From 0 to `most`, as many short ones as long ones. */
static int draw_length(uint64_t *state, size_t most)
{
    uint32_t bits = 0, length;

    while (most >> bits > 0) {
        bits++;
    }
    length = prng_below(state, UINT32_C(1) << prng_below(state, bits + 1));
    return (int) (length < most ? length : most);
}

void draw_blocks(operation_t *operation, uint64_t *all, size_t most)
{
    bool none = prng_percent(all, 3);
    int equal = 1 + draw_length(all, most);
    uint32_t empty = prng_percent(all, 50) ? 0 : 40;

    for (int rank = 0; rank < operation->size; rank++) {
        uint64_t state = stream(operation->sequence->thread, operation->number, FOR_BLOCK + rank);

        operation->blocks[rank] = none                          ? 0
                                  : !operation->unequal         ? equal
                                  : prng_percent(&state, empty) ? 0
                                                                : draw_length(&state, most);
    }
}

static const char *call_of(const operation_t *operation)
{
    if (operation->rooted) {
        return !operation->gathers   ? "reduce"
               : operation->collects ? "gather"
               : operation->deals    ? "scatter"
                                     : "bcast";
    }
    return operation->exchanges    ? "alltoall"
           : operation->gathers    ? "allgather"
           : operation->everywhere ? "allreduce"
                                   : "reduce_scatter";
}

static bool serves(const char *algorithm, const operation_t *operation, size_t bytes)
{
    return choice_is(algorithm, call_of(operation), bytes, operation->slot->size);
}

/* Of a persistent request, by the engine or not at all. */
static bool ring_each_time(const operation_t *operation, size_t bytes)
{
    return serves("ring", operation, bytes) ||
           choice_ring_pays(call_of(operation), bytes, operation->slot->size);
}

/* Or, a standard call, shared memory instead. */
bool takes_ring(const operation_t *operation, size_t bytes)
{
    if (!operation->slot->active) {
        return false;
    }
    if (operation->persistent) {
        return ring_each_time(operation, bytes);
    }
    return operation->compute || serves("ring", operation, bytes) ||
           serves("shm", operation, bytes);
}

/* What takes no ring, and is served at all. */
bool goes_recdbl(const operation_t *operation, size_t bytes)
{
    return operation->slot->active && !operation->persistent && !operation->compute &&
           serves("recdbl", operation, bytes);
}

bool goes_pairwise(const operation_t *operation, size_t bytes)
{
    return operation->slot->active && !operation->persistent && !operation->compute &&
           serves("pairwise", operation, bytes);
}

/* Open MPI 4.1's own persistent requests leave memory behind, which is watched for flash's. */
bool may_persist(const operation_t *operation)
{
    return operation->ring || !options.watch_memory;
}

static void draw_hints(operation_t *operation, uint64_t *all)
{
    static const int pieces[] = {0, 1, 2, 3, 5, 16, 4096};
    static const int rows[] = {0, 1, 2, 3, 10, 64};

    operation->pieces.block = -1;
    operation->pieces.hints = (MPIX_Flash_hints) MPIX_FLASH_HINTS_INIT;
    operation->pieces.hinted = prng_percent(all, 70);
    if (operation->pieces.hinted) {
        operation->pieces.hints.pieces = pieces[prng_below(all, LENGTH(pieces))];
        operation->pieces.hints.row = rows[prng_below(all, LENGTH(rows))];
    }
}

/* Of standard calls that are nothing else. */
static void draw_root(operation_t *operation)
{
    uint64_t state = stream(operation->sequence->thread, operation->number, FOR_ROOT);

    operation->rooted = prng_percent(&state, 30) && !operation->compute && !operation->everywhere &&
                        !operation->exchanges;
    operation->root = (int) prng_below(&state, (uint32_t) operation->size);
    operation->collects = prng_percent(&state, 35) && operation->rooted && operation->gathers;
    operation->deals =
        prng_percent(&state, 50) && operation->rooted && operation->gathers && !operation->collects;
}

static operation_t *draw_operation(sequence_t *sequence, const slot_t *slot)
{
    operation_t *operation = calloc(1, sizeof(*operation));
    uint64_t all = stream(sequence->thread, sequence->number, FOR_ALL);
    size_t size = (size_t) slot->size;

    operation->sequence = sequence;
    operation->number = sequence->number;
    operation->own = stream(sequence->thread, sequence->number, world_rank);
    operation->slot = slot;
    operation->comm = slot->comm;
    operation->rank = slot->rank;
    operation->size = slot->size;
    operation->salt = (unsigned) prng_next(&all);
    operation->gathers = prng_percent(&all, 50);
    operation->unequal = prng_percent(&all, 50);
    operation->compute = prng_percent(&all, 40);
    operation->blocking = operation->compute && prng_percent(&all, 15);
    operation->in_place = prng_percent(&all, 25);
    operation->persistent = !operation->compute && prng_percent(&all, 20);
    operation->starts = 1 + (int) prng_below(&all, 3);
    operation->everywhere = prng_percent(&all, 40) && !operation->gathers && !operation->compute;
    operation->exchanges = prng_percent(&all, 40) && operation->gathers && !operation->compute;
    draw_root(operation);
    operation->unequal &=
        !(operation->rooted && operation->gathers) || operation->collects || operation->deals;
    operation->free_early = prng_percent(&operation->own, 50);
    operation->blocks = get_memory(size * sizeof(int));
    operation->counts = get_memory(size * sizeof(int));
    operation->displs = get_memory(size * sizeof(int));
    operation->sent_counts = get_memory(2 * size * sizeof(int));
    draw_hints(operation, &all);
    (operation->gathers ? draw_gather : draw_reduce)(operation, &all);
    operation->type = operation->gathers ? operation->recv_type.type : operation->reduction.type;
    MPI_Type_size(operation->type, &operation->type_size);
    if (operation->persistent && (!operation->ring || operation->shared)) {
        operation->free_early = false; /* Open MPI 4.1's own requests do not keep their types */
    }
    expect_path(operation);
    return operation;
}

static void free_types(operation_t *operation)
{
    (operation->gathers ? free_gather_types : free_reduce_types)(operation);
}

static void check_result(operation_t *operation)
{
    (operation->gathers ? check_gather : check_reduce)(operation);
}

/* All ranks start a request at the same places between their other calls, and complete the last
   start at any. */
static void start_persistent(operation_t *operation, MPI_Request *request)
{
    image_t *recv = &operation->recv;
    unsigned char *before = get_memory(recv->bytes);

    memcpy(before, recv->memory, recv->bytes);
    for (int start = 1; start <= operation->starts; start++) {
        must(MPI_Start(request), operation->sequence, operation->number, "MPI_Start");
        if (start < operation->starts) {
            must(MPI_Wait(request, MPI_STATUS_IGNORE), operation->sequence, operation->number,
                 operation->name);
            see_request(*request);
            check_result(operation);
            memcpy(recv->memory, before, recv->bytes);
        }
    }
    free(before);
}

operation_t *post_operation(sequence_t *sequence, const slot_t *slot, MPI_Request *request)
{
    operation_t *operation = draw_operation(sequence, slot);

    sequence->doing = operation->name;
    *request = MPI_REQUEST_NULL;
    must((operation->gathers ? start_gather : start_reduce)(operation, request), sequence,
         operation->number, operation->name);
    operation->blocking = *request == MPI_REQUEST_NULL; /* standard calls, too: see blocking.h */
    if (operation->free_early) {
        free_types(operation);
    }
    if (operation->persistent) {
        start_persistent(operation, request);
    }
    return operation;
}

void finish_operation(operation_t *operation)
{
    if (operation->compute) {
        check_pieces_complete(operation);
    }
    check_result(operation);
    if (!operation->free_early) {
        free_types(operation);
    }
    free_image(&operation->send);
    free_image(&operation->recv);
    free(operation->blocks);
    free(operation->counts);
    free(operation->displs);
    free(operation->sent_counts);
    free(operation);
}

/* ------------------------------------------------------------ memory with guards */

/* Each byte outside of the data has a value of its own, so that gaps cannot be copied unseen. */
void make_image(image_t *image, size_t before, size_t bytes, size_t after, unsigned salt)
{
    before = (before + 63) / 64 * 64; /* keeps the alignment of malloc() */
    image->bytes = before + bytes + after;
    image->memory = get_memory(image->bytes);
    image->wanted = get_memory(image->bytes);
    image->buffer = image->memory + before;
    fill_pattern(image->memory, image->bytes, -1, salt);
    memcpy(image->wanted, image->memory, image->bytes);
}

void check_image(const operation_t *operation, const image_t *image, const char *name)
{
    size_t wrong = 0, all = 0;

    if (image->bytes == 0 || memcmp(image->memory, image->wanted, image->bytes) == 0) {
        return;
    }
    for (size_t k = image->bytes; k-- > 0;) {
        if (image->memory[k] != image->wanted[k]) {
            wrong = k;
            all++;
        }
    }
    fail(operation->sequence, operation->number,
         "%s, rank %d of %d, own block of %d: the %s buffer's byte %td is %#x, not %#x; "
         "%zu of %zu bytes are wrong, guards included",
         operation->name, operation->rank, operation->size, operation->blocks[operation->rank],
         name, image->memory + wrong - image->buffer, image->memory[wrong], image->wanted[wrong],
         all, image->bytes);
}

void free_image(image_t *image)
{
    free(image->memory);
    free(image->wanted);
}

/* ------------------------------------------------------------------------ pieces */

const MPIX_Flash_hints *hints_of(const operation_t *operation)
{
    return operation->pieces.hinted ? &operation->pieces.hints : NULL;
}

/* A callback may call MPI, which runs no other callback, and the type lives as long as it does. */
static void call_mpi(operation_t *operation, const MPIX_Flash_block *block)
{
    static _Thread_local bool inside;
    int size = -1, flag;

    if (inside || operation->pieces.inside) {
        fail(operation->sequence, operation->number, "%s: callbacks nest or overlap",
             operation->name);
    }
    inside = operation->pieces.inside = true;
    MPI_Type_size(block->datatype, &size);
    if (block->datatype != operation->type || size != operation->type_size ||
        block->stream != NULL) {
        fail(operation->sequence, operation->number, "%s: wrong arguments of a callback",
             operation->name);
    }
    if (prng_percent(&operation->own, 20)) {
        MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    inside = operation->pieces.inside = false;
}

void check_piece(operation_t *operation, const MPIX_Flash_block *block)
{
    pieces_t *pieces = &operation->pieces;
    MPI_Count row = pieces->hints.row > 1 ? pieces->hints.row : 1, end, length;
    int most = pieces->hints.pieces > 1 ? pieces->hints.pieces : 1, wanted;

    call_mpi(operation, block);
    if (pieces->block < 0 && turns_allow(pieces->done, operation->counts, operation->size,
                                         operation->rank, operation->gathers, block->rank)) {
        pieces->block = block->rank;
    }
    wanted = pieces->block;
    end = block->offset + block->count;
    length = wanted < 0 ? 0 : operation->counts[wanted];
    if (wanted < 0 || block->rank != wanted || block->piece != pieces->piece ||
        block->piece >= block->pieces || block->pieces > most || block->count < 1 ||
        block->offset != pieces->offset || block->offset % row != 0 || end > length ||
        (block->piece == block->pieces - 1) != (end == length)) {
        fail(operation->sequence, operation->number,
             "%s, rank %d of %d: a callback for block %d, piece %d of %d, elements %lld to %lld; "
             "it is the turn of block %d (-1: another), piece %d, from element %lld of %lld on",
             operation->name, operation->rank, operation->size, block->rank, block->piece,
             block->pieces, (long long) block->offset, (long long) end, wanted, pieces->piece,
             (long long) pieces->offset, (long long) length);
    }
    pieces->piece++;
    pieces->offset = end;
    if (end == length) {
        pieces->done |= UINT64_C(1) << wanted;
        pieces->block = -1;
        pieces->piece = 0;
        pieces->offset = 0;
    }
}

void check_pieces_complete(const operation_t *operation)
{
    const pieces_t *pieces = &operation->pieces;

    if (!turns_all_done(pieces->done, operation->counts, operation->size)) {
        fail(operation->sequence, operation->number,
             "%s, rank %d of %d: complete without all callbacks (done: %#llx, block %d, piece %d)",
             operation->name, operation->rank, operation->size, (unsigned long long) pieces->done,
             pieces->block, pieces->piece);
    }
}
