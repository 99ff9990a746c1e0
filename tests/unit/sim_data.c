/*
 * sim_data.c: what an operation begins with, what is to come of it, and where it lies.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "sim_instance.h"

#define CANARY 0xc7

bool sim_is_root(const sim_instance_t *in)
{
    return in->rank == sim_root(in->sim, in->spec);
}

uint32_t sim_blocks(const sim_instance_t *in)
{
    return flash_schedule_chains(in->spec->kind) ? 1 : in->sim->nranks;
}

bool sim_contributes(const sim_instance_t *in, uint32_t block)
{
    switch (in->spec->kind) {
    case FLASH_ALLGATHER:
    case FLASH_GATHER:
        return block == in->rank;
    case FLASH_BCAST:
    case FLASH_SCATTER:
        return sim_is_root(in);
    default:
        return true;
    }
}

uint64_t sim_contribution(const sim_instance_t *in, uint32_t rank, uint32_t block, size_t k)
{
    if (flash_schedule_chains(in->spec->kind)) {
        block = 0;
    }
    return prng_mix(in->sim->seed + ((uint64_t) in->index << 56) + ((uint64_t) rank << 44) +
                    ((uint64_t) block << 32) + k);
}

uint64_t sim_combine(bool mix, uint64_t a, uint64_t b)
{
    return mix ? prng_mix(a + 1) + prng_mix(b + 1) : a + b;
}

uint64_t sim_expected(const sim_instance_t *in, uint32_t block, size_t k)
{
    uint32_t n = in->sim->nranks, root = sim_root(in->sim, in->spec);
    uint32_t last = in->spec->kind == FLASH_REDUCE ? root : block; /* to add what it has */
    uint64_t sum;

    if (in->spec->kind == FLASH_BCAST || in->spec->kind == FLASH_SCATTER) {
        return sim_contribution(in, root, block, k);
    }
    if (flash_schedule_gathers(in->spec->kind)) {
        return sim_contribution(in, block, block, k);
    }
    if (in->spec->kind == FLASH_ALLTOALL) {
        return sim_contribution(in, block, in->rank, k);
    }
    sum = sim_contribution(in, sim_neighbour(in->sim, last, 1), block, k);
    for (uint32_t i = 2; i <= n; i++) {
        sum = sim_combine(in->spec->mix, sum,
                          sim_contribution(in, sim_neighbour(in->sim, last, i), block, k));
    }
    return sum;
}

/* --- memory --- */

bool sim_is_among(const sim_instance_t *in, unsigned ranks)
{
    return (ranks >> in->rank % 2 & 1) != 0;
}

/* What is broadcast is sent from where the other ranks receive it to. */
bool sim_is_in_place(const sim_instance_t *in)
{
    const sim_spec_t *spec = in->spec;
    bool calls = sim_spec_calls(spec, true) || sim_spec_calls(spec, false);

    switch (spec->kind) {
    case FLASH_BCAST:
        return true;
    case FLASH_ALLGATHER:
        return spec->in_place;
    case FLASH_GATHER:
    case FLASH_SCATTER:
        return spec->in_place && sim_is_root(in);
    case FLASH_ALLREDUCE:
        return spec->in_place && !calls;
    case FLASH_REDUCE:
        return spec->in_place && !calls && sim_is_root(in);
    default:
        return false;
    }
}

/* The input of a reduction with a callback is what that writes. */
bool sim_instance_is_on_device(const sim_instance_t *in, bool input)
{
    if (sim_is_among(in, in->spec->near)) {
        return false;
    }
    return input && !sim_is_in_place(in) ? in->spec->device_input : in->spec->device_output;
}

uint64_t sim_stored(const sim_instance_t *in, bool input, uint64_t element)
{
    return sim_instance_is_on_device(in, input) ? ~element : element;
}

bool sim_makes_device_sums(const sim_instance_t *in)
{
    return in->spec->kind != FLASH_PAIRWISE_REDUCE_SCATTER &&
           flash_schedule_reduces(in->spec->kind) && in->spec->device_sums && !in->spec->users &&
           sim_instance_is_on_device(in, true) && sim_instance_is_on_device(in, false);
}

bool sim_has_device_scratch(const sim_instance_t *in)
{
    bool staged = sim_instance_is_on_device(in, true) || sim_instance_is_on_device(in, false);

    return sim_is_among(in, in->spec->device_scratch) && staged &&
           (!flash_schedule_reduces(in->spec->kind) || sim_makes_device_sums(in));
}

