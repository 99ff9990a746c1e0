/*
 * threads_pthreads_threads.h: in place of a header of Open MPI 5's that its installation lacks.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_COMPAT_THREADS_PTHREADS_THREADS_H
#define FLASH_COMPAT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <signal.h>

#include "opal/mca/threads/pthreads/threads_pthreads.h"
#include "opal/mca/threads/threads.h"

#endif /* FLASH_COMPAT_THREADS_PTHREADS_THREADS_H */
