/*
 * flash_behind.c: whether a call is overlapped by a long kernel that runs before it in one of the
 * application's streams, and ends while that kernel runs.
 *
 *   mpirun -n 2 --mca coll flash flash_behind [BYTES [MILLISECONDS]]
 *
 * Each rank starts the kernel and then an allgather of buffers in its device's memory. A stream
 * that is not made non-blocking and the legacy default stream wait for each other: what flash
 * records in the latter then waits for the kernel.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpi.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench_device.h"
#include "bench_stats.h"
#include "keep_libraries.h"

enum { NOT_READY = 600, CALLS = 5 };

/* For so many nanoseconds. The driver compiles it for any device. */
static const char spin_text[] = ".version 7.0\n"
                                ".target sm_80\n"
                                ".address_size 64\n"
                                ".visible .entry spin(.param .u64 duration)\n"
                                "{\n"
                                "    .reg .u64 %a, %b, %c;\n"
                                "    .reg .pred %p;\n"
                                "    ld.param.u64 %a, [duration];\n"
                                "    mov.u64 %b, %globaltimer;\n"
                                "AGAIN:\n"
                                "    mov.u64 %c, %globaltimer;\n"
                                "    sub.u64 %c, %c, %b;\n"
                                "    setp.lt.u64 %p, %c, %a;\n"
                                "    @%p bra AGAIN;\n"
                                "    ret;\n"
                                "}\n";

/* Of the CUDA Driver API; the last is of the stand-in for a driver, which compiles nothing. */
static struct {
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*load)(void **module, const void *image);
    int (*function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned shared, void *stream, void **arguments, void **more);
    int (*wait)(void *stream);
    int (*compute)(void *stream, int (*function)(void *arg), void *arg);
} driver;

static void *function;
static unsigned long long duration; /* ns */

static void must(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "flash_behind: %s: the driver's error %d\n", what, error);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

static void find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *module;

    *(void **) &driver.stream_create = dlsym(library, "cuStreamCreate");
    *(void **) &driver.stream_destroy = dlsym(library, "cuStreamDestroy_v2");
    *(void **) &driver.event_create = dlsym(library, "cuEventCreate");
    *(void **) &driver.event_destroy = dlsym(library, "cuEventDestroy_v2");
    *(void **) &driver.event_record = dlsym(library, "cuEventRecord");
    *(void **) &driver.event_query = dlsym(library, "cuEventQuery");
    *(void **) &driver.load = dlsym(library, "cuModuleLoadData");
    *(void **) &driver.function = dlsym(library, "cuModuleGetFunction");
    *(void **) &driver.launch = dlsym(library, "cuLaunchKernel");
    *(void **) &driver.wait = dlsym(library, "cuStreamSynchronize");
    *(void **) &driver.compute = dlsym(library, "standin_compute");
    if (driver.compute == NULL) {
        must(driver.load(&module, spin_text), "cuModuleLoadData");
        must(driver.function(&function, module, "spin"), "cuModuleGetFunction");
    }
}

static int sleep_there(void *arg)
{
    struct timespec time = {.tv_sec = (time_t) (duration / 1000000000),
                            .tv_nsec = (long) (duration % 1000000000)};

    (void) arg;
    nanosleep(&time, NULL);
    return 0;
}

static void launch(void *stream)
{
    void *arguments[] = {&duration};

    must(driver.compute != NULL
             ? driver.compute(stream, sleep_there, NULL)
             : driver.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL),
         "the kernel");
}

static void gather(const void *own, void *all, int bytes)
{
    MPI_Request request;

    MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Of the slowest rank. */
static double longest_of(double seconds)
{
    double longest;

    MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

static double alone(const void *own, void *all, int bytes)
{
    double samples[CALLS];

    for (int k = -2; k < CALLS; k++) { /* the first make what the others use */
        double begun;

        MPI_Barrier(MPI_COMM_WORLD);
        begun = bench_now();
        gather(own, all, bytes);
        begun = longest_of(bench_now() - begun);
        if (k >= 0) {
            samples[k] = begun;
        }
    }
    return bench_stats(samples, CALLS).median;
}

/*
 * How long a call takes behind a kernel in that stream, and whether all ranks' kernels outlast it.
 */
static double behind(void *stream, const void *own, void *all, int bytes, int *outlasted)
{
    void *event;
    double begun;
    int runs;

    must(driver.event_create(&event, 2), "cuEventCreate"); /* without time stamps */
    MPI_Barrier(MPI_COMM_WORLD);
    launch(stream);
    must(driver.event_record(event, stream), "cuEventRecord");
    begun = bench_now();
    gather(own, all, bytes);
    begun = bench_now() - begun;
    runs = driver.event_query(event) == NOT_READY;
    must(driver.wait(stream), "the kernel");
    must(driver.event_destroy(event), "cuEventDestroy");
    MPI_Allreduce(&runs, outlasted, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return longest_of(begun);
}

static void run(int rank, int bytes)
{
    static const char *const names[] = {"the default stream", "a blocking stream",
                                        "a non-blocking stream"};
    void *streams[] = {NULL, NULL, NULL};
    void *own = bench_device_allocate((size_t) bytes), *all;
    double seconds;
    int ranks, outlasted;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    all = bench_device_allocate((size_t) bytes * (size_t) ranks);
    if (own == NULL || all == NULL) {
        fprintf(stderr, "flash_behind: rank %d's device has no memory for blocks of %d bytes\n",
                rank, bytes);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    find();
    must(driver.stream_create(&streams[1], 0), "cuStreamCreate");
    must(driver.stream_create(&streams[2], 1), "cuStreamCreate"); /* CU_STREAM_NON_BLOCKING */
    seconds = alone(own, all, bytes);
    if (rank == 0) {
        printf("allgather of %d bytes on %d ranks, alone: %.2f ms\n", bytes, ranks, 1e3 * seconds);
    }
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        seconds = behind(streams[k], own, all, bytes, &outlasted);
        if (rank == 0) {
            printf("behind a kernel of %.0f ms in %s: %.2f ms, %s\n", 1e-6 * (double) duration,
                   names[k], 1e3 * seconds,
                   outlasted ? "ends while the kernel runs" : "ends after the kernel");
            fflush(stdout);
        }
    }
    must(driver.stream_destroy(streams[1]), "cuStreamDestroy");
    must(driver.stream_destroy(streams[2]), "cuStreamDestroy");
    bench_device_free(own);
    bench_device_free(all);
}

int main(int argc, char **argv)
{
    int bytes = argc > 1 ? atoi(argv[1]) : 4 << 20, rank, got, all_got;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    duration = 1000000ULL * (unsigned long long) (argc > 2 ? atoi(argv[2]) : 300);
    got = bench_device_open("flash_behind", rank);
    MPI_Allreduce(&got, &all_got, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (all_got) {
        run(rank, bytes);
    }
    MPI_Finalize();
    return all_got ? EXIT_SUCCESS : EXIT_FAILURE;
}
