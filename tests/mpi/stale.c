/*
 * stale.c: a library that is loaded before Open MPI's and flash's into each rank of a benchmark,
 * and breaks what that program relies on, as FLASH_TEST_STALE in the environment says:
 *
 *   call       MPI_Iallgather brings nothing
 *   consumer   the product is made of the rows that are there before the allgather brings them
 *   producer   the sums are made of what is there before the product is
 *   memory     the stand-in for CUDA's driver has no memory for the second buffer
 *
 * A program that leaves earlier results in its buffers finds the right ones there.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash_cublas.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool breaks(const char *what)
{
    const char *told = getenv("FLASH_TEST_STALE");

    return told != NULL && strcmp(told, what) == 0;
}

static __attribute__((constructor)) void break_memory(void)
{
    void (*fail)(const char *name, unsigned long nth);
    void *driver = breaks("memory") ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;

    if (driver != NULL) {
        *(void **) &fail = dlsym(driver, "standin_fail");
        fail("cuMemAlloc", 2);
    }
}

/* All ranks' rows at once. */
static void multiply(MPIX_Flash_cublas_gemm *gemm, int rows, const void *factor, MPI_Comm comm)
{
    MPIX_Flash_cublas_gemm whole = *gemm;
    MPIX_Flash_block block = {
        .pieces = 1, .ranks = 1, .datatype = MPI_FLOAT, .data = (void *) factor, .on_stream = 1};
    int ranks;

    MPI_Comm_size(comm, &ranks);
    whole.state.memory = NULL;
    whole.state.size = 0;
    block.count = (MPI_Count) rows * ranks * gemm->k;
    MPIX_Flash_cublas_consume(&block, &whole);
    MPIX_Flash_cublas_release(&whole, NULL);
}

int MPI_Iallgather(const void *from, int sent, MPI_Datatype sent_type, void *to, int received,
                   MPI_Datatype received_type, MPI_Comm comm, MPI_Request *request)
{
    if (breaks("call")) {
        return PMPI_Ibarrier(comm, request);
    }
    return PMPI_Iallgather(from, sent, sent_type, to, received, received_type, comm, request);
}

int MPIX_Flash_cublas_iallgather_gemm(const void *a, int rows, void *gathered,
                                      MPIX_Flash_cublas_gemm *gemm, int pieces, cudaStream_t stream,
                                      MPI_Comm comm, MPI_Request *request)
{
    int (*real)(const void *, int, void *, MPIX_Flash_cublas_gemm *, int, cudaStream_t, MPI_Comm,
                MPI_Request *);
    int element = gemm->type == CUDA_R_32F ? 4 : 2, bytes = rows * gemm->k * element;

    if (breaks("consumer")) {
        multiply(gemm, rows, gathered, comm);
        return PMPI_Iallgather(a, bytes, MPI_BYTE, gathered, bytes, MPI_BYTE, comm, request);
    }
    *(void **) &real = dlsym(RTLD_NEXT, __func__);
    return real(a, rows, gathered, gemm, pieces, stream, comm, request);
}

int MPIX_Flash_cublas_igemm_reduce_scatter(MPIX_Flash_cublas_gemm *gemm, int rows, void *result,
                                           int pieces, cudaStream_t stream, MPI_Comm comm,
                                           MPI_Request *request)
{
    int (*real)(MPIX_Flash_cublas_gemm *, int, void *, int, cudaStream_t, MPI_Comm, MPI_Request *);

    if (breaks("producer")) {
        PMPI_Ireduce_scatter_block(gemm->c, result, rows * gemm->n, MPI_FLOAT, MPI_SUM, comm,
                                   request);
        PMPI_Wait(request, MPI_STATUS_IGNORE);
        multiply(gemm, rows, gemm->a, comm);
        return MPI_SUCCESS;
    }
    *(void **) &real = dlsym(RTLD_NEXT, __func__);
    return real(gemm, rows, result, pieces, stream, comm, request);
}
