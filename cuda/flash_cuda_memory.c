/*
 * flash_cuda_memory.c: memory of the host's and of devices', from CUDA's driver.
 *
 * Shared between threads: `topology` and `places` are written under `mutex` when a device's memory
 * is first asked for, and never again; who reads them had it since. `pools`: under `mutex`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <hwloc.h>
#include <pthread.h>
#include <stdint.h>

/* Memory of a device that its pool keeps for the next operation. */
#define LARGEST_KEPT ((cuuint64_t) 256 << 20)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static hwloc_topology_t topology; /* kept */
static bool has_topology, looked;
static struct {
    bool known;
    hwloc_const_nodeset_t nodes; /* the topology's; NULL: any */
} places[FLASH_GPU_DEVICES];
static CUmemoryPool pools[FLASH_GPU_DEVICES]; /* kept */

/* After an error the driver may refuse to be entered, and free memory nevertheless. */
typedef struct entered {
    bool well;
    flash_cuda_visit_t visit;
} entered_t;

static entered_t enter_to_free(CUcontext context)
{
    entered_t entered;

    entered.well = flash_cuda_enter(context, &entered.visit);
    return entered;
}

static void leave(entered_t *entered)
{
    if (entered->well) {
        flash_cuda_leave(&entered->visit);
    }
}

/* ------------------------------------------------------------ near a device */

static bool load_topology(void)
{
    if (!looked) {
        looked = true;
        has_topology = hwloc_topology_init(&topology) == 0;
        if (has_topology &&
            /* Of input and output, nothing else: to look for more may start other drivers. */
            (hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE,
                                            HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 ||
             hwloc_topology_load(topology) != 0)) {
            hwloc_topology_destroy(topology);
            has_topology = false;
        }
    }
    return has_topology;
}

/* Kernels are given the same address. */
static bool reaches_registered(CUdevice device)
{
    int reaches = 0;

    return flash_cuda_driver.p_cuDeviceGetAttribute(
               &reaches, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, device) ==
               CUDA_SUCCESS &&
           reaches != 0;
}

/* Where there is more than one node, and the machine says at which the device is. */
static hwloc_const_nodeset_t find_nodes(CUdevice device)
{
    char bus_id[32];
    hwloc_obj_t found;

    if (!reaches_registered(device) || !load_topology() ||
        hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2 ||
        flash_cuda_driver.p_cuDeviceGetPCIBusId(bus_id, (int) sizeof(bus_id), device) !=
            CUDA_SUCCESS) {
        return NULL;
    }
    found = hwloc_get_pcidev_by_busidstring(topology, bus_id);
    if (found != NULL) {
        found = hwloc_get_non_io_ancestor_obj(topology, found);
    }
    return found == NULL || hwloc_bitmap_iszero(found->nodeset) ? NULL : found->nodeset;
}

static hwloc_const_nodeset_t nodes_near(int device)
{
    hwloc_const_nodeset_t nodes;

    pthread_mutex_lock(&mutex);
    if (!places[device].known) {
        places[device].nodes = find_nodes(device);
        places[device].known = true;
    }
    nodes = places[device].nodes;
    pthread_mutex_unlock(&mutex);
    return nodes;
}

/* From those nodes as long as they have some; the driver's own pages come from anywhere. */
static void *allocate_at(hwloc_const_nodeset_t nodes, size_t size)
{
    void *memory =
        hwloc_alloc_membind(topology, size, nodes, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET);

    if (memory != NULL && !flash_cuda_well(flash_cuda_driver.p_cuMemHostRegister(
                              memory, size, CU_MEMHOSTREGISTER_PORTABLE))) {
        hwloc_free(topology, memory, size);
        return NULL;
    }
    return memory;
}

void *flash_cuda_allocate_pinned(void *number, size_t size)
{
    int device = *(const int *) number;
    hwloc_const_nodeset_t nodes = nodes_near(device);
    flash_cuda_visit_t visit;
    void *memory = NULL;

    if (!flash_cuda_enter(flash_cuda_home(device), &visit)) {
        return NULL;
    }
    if (nodes != NULL) {
        memory = allocate_at(nodes, size);
    } else if (!flash_cuda_well(
                   flash_cuda_driver.p_cuMemHostAlloc(&memory, size, CU_MEMHOSTALLOC_PORTABLE))) {
        memory = NULL;
    }
    flash_cuda_leave(&visit);
    return memory;
}

