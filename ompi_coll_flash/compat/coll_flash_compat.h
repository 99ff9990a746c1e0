/*
 * coll_flash_compat.h: what differs between the versions of Open MPI that flash is built against.
 *
 * Everything that depends on the version stands here, and in the headers of one version each that
 * this one includes, as a macro, a type or an inline function under a name of flash's own; the
 * sources have no version checks. To add a version, extend this header: struct version, count
 * types, where the modex lives, how a communicator is named on the wire, how functions are taken
 * over.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_COMPAT_H
#define COLL_FLASH_COMPAT_H

#include "ompi_config.h"

#include "mpi.h"

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/show_help.h"

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_functions.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/op/op.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#include "compat/coll_flash_ompi41.h"
#elif (OMPI_MAJOR_VERSION == 5 || OMPI_MAJOR_VERSION == 6) && OMPI_MINOR_VERSION == 0
#include "compat/coll_flash_ompi5.h"
#else
#error \
    "flash knows Open MPI 4.1, 5.0 and 6.0 only so far: extend ompi_coll_flash/compat/coll_flash_compat.h"
#endif

/* ------------------------------------------------------------ all of them */

typedef int flash_count_t;         /* a count of the MPI layer */
typedef int flash_displ_t;         /* a displacement */
typedef const int *flash_counts_t; /* an array of counts */
typedef const int *flash_displs_t; /* an array of displacements */

/* What the module takes functions over by, and arrays as it passes them on. */
#if FLASH_LARGE_COUNTS
#define FLASH_ENTRY(name)    mca_coll_flash_large_##name
#define FLASH_COUNTS(counts) OMPI_COUNT_ARRAY_CREATE(counts)
#define FLASH_DISPLS(displs) OMPI_DISP_ARRAY_CREATE(displs)
#else
#define FLASH_ENTRY(name)    mca_coll_flash_##name
#define FLASH_COUNTS(counts) (counts)
#define FLASH_DISPLS(displs) (displs)
#endif

/* While another thread may be completing it. */
static inline bool flash_compat_is_complete(ompi_request_t *request)
{
    return __atomic_load_n(&request->req_complete, __ATOMIC_ACQUIRE) == REQUEST_COMPLETED;
}

/* Whether somebody else holds the communicator, too: letting go of it does not end it. */
static inline bool flash_compat_is_held(const ompi_communicator_t *comm)
{
    return ((const opal_object_t *) comm)->obj_reference_count > 1;
}

/* Functions to be called when MPI begins or ends. */
static inline void flash_compat_hook(ompi_hook_base_component_t *hooks)
{
    ompi_hook_base_register_callbacks(hooks);
}

/* Open MPI 5 forgets them before it closes this component, 4.1 would do so behind it. */
static inline void flash_compat_unhook(ompi_hook_base_component_t *hooks)
{
    if (ompi_hook_base_framework.framework_refcnt > 0) {
        ompi_hook_base_deregister_callbacks(hooks);
    }
}

/* Whether the job runs on more than one node, as far as the launcher says. */
static inline bool flash_compat_spans_nodes(void)
{
    return flash_compat_job_size() > (uint32_t) opal_process_info.num_local_peers + 1;
}

/*
 * Not the communicator's own: which module that is of, where modules are still being enabled in the
 * order of their priorities, may differ from rank to rank.
 */
static inline int flash_compat_allreduce(const void *mine, void *all, int count, MPI_Datatype type,
                                         MPI_Op op, ompi_communicator_t *comm)
{
    return ompi_coll_base_allreduce_intra_recursivedoubling(mine, all, count, type, op, comm, NULL);
}

/*
 * The tags of flash's messages to and from single processes: while MPI_COMM_WORLD is made; and in a
 * communicator's set-up, where no other message has one of these. A process sends one message of a tag
 * to each receiver at most.
 */
enum { FLASH_TAG_PAIRS = -6, FLASH_TAG_RING = -5, FLASH_TAG_ADDRESS = -4, FLASH_TAG_MEETING = -3 };

/*
 * The meeting's tag to processes of other releases, in all releases. In Open MPI 5.0 it is
 * OMPI_COMM_ALLREDUCE_TAG, too: only processes that wait for the message may be sent one.
 */
enum { FLASH_TAG_OTHER_RELEASES = -9 };