uint64_t *sim_input_of(const sim_instance_t *in, uint32_t block)
{
    bool one = flash_schedule_gathers(in->spec->kind) || flash_schedule_chains(in->spec->kind);

    return in->input == NULL || one ? in->input : in->input + in->out_layout.displs[block];
}

uint64_t *sim_output_of(const sim_instance_t *in, uint32_t block)
{
    bool one = flash_schedule_scatters(in->spec->kind) || flash_schedule_chains(in->spec->kind);

    return one ? in->output : in->output + in->in_layout.displs[block];
}

uint64_t sim_changed(const sim_instance_t *in, uint64_t sum)
{
    flash_kind_t kind = in->spec->kind;
    bool changes = flash_schedule_scatters(kind) && flash_schedule_reduces(kind) && in->spec->other;

    return changes ? sum ^ 0x5a5a : sum;
}

static size_t guarded_bytes(size_t count)
{
    return (count * SIM_ELEMENT + 2 * SIM_PAD + SIM_PAD - 1) / SIM_PAD * SIM_PAD;
}

size_t sim_instance_output_bytes(const sim_instance_t *in)
{
    return guarded_bytes(in->output_count);
}

unsigned char *sim_guarded(size_t count, uint64_t **first)
{
    size_t bytes = guarded_bytes(count);
    unsigned char *memory = aligned_alloc(SIM_PAD, bytes);

    memset(memory, CANARY, bytes);
    *first = (uint64_t *) (memory + SIM_PAD);
    return memory;
}

static bool untouched(const unsigned char *memory, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        if (memory[k] != CANARY) {
            return false;
        }
    }
    return true;
}

static bool guards_hold(const unsigned char *memory, size_t count)
{
    return untouched(memory, SIM_PAD) && untouched(memory + SIM_PAD + count * SIM_ELEMENT, SIM_PAD);
}

/* --- the end --- */

static void check_gaps(sim_instance_t *in)
{
    const sim_layout_t *layout = &in->in_layout;

    for (uint32_t block = 0; block < sim_blocks(in) && layout->gap > 0; block++) {
        const uint64_t *end = in->output + layout->displs[block] + layout->counts[block];

        if (!untouched((const unsigned char *) end, layout->gap * SIM_ELEMENT)) {
            sim_complain(in->sim, "op %u rank %u: wrote past block %u", in->index, in->rank, block);
        }
    }
}

static void check_result(sim_instance_t *in, uint32_t block)
{
    const uint64_t *data = sim_output_of(in, block);

    for (size_t k = 0; k < in->in_layout.counts[block]; k++) {
        if (data[k] != sim_stored(in, false, sim_changed(in, sim_expected(in, block, k)))) {
            sim_complain(in->sim, "op %u rank %u: OK, but element %zu of block %u is wrong",
                         in->index, in->rank, k, block);
            return;
        }
    }
}

/* Nobody writes to an input but who produces it. */
static void check_input(sim_instance_t *in, uint32_t block)
{
    const uint64_t *data = sim_input_of(in, block);

    for (size_t k = 0; k < in->out_layout.counts[block]; k++) {
        if (data[k] != sim_stored(in, true, sim_contribution(in, in->rank, block, k))) {
            sim_complain(in->sim, "op %u rank %u: the input changed", in->index, in->rank);
            return;
        }
    }
}

void sim_instance_check(sim_instance_t *in)
{
    bool scatters = flash_schedule_scatters(in->spec->kind);
    flash_kind_t kind = in->spec->kind;
    bool has_results = (kind != FLASH_REDUCE && kind != FLASH_GATHER) || sim_is_root(in);
    bool has_input =
        in->input_memory != NULL && (!sim_spec_calls(in->spec, true) || in->status == FLASH_OK);

    if (!guards_hold(in->output_memory, in->output_count) ||
        (in->input_memory != NULL && !guards_hold(in->input_memory, in->input_count))) {
        sim_complain(in->sim, "op %u rank %u: wrote outside a buffer", in->index, in->rank);
    }
    if (!scatters && has_results) {
        check_gaps(in);
    }
    for (uint32_t block = 0; block < sim_blocks(in) && has_input; block++) {
        if (sim_contributes(in, block)) {
            check_input(in, block);
        }
    }
    for (uint32_t block = 0; block < sim_blocks(in) && in->status == FLASH_OK; block++) {
        if (scatters ? block == in->rank : has_results) {
            check_result(in, block);
        }
    }
}
