/*
 * facts.c: what the driver answers where flash depends on it, and CUDA's documents leave it open; the
 * stand-in driver decides by itself. Each line is a fact; `OTHERWISE` begins one that flash does not
 * allow for.
 *
 * FLASH_TEST_DRIVER in the environment is the path of the driver; default: the system's. Status 1: there
 * is such a line.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

enum { SMALL = 512, MOST = 64, HELD_MS = 100 };

static void *library;
static CUcontext context;
static bool otherwise;

/* The driver's function, by what <cuda.h> makes of its name; NULL: it has none. */
#define TEXT(name)     #name
#define TEXT_OF(name)  TEXT(name)
#define FIND(function) ((__typeof__(&(function))) dlsym(library, TEXT_OF(function)))

static void must(bool well, const char *what)
{
    if (!well) {
        printf("OTHERWISE: %s fails\n", what);
        exit(EXIT_FAILURE);
    }
}

static void tell(bool allowed_for, const char *what, const char *answer)
{
    printf("%s%s: %s\n", allowed_for ? "" : "OTHERWISE: ", what, answer);
    otherwise |= !allowed_for;
}

static const char *name_of(CUresult result)
{
    const char *name = "?";

    if (result == CUDA_SUCCESS) {
        return "CUDA_SUCCESS";
    }
    FIND(cuGetErrorName)(result, &name);
    return name;
}

static CUresult ask(void *answer, CUpointer_attribute attribute, CUdeviceptr address)
{
    return FIND(cuPointerGetAttribute)(answer, attribute, address);
}

/* ---------------------------------------------------------------------- attributes */

/* A lane is of that context, or, where there is none, of the primary one. */
static void tell_owner(const char *what, CUdeviceptr address)
{
    CUcontext owner = NULL;
    CUresult result = ask(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address);
    CUresult taken, range;
    unsigned yes = 1;
    size_t size = 0;
    char text[300];

    taken = FIND(cuPointerSetAttribute)(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
    range = ask(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
    snprintf(text, sizeof(text), "its context: %s%s; SYNC_MEMOPS: %s; bytes of its range: %s, %zu",
             name_of(result),
             result != CUDA_SUCCESS ? ""
             : owner == NULL        ? ", none"
             : owner == context     ? ", the current one"
                                    : ", another one",
             name_of(taken), name_of(range), size);
    tell(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE, what, text);
}

static void tell_ordinary(void)
{
    void *memory = malloc(1 << 20);
    unsigned type = 0;
    CUresult result = ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t) memory);

    tell(result == CUDA_ERROR_INVALID_VALUE, "malloc's memory, the kind of it", name_of(result));
    free(memory);
}

static void tell_pool(void)
{
    CUdeviceptr memory = 0;

    if (FIND(cuMemAllocAsync) == NULL) {
        tell(true, "memory of a pool", "this driver has none");
        return;
    }
    must(FIND(cuMemAllocAsync)(&memory, 1 << 20, NULL) == CUDA_SUCCESS &&
             FIND(cuStreamSynchronize)(NULL) == CUDA_SUCCESS,
         "cuMemAllocAsync");
    tell_owner("memory of a pool", memory);
    must(FIND(cuMemFreeAsync)(memory, NULL) == CUDA_SUCCESS, "cuMemFreeAsync");
}

