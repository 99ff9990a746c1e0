/*
 * node.c: what a node has for so many ranks on its GPUs, and what is in their way there: cause and
 * remedy in a line each.
 *
 *   node RANKS [FOLDER]
 *
 * FOLDER is where shared memory is, /dev/shm unless told otherwise. Exit status 0: nothing is in
 * the way, 1: something is, 2: there is no device at all.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "bench_device.h"

/* What UCX, Open MPI and flash take there for a few ranks, and as much again. */
enum { LEAST_SHARED = 256 }; /* MiB */

static bool shared_memory(const char *folder)
{
    struct statvfs found;
    unsigned long free;

    if (statvfs(folder, &found) != 0) {
        printf("PROBLEM: there is no %s. Remedy: mount -t tmpfs tmpfs %s\n", folder, folder);
        return false;
    }
    free = (unsigned long) (found.f_bavail * found.f_frsize >> 20);
    printf("shared memory: %lu MiB free in %s\n", free, folder);
    if (free < LEAST_SHARED) {
        printf("PROBLEM: %s has less than %d MiB free, and Open MPI and UCX may end there. Remedy: "
               "mount -o remount,size=2g %s; or docker run --shm-size=2g\n",
               folder, LEAST_SHARED, folder);
    }
    return free >= LEAST_SHARED;
}

static void tell_devices(int devices, int ranks)
{
    int version = bench_device_driver();
    char name[256];

    if (version > 0) {
        printf("driver: for CUDA %d.%d\n", version / 1000, version % 1000 / 10);
    }
    printf("devices: %d\n", devices);
    for (int k = 0; k < devices && k < ranks; k++) {
        if (!bench_device_name(k, name, sizeof(name))) {
            continue;
        }
        printf("device %d: %s\n", k, name);
        if (strstr(name, " MIG ") != NULL) {
            printf("NOTE: device %d is a MIG instance, a part of a GPU; a process sees one, and "
                   "all ranks share it. Remedy, for figures of a whole GPU: nvidia-smi -mig 0, by "
                   "root\n",
                   k);
        }
    }
}

int main(int argc, char **argv)
{
    int ranks = argc > 1 ? atoi(argv[1]) : 0, devices;
    char text[1024];
    bool fits;

    if (ranks < 1) {
        fprintf(stderr, "usage: node RANKS [FOLDER]\n");
        return 1;
    }
    fits = shared_memory(argc > 2 ? argv[2] : "/dev/shm");
    devices = bench_device_usable(ranks, text, sizeof(text));
    if (devices == 0) {
        printf("PROBLEM: %s\n", text);
        return 2;
    }
    tell_devices(devices, ranks);
    return fits ? 0 : 1;
}
