/*
 * orders.h: tiny rings whose every order of events is tried: what they are made of, and the points
 * that say what has come of them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef ORDERS_H
#define ORDERS_H

#include "explore.h"

extern uint64_t orders_seed;           /* of the data; nothing else is random */
extern unsigned long orders_most_runs; /* of a case that may be left incomplete */

/* Networks in which messages take one way or another. */
enum { ORDERS_NETS = 4, ORDERS_RENDEZVOUS = 2 };
extern const fake_options_t orders_nets[ORDERS_NETS];
extern const char *const orders_net_names[ORDERS_NETS];

typedef enum { NO_CALLBACK, CALLBACK, PENDING } callback_t;

/* An operation of so many segments, each of one element, one of them under way at a time. */
sim_spec_t orders_spec(flash_kind_t kind, size_t segments, callback_t callback);
/* A point's name: of the operation, and `rest`. It is good until the next call. */
const char *orders_title(const sim_spec_t *spec, uint32_t nranks, const char *rest);
explore_case_t orders_case(uint32_t nranks, const fake_options_t *net, const sim_spec_t *specs,
                           uint32_t nspecs, void (*judge)(sim_t *sim));
void orders_judge_fine(sim_t *sim); /* all is well on each rank */

/* Kinds of twice as many steps have orders without end. */
bool orders_take_long(flash_kind_t kind, uint32_t nranks, size_t segments, bool staged);
/* Two, or one where that would take long. */
size_t orders_few_segments(flash_kind_t kind, uint32_t nranks);

/* Whatever fails in it: a point for all orders, or for those with few delays. */
void orders_try_most(const char *name, const explore_case_t *what);
/* Nothing fails in it: a point for all orders, of ranks from `first` to before `end`. */
void orders_try_all(const char *name, const explore_case_t *what, uint32_t first, uint32_t end);
/*
 * The same of one operation in one network. The blocks are equally large, so that what a rank can
 * do differs from what another one can only in the numbers of its blocks. Where all ranks would
 * take too long, each network has another one.
 */
void orders_try_net(const sim_spec_t *spec, uint32_t nranks, uint32_t net);

/*
 * Prints the plan; what main() returns. All points are made by orders.c: tap.h counts those of one
 * source.
 */
int orders_done(void);

/* orders_device.c */
void orders_test_device(flash_kind_t kind);
/* All that is bounded: the pairwise schedule is not. */
void orders_test_bounds(flash_kind_t kind);
/* Sums of wider elements. */
void orders_test_wide(uint32_t nranks, bool on_device);

/* orders_failures.c */
void orders_test_failures(flash_kind_t kind);
/* What may go wrong in bounded scratch. */
void orders_test_bounded_fails(flash_kind_t kind, uint32_t nranks);
/* What a failing rank says comes to where the processor cannot read it. */
void orders_test_device_scratch_failed_rank(flash_kind_t kind);

#endif /* ORDERS_H */
