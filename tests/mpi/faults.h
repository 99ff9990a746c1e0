/*
 * faults.h: calls of UCX and the C library that fail, when flash's library makes them. A program
 * that is linked with faults.c has its own ucp_ep_create() and so on, ahead of the libraries'.
 *
 * "malloc" stands for calloc(), realloc() and posix_memalign(), too; "posix_memalign" for that
 * alone. Neither fails under sanitizers, which have their own.
 *
 * "ucp_tag_recv_callback" is no function: the receive is posted, and ends with the status.
 *
 * FLASH_TEST_FAULT=FUNCTION in the environment: the first call of FUNCTION fails, in MPI_Init, too,
 * or call number FLASH_TEST_FAULT_CALL.
 *
 * FLASH_TEST_ENDPOINTS in the environment: a line says how many endpoints flash has made, and how
 * many of them it has closed, when it destroys their worker.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* Statuses of UCX. */
enum { FAULT_IO_ERROR = -3, FAULT_NO_MEMORY = -4, FAULT_UNREACHABLE = -6, FAULT_CANCELED = -16 };

/* The call number `nth`, from 1, from now on fails: functions of UCX with that status. */
void fault_arm(const char *function, int nth, int status);
/* Likewise, and all that follow. */
void fault_arm_lasting(const char *function, int nth, int status);
/* Whether it has failed meanwhile; no call fails any more. */
bool fault_disarm(const char *function);

/*
 * Allocations that flash's library has made in this process, by itself or through what Open MPI
 * has in its headers, and that nobody has freed. 0 under sanitizers.
 */
size_t fault_allocations(void);

#endif /* FAULTS_H */