/*
 * What Open MPI sends on a communicator by itself has lower tags, from -7 on in 5.0, from -10 on in 4.1: a
 * message that a process without flash never receives is not taken for one of Open MPI's.
 */
_Static_assert(FLASH_TAG_PAIRS > OMPI_COMM_ALLGATHER_TAG &&
                   FLASH_TAG_PAIRS > OMPI_COMM_BARRIER_TAG &&
                   FLASH_TAG_PAIRS > OMPI_COMM_ALLREDUCE_TAG &&
                   FLASH_TAG_PAIRS > MCA_COLL_BASE_TAG_ALLGATHER &&
                   FLASH_TAG_MEETING > FLASH_TAG_PAIRS && FLASH_TAG_MEETING < MPI_ANY_TAG,
               "meetings and set-ups have tags of their own");

static inline int flash_compat_irecv(void *data, size_t count, MPI_Datatype type, int from, int tag,
                                     ompi_communicator_t *comm, ompi_request_t **request)
{
    return MCA_PML_CALL(irecv(data, count, type, from, tag, comm, request));
}

/* Whether such a message is there. Makes progress. */
static inline int flash_compat_iprobe(int from, int tag, ompi_communicator_t *comm, bool *found)
{
    ompi_status_public_t status;
    int matched = 0, rc;

    opal_progress();
    rc = MCA_PML_CALL(iprobe(from, tag, comm, &matched, &status));
    *found = matched != 0;
    return rc;
}

static inline int flash_compat_isend(const void *data, size_t count, MPI_Datatype type, int to,
                                     int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    return MCA_PML_CALL(
        isend(data, count, type, to, tag, MCA_PML_BASE_SEND_STANDARD, comm, request));
}

/*
 * The tag of a call that libnbc serves out of its turn, by the number of the call, which comes round
 * after 2^18. Some transports send the lower bits of a tag alone: 24 (pml ucx), or 20 (mtl ofi, if it is
 * told to use ofi_tag_2). These are those of a negative number, too, and 2^18 away from 0, so that the
 * tag is none of an application, a set-up, or a blocking collective. libnbc comes that far by itself
 * after 2^18 calls on a communicator with 20 bits, and 2^22 with 24.
 */
#define FLASH_OUT_OF_TURN (1 << 18)
#define FLASH_TAG_OUT_OF_TURN(number) \
    (-(1 << 29) - (1 << 22) - FLASH_OUT_OF_TURN - (int) ((number) % FLASH_OUT_OF_TURN))

_Static_assert(FLASH_TAG_OUT_OF_TURN(FLASH_OUT_OF_TURN - 1) > MCA_COLL_BASE_TAG_NONBLOCKING_END,
               "libnbc takes it as it is");
_Static_assert((FLASH_TAG_OUT_OF_TURN(0) & 1 << 23) != 0 &&
                   (FLASH_TAG_OUT_OF_TURN(0) & 1 << 19) != 0 &&
                   (FLASH_TAG_OUT_OF_TURN(FLASH_OUT_OF_TURN - 1) & 1 << 23) != 0 &&
                   (FLASH_TAG_OUT_OF_TURN(FLASH_OUT_OF_TURN - 1) & 1 << 19) != 0,
               "negative in 24 bits, and in 20");

/*
 * Whether several threads may be in MPI at a time, as far as that is known in MPI_Init. Open MPI 5.0
 * knows of sessions, too; Open MPI 4.1 says so of each program above MPI_THREAD_SINGLE.
 */
static inline bool flash_compat_has_threads(void)
{
#if OMPI_MAJOR_VERSION < 5
    return ompi_mpi_thread_multiple;
#else
    return ompi_mpi_thread_multiple || opal_using_threads();
#endif
}

/* Has the next call of libnbc take that tag. Returns the tag that it would have taken. */
static inline int flash_compat_set_tag(ompi_communicator_t *comm, int tag)
{
    int next = comm->c_nbc_tag;

    comm->c_nbc_tag = tag;
    return next;
}

/* The component by which the pml cm sends. */
static inline const char *flash_compat_mtl(void)
{
    return ompi_mtl_base_selected_component == NULL
               ? "none"
               : ompi_mtl_base_selected_component->mtl_version.mca_component_name;
}

