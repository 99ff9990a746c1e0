/*
 * threads_pthreads.h: in place of a header of Open MPI 5's that its installation lacks: how it
 * gives up a turn.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_COMPAT_THREADS_PTHREADS_H
#define FLASH_COMPAT_THREADS_PTHREADS_H

extern void (*opal_threads_pthreads_yield_fn)(void);

static inline void opal_thread_yield(void)
{
    opal_threads_pthreads_yield_fn();
}

#endif /* FLASH_COMPAT_THREADS_PTHREADS_H */
