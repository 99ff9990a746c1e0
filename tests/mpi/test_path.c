/*
 * test_path.c: prints which functions are on the stack when UCX is given the first message of an
 * MPI_Iallgather, as LIBRARY OFFSET, one a line, for path.sh to find their files.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>
#include <ucp/api/ucp.h>

#include "keep_libraries.h"

enum { MOST_FRAMES = 64, BYTES = 1 << 20 };

static int
    calling; /* 1: inside the call, whose first message is still to come; this thread alone */

/* A return address may be that of the next function: the call itself is before it. */
static void print_stack(void)
{
    void *frames[MOST_FRAMES];
    int count = backtrace(frames, MOST_FRAMES);
    Dl_info library;

    calling = 0;
    for (int k = 0; k < count; k++) {
        if (dladdr(frames[k], &library) != 0) {
            printf("%s %#jx\n", library.dli_fname,
                   (uintmax_t) ((uintptr_t) frames[k] - 1 - (uintptr_t) library.dli_fbase));
        }
    }
    fflush(stdout);
}

#define SEND_FUNCTION(function)                                                             \
    ucs_status_ptr_t function(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag, \
                              const ucp_request_param_t *param)                             \
    {                                                                                       \
        __typeof__(function) *next = (__typeof__(next)) dlsym(RTLD_NEXT, #function);        \
                                                                                            \
        if (calling) {                                                                      \
            print_stack();                                                                  \
        }                                                                                   \
        return next(ep, buffer, count, tag, param);                                         \
    }

SEND_FUNCTION(ucp_tag_send_nbx)
SEND_FUNCTION(ucp_tag_send_sync_nbx)

int main(int argc, char **argv)
{
    static char block[BYTES];
    MPI_Request request;
    int rank, size;
    char *blocks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    blocks = malloc((size_t) size * BYTES);
    if (blocks == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    calling = rank == 0;
    MPI_Iallgather(block, BYTES, MPI_BYTE, blocks, BYTES, MPI_BYTE, MPI_COMM_WORLD, &request);
    if (calling) {
        printf("the call gave UCX no message\n");
    }
    calling = 0;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(blocks);
    MPI_Finalize();
    return 0;
}