/*
 * Whether messages go by BTLs: those of the pml ob1, or of one before it. To this process itself they
 * do from MPI_Init on, to others from the first message on.
 */
static inline bool flash_compat_has_btls(void)
{
    return ompi_proc_local()->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] != NULL;
}

/* Those by which the pml ob1 sends to that process, with commas, cut off where there is no room. */
static inline void flash_compat_btls(ompi_proc_t *process, char *names, size_t size)
{
    mca_bml_base_endpoint_t *endpoint = mca_bml_base_get_endpoint(process);
    size_t count = endpoint == NULL ? 0 : mca_bml_base_btl_array_get_size(&endpoint->btl_send);
    size_t length = 0;

    names[0] = '\0';
    for (size_t k = 0; k < count && length < size; k++) {
        mca_bml_base_btl_t *btl = mca_bml_base_btl_array_get_index(&endpoint->btl_send, k);
        const char *name = btl->btl->btl_component->btl_version.mca_component_name;

        length += (size_t) snprintf(names + length, size - length, "%s%s", k == 0 ? "" : ",", name);
    }
}

/* What a communicator had before, for what falls back. */
#define FLASH_KEEP_PREVIOUS(module, comm, name)                                  \
    do {                                                                         \
        (module)->previous.name = (comm)->c_coll->coll_##name;                   \
        (module)->previous.name##_module = (comm)->c_coll->coll_##name##_module; \
        OBJ_RETAIN((module)->previous.name##_module);                            \
    } while (0)

/*
 * Takes a function over in `enable`: up to 5.0 the framework copies it from the module afterwards;
 * in 6.0 the module installs it, and gives it back when it is disabled.
 */
#if FLASH_LARGE_COUNTS
#define FLASH_TAKE_OVER(module, comm, name)                                               \
    do {                                                                                  \
        FLASH_KEEP_PREVIOUS(module, comm, name);                                          \
        MCA_COLL_INSTALL_API((comm), name, FLASH_ENTRY(name), &(module)->super, "flash"); \
    } while (0)
#define FLASH_DISABLE mca_coll_flash_give_back
#else
#define FLASH_TAKE_OVER(module, comm, name)              \
    do {                                                 \
        FLASH_KEEP_PREVIOUS(module, comm, name);         \
        (module)->super.coll_##name = FLASH_ENTRY(name); \
    } while (0)
#define FLASH_DISABLE NULL
#endif

/*
 * Open MPI orders what its lock-free list hands from thread to thread by fences, which
 * ThreadSanitizer does not know: it is told.
 */
#ifdef FLASH_SANITIZE_THREAD
#include <sanitizer/tsan_interface.h>

static inline opal_free_list_item_t *flash_compat_list_get(opal_free_list_t *list)
{
    opal_free_list_item_t *item = opal_free_list_get(list);

    __tsan_acquire(item);
    return item;
}

static inline void flash_compat_list_return(opal_free_list_t *list, opal_free_list_item_t *item)
{
    __tsan_release(item);
    opal_free_list_return(list, item);
}

static inline int flash_compat_request_complete(ompi_request_t *request, bool with_signal)
{
    __tsan_release(request);
    return ompi_request_complete(request, with_signal);
}

/*
 * What was done before a reference is dropped comes before whoever drops the last one frees the
 * object: the count says so here, which Open MPI's own is too weak to say.
 */
static inline void flash_compat_release_comm(ompi_communicator_t *comm)
{
    volatile int32_t *count = (void *) &((opal_object_t *) comm)->obj_reference_count;

    if (__atomic_fetch_sub(count, 1, __ATOMIC_ACQ_REL) == 1) {
        OBJ_RETAIN(comm);
        OBJ_RELEASE(comm);
    }
}

#define opal_free_list_get       flash_compat_list_get
#define opal_free_list_return    flash_compat_list_return
#define ompi_request_complete    flash_compat_request_complete
#define flash_compat_see_request __tsan_acquire
#else
/* A thread that was told by MPI that a request is complete sees what was written before it was. */
#define flash_compat_see_request(request) ((void) (request))

static inline void flash_compat_release_comm(ompi_communicator_t *comm)
{
    OBJ_RELEASE(comm);
}
#endif

#endif /* COLL_FLASH_COMPAT_H */
