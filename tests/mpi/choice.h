/*
 * choice.h: which algorithm serves a standard call on one node, as MPIX_Flash_explain says.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef CHOICE_H
#define CHOICE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether that algorithm, "ring" or another, serves the call, "allgather" or another. */
bool choice_is(const char *algorithm, const char *call, size_t bytes, int ranks);
/* Whether a ring costs less than the fallback, as far as a ring may serve such calls here. */
bool choice_ring_pays(const char *call, size_t bytes, int ranks);
/* Whether it costs less than all other algorithms by messages. */
bool choice_ring_leads(const char *call, size_t bytes, int ranks);

#endif /* CHOICE_H */
