/*
 * sim_instance.h: what the files about one operation on one rank share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef SIM_INSTANCE_H
#define SIM_INSTANCE_H

#include "sim.h"

#define SIM_PAD 64 /* bytes of canary around a buffer; keeps the alignment */

/* Whether what this rank contributes lies in its output. */
bool sim_is_in_place(const sim_instance_t *in);
/* How many blocks have a place in the input, or in the output. */
uint32_t sim_blocks(const sim_instance_t *in);
/* Of a kind with a root: whether this rank is it. */
bool sim_is_root(const sim_instance_t *in);
/* Whether this rank contributes to a block. */
bool sim_contributes(const sim_instance_t *in, uint32_t block);
/* What `rank` contributes to an element. For AG and a gather, the block is the rank's own; for A2A and a
 * scatter, that of the receiver; a chain has one. */
uint64_t sim_contribution(const sim_instance_t *in, uint32_t rank, uint32_t block, size_t k);
/* Commutative, and not idempotent; `mix` is not associative either, so that the order shows. */
uint64_t sim_combine(bool mix, uint64_t a, uint64_t b);
/* The element of the result: of a reduction, the contributions of the ranks to the right of the
 * block's, it last. */
uint64_t sim_expected(const sim_instance_t *in, uint32_t block, size_t k);
/* What an element looks like in the input, or in the output. */
uint64_t sim_stored(const sim_instance_t *in, bool input, uint64_t element);
/* What is made of a sum that is consumed. */
uint64_t sim_changed(const sim_instance_t *in, uint64_t sum);

/* Where this rank has what it contributes to a block, and the result; AG's and a gather's input, RS's and
 * a scatter's output and both of a chain are of one block. */
uint64_t *sim_input_of(const sim_instance_t *in, uint32_t block);
uint64_t *sim_output_of(const sim_instance_t *in, uint32_t block);
/* Of ranks of which there is a bit for those of equal parity. */
bool sim_is_among(const sim_instance_t *in, unsigned ranks);
bool sim_makes_device_sums(const sim_instance_t *in);
bool sim_has_device_scratch(const sim_instance_t *in);
/* Memory for so many elements, with canaries around. */
unsigned char *sim_guarded(size_t count, uint64_t **first);

/* The engine's; `arg` is the instance. */
int sim_on_callback(void *arg, const flash_piece_t *piece);
int sim_on_combine(void *arg, const void *in_data, void *inout_data, size_t count);
/* A wide element is one and its complement. */
#define SIM_WIDE (2 * SIM_ELEMENT)
int sim_on_widen(void *arg, const void *in_data, void *wide_data, size_t count);
int sim_on_combine_wide(void *arg, const void *in_data, void *wide_data, size_t count);
int sim_on_narrow(void *arg, const void *wide_data, void *out_data, size_t count);

#endif /* SIM_INSTANCE_H */
