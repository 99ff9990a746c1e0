/*
 * bench_flash.h: the variants that call the extension: computation in its callbacks.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_FLASH_H
#define BENCH_FLASH_H

#include "bench_variants.h"

void bench_flash_allgather(bench_problem_t *problem, const bench_case_t *bench_case);
void bench_flash_reduce_scatter(bench_problem_t *problem, const bench_case_t *bench_case);

#endif /* BENCH_FLASH_H */