/* Two pieces, one behind the other. */
static void tell_mapped(void)
{
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = kind.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle piece;
    CUdeviceptr memory = 0;
    size_t size = 0;

    if (FIND(cuMemCreate) == NULL) {
        tell(true, "mapped memory", "this driver has none");
        return;
    }
    must(FIND(cuMemGetAllocationGranularity)(&size, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
                 CUDA_SUCCESS &&
             FIND(cuMemAddressReserve)(&memory, 2 * size, 0, 0, 0) == CUDA_SUCCESS,
         "cuMemAddressReserve");
    for (int k = 0; k < 2; k++) {
        must(FIND(cuMemCreate)(&piece, size, &kind, 0) == CUDA_SUCCESS &&
                 FIND(cuMemMap)(memory + (size_t) k * size, size, 0, piece, 0) == CUDA_SUCCESS,
             "cuMemMap");
    }
    must(FIND(cuMemSetAccess)(memory, 2 * size, &access, 1) == CUDA_SUCCESS, "cuMemSetAccess");
    tell_owner("mapped memory, first piece", memory);
    tell_owner("mapped memory, second piece", memory + size);
}

/* -------------------------------------------------------------------------- copies */

/* Allocations of which two adjoin: the first one of them; 0: none do. */
static CUdeviceptr find_adjoining(void)
{
    CUdeviceptr made[MOST];

    for (int k = 0; k < MOST; k++) {
        must(FIND(cuMemAlloc)(&made[k], SMALL) == CUDA_SUCCESS, "cuMemAlloc");
        if (k > 0 && made[k] == made[k - 1] + SMALL) {
            return made[k - 1];
        }
    }
    return 0;
}

static void tell_adjoining(CUstream stream)
{
    CUdeviceptr first = find_adjoining();
    char content[2 * SMALL];
    size_t size = 0;
    CUresult result;

    if (first == 0) {
        tell(true, "adjoining allocations", "there are none");
        return;
    }
    result = ask(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, first);
    tell(result == CUDA_SUCCESS && size == SMALL, "an allocation that adjoins another, its range",
         result != CUDA_SUCCESS ? name_of(result)
         : size == SMALL        ? "its own"
                                : "both");
    result = FIND(cuMemcpyAsync)((uintptr_t) content, first, sizeof(content), stream);
    tell(true, "a copy over both", name_of(result));
    FIND(cuStreamSynchronize)(stream);
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double) now.tv_sec + 1e-6 * (double) now.tv_nsec;
}

static void CUDA_CB hold(void *arg)
{
    static const struct timespec held = {.tv_nsec = HELD_MS * 1000000L};

    (void) arg;
    nanosleep(&held, NULL);
}

static void tell_behind(CUstream stream, CUdeviceptr memory, bool to_host)
{
    void *ordinary = calloc(1, 1 << 20);
    CUdeviceptr host = (uintptr_t) ordinary;
    double begun;
    char text[100];

    must(ordinary != NULL && FIND(cuLaunchHostFunc)(stream, hold, NULL) == CUDA_SUCCESS,
         "cuLaunchHostFunc");
    begun = now_ms();
    must(FIND(cuMemcpyAsync)(to_host ? host : memory, to_host ? memory : host, 1 << 20, stream) ==
             CUDA_SUCCESS,
         "cuMemcpyAsync");
    snprintf(text, sizeof(text), "the call takes %.1f ms", now_ms() - begun);
    must(FIND(cuStreamSynchronize)(stream) == CUDA_SUCCESS, "cuStreamSynchronize");
    tell(true,
         to_host ? "a copy to ordinary memory in a stream that is held for 100 ms"
                 : "a copy from ordinary memory in a stream that is held for 100 ms",
         text);
    free(ordinary);
}

int main(void)
{
    const char *path = getenv("FLASH_TEST_DRIVER");
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    CUdevice device = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    must(library != NULL, "loading the driver");
    must(FIND(cuInit)(0) == CUDA_SUCCESS && FIND(cuDeviceGet)(&device, 0) == CUDA_SUCCESS &&
             FIND(cuDevicePrimaryCtxRetain)(&context, device) == CUDA_SUCCESS &&
             FIND(cuCtxPushCurrent)(context) == CUDA_SUCCESS &&
             FIND(cuMemAlloc)(&memory, 1 << 20) == CUDA_SUCCESS &&
             FIND(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
         "opening the device");
    tell_owner("cuMemAlloc's memory", memory);
    tell_ordinary();
    tell_pool();
    tell_mapped();
    tell_adjoining(stream);
    tell_behind(stream, memory, true);
    tell_behind(stream, memory, false);
    return otherwise ? EXIT_FAILURE : EXIT_SUCCESS;
}
