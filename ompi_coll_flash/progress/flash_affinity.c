/*
 * flash_affinity.c: see flash_affinity.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_affinity.h"

#include <hwloc.h>
#include <hwloc/linux.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hwloc_topology_t load_topology(void)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) != 0) {
        return NULL;
    }
    if (hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return NULL;
    }
    return topology;
}

void flash_affinity_binding(char text[FLASH_AFFINITY_MAX])
{
    hwloc_bitmap_t binding;
    cpu_set_t allowed;

    text[0] = '\0';
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
        CPU_COUNT(&allowed) >= sysconf(_SC_NPROCESSORS_ONLN)) {
        return;
    }
    binding = hwloc_bitmap_alloc();
    if (binding == NULL) {
        return;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            hwloc_bitmap_set(binding, (unsigned) cpu);
        }
    }
    if (hwloc_bitmap_list_snprintf(text, FLASH_AFFINITY_MAX, binding) >= FLASH_AFFINITY_MAX) {
        text[0] = '\0';
    }
    hwloc_bitmap_free(binding);
}

/* How near a hardware thread is to a binding: the depth of what holds both. */
static int nearness(hwloc_obj_t pu, hwloc_const_bitmap_t binding)
{
    hwloc_obj_t holder = pu;

    while (holder != NULL && !hwloc_bitmap_intersects(holder->cpuset, binding)) {
        holder = holder->parent;
    }
    return holder == NULL ? -1 : holder->depth;
}

static int take_nearest(hwloc_topology_t topology, hwloc_const_bitmap_t binding,
                        hwloc_bitmap_t taken)
{
    hwloc_obj_t pu = NULL, best = NULL;
    int best_nearness = -1;

    while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL) {
        int near = nearness(pu, binding);

        if (!hwloc_bitmap_isset(taken, pu->os_index) && near > best_nearness) {
            best = pu;
            best_nearness = near;
        }
    }
    if (best == NULL) {
        return -1;
    }
    hwloc_bitmap_set(taken, best->os_index);
    return (int) best->os_index;
}

static bool parse_all(char (*bindings)[FLASH_AFFINITY_MAX], int count, hwloc_bitmap_t taken)
{
    hwloc_bitmap_t binding = hwloc_bitmap_alloc();
    bool all = binding != NULL;

    for (int rank = 0; rank < count && all; rank++) {
        all = bindings[rank][0] != '\0' && hwloc_bitmap_list_sscanf(binding, bindings[rank]) == 0;
        if (all) {
            hwloc_bitmap_or(taken, taken, binding);
        }
    }
    hwloc_bitmap_free(binding);
    return all;
}

/* The name and the parent of a process: fields 2, in parentheses, and 4 of its line. 0: unknown. */
static pid_t parent_of(pid_t pid, char name[32])
{
    char path[32];
    int parent = 0;
    FILE *line;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
    line = fopen(path, "re");
    if (line == NULL || fscanf(line, "%*d (%31[^)]) %*c %d", name, &parent) != 2) {
        parent = 0;
    }
    if (line != NULL) {
        fclose(line);
    }
    return parent;
}

/*
 * What started this rank, mpirun or its daemon, or Slurm's; behind a wrapper, if there is one. If
 * none of them is to be found, this rank's parent.
 */
static pid_t launcher(void)
{
    static const char *const names[] = {"mpirun",  "mpirun.openmpi", "mpiexec", "mpiexec.openmpi",
                                        "orterun", "orted",          "prterun", "prte",
                                        "prted",   "slurmstepd"};
    pid_t pid = getppid();

    for (pid_t next; pid > 1; pid = next) {
        char name[32] = "";

        next = parent_of(pid, name);
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            if (strcmp(name, names[k]) == 0) {
                return pid;
            }
        }
    }
    return getppid();
}

/*
 * Takes all that is not this job's. The launcher may use what the job may use. Slurm's daemon, which
 * is not bound itself, may use more than the job: Slurm says how many processors of this node are
 * the job's, and nothing tells which.
 */
static bool take_from_others(hwloc_topology_t topology, hwloc_bitmap_t taken)
{
    const char *given = getenv("SLURM_CPUS_ON_NODE");
    hwloc_bitmap_t ours = hwloc_bitmap_alloc();
    pid_t pid = launcher();
    bool known = ours != NULL && pid > 0 && hwloc_linux_get_tid_cpubind(topology, pid, ours) == 0;

    if (known) {
        hwloc_bitmap_and(ours, ours, hwloc_topology_get_allowed_cpuset(topology));
        known = given == NULL || hwloc_bitmap_weight(ours) <= atoi(given);
        hwloc_bitmap_not(taken, ours);
    }
    hwloc_bitmap_free(ours);
    return known;
}

int flash_affinity_choose(char (*bindings)[FLASH_AFFINITY_MAX], int count, int self)
{
    hwloc_topology_t topology = load_topology();
    hwloc_bitmap_t taken = hwloc_bitmap_alloc(), binding = hwloc_bitmap_alloc();
    int chosen = -1;

    if (topology != NULL && taken != NULL && binding != NULL && take_from_others(topology, taken) &&
        parse_all(bindings, count, taken)) {
        for (int rank = 0; rank <= self; rank++) {
            hwloc_bitmap_list_sscanf(binding, bindings[rank]);
            chosen = take_nearest(topology, binding, taken);
        }
    }
    hwloc_bitmap_free(binding);
    hwloc_bitmap_free(taken);
    if (topology != NULL) {
        hwloc_topology_destroy(topology);
    }
    return chosen;
}

/* The topology knows what a container may use, but takes its time: not where the answer is no. */
bool flash_affinity_has_threads(int count)
{
    hwloc_topology_t topology;
    int threads;

    if (sysconf(_SC_NPROCESSORS_ONLN) < count) {
        return false;
    }
    topology = load_topology();
    if (topology == NULL) {
        return false;
    }
    threads = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology));
    hwloc_topology_destroy(topology);
    return threads >= count;
}

bool flash_affinity_bind(int hardware_thread)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t) hardware_thread, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}