void flash_cuda_release_pinned(void *number, void *memory, size_t size)
{
    int device = *(const int *) number;
    entered_t entered;

    if (memory == NULL) {
        return;
    }
    entered = enter_to_free(flash_cuda_home(device));
    if (nodes_near(device) == NULL) {
        flash_cuda_driver.p_cuMemFreeHost(memory);
    } else if (flash_cuda_well(flash_cuda_driver.p_cuMemHostUnregister(memory))) {
        hwloc_free(topology, memory, size);
    }
    leave(&entered);
}

/* ------------------------------------------------------- for the network */

void *flash_cuda_allocate_direct(void *number, size_t size)
{
    CUdeviceptr memory = 0;
    flash_cuda_visit_t visit;

    if (!flash_cuda_enter(flash_cuda_home(*(const int *) number), &visit)) {
        return NULL;
    }
    if (!flash_cuda_well(flash_cuda_driver.p_cuMemAlloc(&memory, size))) {
        memory = 0;
    }
    flash_cuda_leave(&visit);
    return (void *) (uintptr_t) memory;
}

void flash_cuda_release_direct(void *number, void *memory, size_t size)
{
    entered_t entered;

    (void) size;
    if (memory != NULL) {
        entered = enter_to_free(flash_cuda_home(*(const int *) number));
        flash_cuda_driver.p_cuMemFree((CUdeviceptr) (uintptr_t) memory);
        leave(&entered);
    }
}

/* --------------------------------------------------------- for one operation */

/* Under the mutex. The driver's default pool would give memory back whenever somebody waits. */
static CUmemoryPool pool_of(CUdevice device)
{
    const CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    cuuint64_t kept = LARGEST_KEPT;
    int waits = 0; /* for memory that is freed once something else is done */
    CUmemoryPool made;

    if (pools[device] == NULL &&
        flash_cuda_well(flash_cuda_driver.p_cuMemPoolCreate(&made, &properties))) {
        flash_cuda_driver.p_cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept);
        flash_cuda_driver.p_cuMemPoolSetAttribute(
            made, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &waits);
        pools[device] = made;
    }
    return pools[device];
}

/*
 * It stands in no stream of the application's: a thread's default stream is another one in another
 * thread, and one that is captured by the end would take the end into its graph.
 */
void *flash_cuda_allocate_on_device(flash_gpu_lane_t *lane, size_t size)
{
    CUstream stream = lane->tracks[0].stream;
    CUdeviceptr memory = 0;
    flash_cuda_visit_t visit;
    CUmemoryPool pool;

    if (!flash_cuda_enter(lane->place.context, &visit)) {
        return NULL;
    }
    pthread_mutex_lock(&mutex);
    pool = pool_of(lane->place.device);
    pthread_mutex_unlock(&mutex);
    if (pool == NULL || !flash_cuda_well(flash_cuda_driver.p_cuMemAllocFromPoolAsync(
                            &memory, size, pool, stream))) {
        memory = 0;
    } else if (!flash_cuda_well(flash_cuda_driver.p_cuStreamSynchronize(stream))) {
        flash_cuda_driver.p_cuMemFreeAsync(memory, stream);
        memory = 0;
    }
    flash_cuda_leave(&visit);
    return (void *) (uintptr_t) memory;
}

/*
 * Where nobody can wait for the stream of callbacks that may still write to it, the memory goes in
 * the order of that stream; and not at all, if that may be a graph's by now.
 */
void flash_cuda_release_on_device(flash_gpu_lane_t *lane, void *memory)
{
    bool unwaited = atomic_load_explicit(&lane->unwaited, memory_order_relaxed);
    entered_t entered;

    if (memory != NULL) {
        entered = enter_to_free(lane->place.context);
        if (!unwaited ||
            flash_cuda_ask_captured(lane->users) != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
            flash_cuda_driver.p_cuMemFreeAsync((CUdeviceptr) (uintptr_t) memory,
                                               unwaited ? lane->users : lane->tracks[0].stream);
        }
        leave(&entered);
    }
}
