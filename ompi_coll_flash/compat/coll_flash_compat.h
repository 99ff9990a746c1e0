/*
 * coll_flash_compat.h: what differs between the versions of Open MPI that flash is built against.
 *
 * Everything that depends on the version stands here, as a macro, a type or an inline function
 * under a name of flash's own; the sources have no version checks. To add a version, extend this
 * header: struct version, count types, where the modex lives, how a communicator is named on the
 * wire, how functions are taken over.
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
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/op/op.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"

/* ------------------------------------------------------------ Open MPI 4.1 */

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1

#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal_params.h"

#define FLASH_COLL_VERSION          MCA_COLL_BASE_VERSION_2_0_0
#define FLASH_ALLGATHER_BY_DOUBLING ompi_coll_base_allgather_intra_bruck

/* Whether Open MPI's own components take buffers in the memory of devices. */
static inline bool flash_compat_takes_devices(void)
{
    return opal_cuda_support;
}

/*
 * The communicator's number on the wire. Unless there is an obstacle (below), equal on all ranks of
 * an intra-communicator, unique among those that share a process at one time, used again after
 * MPI_Comm_free.
 */
static inline uint32_t flash_compat_comm_id(const ompi_communicator_t *comm)
{
    return comm->c_contextid;
}

/* Why flash is not to serve it, whatever else it is; or NULL. The same on all ranks. */
static inline const char *flash_compat_obstacle(const ompi_communicator_t *comm)
{
    (void) comm;
    return NULL;
}

/*
 * The type of a request that has failed: Open MPI hands the errors of this one to the
 * communicator's error handler, those of OMPI_REQUEST_COLL to MPI_COMM_WORLD's.
 */
#define FLASH_FAILED_REQUEST OMPI_REQUEST_PML

/* MPI_Start hands no error of a request's to anybody. */
static inline void flash_compat_raise_in_start(ompi_communicator_t *comm, int error)
{
    PMPI_Comm_call_errhandler(comm, error);
}

/* Which of the launcher's jobs this process is of: 1 for mpirun's, 0 without a launcher. */
static inline unsigned flash_compat_job_number(void)
{
    return OPAL_PROC_MY_NAME.jobid & 0xffff;
}

/*
 * How many processes the job has, as far as the launcher says, or UINT32_MAX. What Open MPI's macro
 * for this does, but that one falls over where there is no memory.
 */
static inline uint32_t flash_compat_job_size(void)
{
    opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    uint32_t size = UINT32_MAX;
    opal_value_t only_if_known, *value = NULL;
    opal_list_t how;

    OBJ_CONSTRUCT(&how, opal_list_t);
    OBJ_CONSTRUCT(&only_if_known, opal_value_t);
    only_if_known.key = OPAL_PMIX_OPTIONAL;
    only_if_known.type = OPAL_BOOL;
    only_if_known.data.flag = true;
    opal_list_append(&how, &only_if_known.super);
    if (opal_pmix.get(&job, OPAL_PMIX_JOB_SIZE, &how, &value) == OPAL_SUCCESS && value != NULL) {
        size = value->type == OPAL_UINT32 ? value->data.uint32 : size;
        OBJ_RELEASE(value);
    }
    opal_list_remove_first(&how);
    only_if_known.key = NULL; /* not the value's to free */
    OBJ_DESTRUCT(&only_if_known);
    OBJ_DESTRUCT(&how);
    return size;
}

typedef char *flash_info_text_t; /* what those are told who subscribe to a key */

/* Cut off where `size` bytes, with the final zero, are too few. */
static inline int flash_compat_info_get(opal_info_t *info, const char *key, char *text, size_t size,
                                        int *flag)
{
    return opal_info_get(info, key, (int) size - 1, text, flag);
}

#define FLASH_MODEX_SEND(rc, key, data, size) \
    OPAL_MODEX_SEND_STRING(rc, OPAL_PMIX_GLOBAL, key, data, size)
/* Of what may not have been sent. */
#define FLASH_MODEX_FIND(rc, key, name, data, size) \
    OPAL_MODEX_RECV_STRING(rc, key, name, data, size)

/* ------------------------------------------------------------ Open MPI 5.0 and 6.0 */

#elif (OMPI_MAJOR_VERSION == 5 || OMPI_MAJOR_VERSION == 6) && OMPI_MINOR_VERSION == 0

#include "opal/mca/accelerator/base/base.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "ompi/instance/instance.h"
#include "ompi/runtime/params.h"

#if OMPI_MAJOR_VERSION == 5
#define FLASH_COLL_VERSION          MCA_COLL_BASE_VERSION_2_4_0
#define FLASH_ALLGATHER_BY_DOUBLING ompi_coll_base_allgather_intra_bruck
#else
#include "ompi/util/count_disp_array.h"

#define FLASH_COLL_VERSION               MCA_COLL_BASE_VERSION_3_0_0
#define FLASH_ALLGATHER_BY_DOUBLING(...) ompi_coll_base_allgather_intra_k_bruck(__VA_ARGS__, 2)
/* coll_flash_ompi6.c's. */
#define FLASH_LARGE_COUNTS               1
typedef size_t flash_large_count_t;
typedef ompi_count_array_t flash_large_counts_t;
typedef ompi_disp_array_t flash_large_displs_t;
#endif

static inline bool flash_compat_takes_devices(void)
{
    const mca_base_component_t *component = &opal_accelerator_base_selected_component.base_version;

    return strcmp(component->mca_component_name, "null") != 0;
}

static inline uint32_t flash_compat_comm_id(const ompi_communicator_t *comm)
{
    return comm->c_index;
}

/*
 * What comes of a session may be made before, while and after MPI_COMM_WORLD is, whose ranks agree
 * on what flash does; and MPI_Comm_create_from_group gives each rank a number of its own. A revoked
 * communicator ends operations that Open MPI knows to wait for messages of its own; flash's would
 * wait on.
 */
static inline const char *flash_compat_obstacle(const ompi_communicator_t *comm)
{
    if (ompi_ftmpi_enabled) {
        return "the job is fault tolerant (ULFM), and flash follows no revocation";
    }
    if (comm->instance != ompi_mpi_instance_default || !OMPI_COMM_IS_GLOBAL_INDEX(comm)) {
        return "of a session, or by MPI_Comm_create_from_group";
    }
    return NULL;
}

#define FLASH_FAILED_REQUEST OMPI_REQUEST_COLL

static inline void flash_compat_raise_in_start(ompi_communicator_t *comm, int error)
{
    (void) comm; /* MPI_Start does */
    (void) error;
}

/* By the end of its name, as Open MPI's own launcher writes it. */
static inline unsigned flash_compat_job_number(void)
{
    const char *number = strrchr(opal_process_info.myprocid.nspace, '@');

    return number == NULL ? 0 : (unsigned) strtoul(number + 1, NULL, 10);
}

static inline uint32_t flash_compat_job_size(void)
{
    uint32_t size = UINT32_MAX, *place = &size;
    opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    int rc;

    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, PMIX_JOB_SIZE, &job, &place, PMIX_UINT32);
    return rc == PMIX_SUCCESS ? size : UINT32_MAX;
}

typedef const char *flash_info_text_t;

static inline int flash_compat_info_get(opal_info_t *info, const char *key, char *text, size_t size,
                                        int *flag)
{
    opal_cstring_t *value;
    int rc = opal_info_get(info, key, &value, flag);

    if (rc == OPAL_SUCCESS && *flag) {
        snprintf(text, size, "%s", value->string);
        OBJ_RELEASE(value);
    }
    return rc;
}

#define FLASH_MODEX_SEND(rc, key, data, size) \
    OPAL_MODEX_SEND_STRING(rc, PMIX_GLOBAL, key, data, size)
/*
 * PMIx asks the other host, which would wait for good until it is sent. Meanwhile it answers nothing
 * else about that process, so that Open MPI's own connections to it may fail, and end the job.
 */
enum { FLASH_MODEX_PATIENCE = 15 }; /* seconds */

static inline int flash_compat_modex_find(const char *key, const opal_process_name_t *name,
                                          void **data, size_t *size)
{
    int patience = FLASH_MODEX_PATIENCE, rc;
    pmix_value_t *value = NULL;
    pmix_info_t how;
    pmix_proc_t process;

    OPAL_PMIX_CONVERT_NAME(&process, name);
    PMIX_INFO_LOAD(&how, PMIX_TIMEOUT, &patience, PMIX_INT);
    rc = PMIx_Get(&process, key, &how, 1, &value);
    PMIX_INFO_DESTRUCT(&how);
    if (rc != PMIX_SUCCESS || value == NULL) {
        return OPAL_ERR_NOT_FOUND;
    }
    *data = value->data.bo.bytes;
    *size = value->data.bo.size;
    value->data.bo.bytes = NULL; /* the caller's */
    PMIX_VALUE_RELEASE(value);
    return OPAL_SUCCESS;
}

#define FLASH_MODEX_FIND(rc, key, name, data, size) \
    ((rc) = flash_compat_modex_find(key, name, data, size))

#else
#error \
    "flash knows Open MPI 4.1, 5.0 and 6.0 only so far: extend ompi_coll_flash/coll_flash_compat.h"
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

#define FLASH_MODEX_RECV(rc, key, name, data, size) \
    OPAL_MODEX_RECV_STRING(rc, key, name, data, size)

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

static inline int flash_compat_allgather(const void *mine, void *all, int count, MPI_Datatype type,
                                         ompi_communicator_t *comm)
{
    return FLASH_ALLGATHER_BY_DOUBLING(mine, count, type, all, count, type, comm, NULL);
}

/* To and from single processes, while MPI_COMM_WORLD is made, one message at a time. */
static inline int flash_compat_irecv(void *data, size_t count, MPI_Datatype type, int from,
                                     ompi_communicator_t *comm, ompi_request_t **request)
{
    return MCA_PML_CALL(irecv(data, count, type, from, MCA_COLL_BASE_TAG_ALLREDUCE, comm, request));
}

static inline int flash_compat_send(const void *data, size_t count, MPI_Datatype type, int to,
                                    ompi_communicator_t *comm)
{
    return MCA_PML_CALL(
        send(data, count, type, to, MCA_COLL_BASE_TAG_ALLREDUCE, MCA_PML_BASE_SEND_STANDARD, comm));
}

/* What a communicator had before, for what flash passes on. */
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

/* The atomic count orders those who drop a reference. */
static inline void flash_compat_order_references(ompi_communicator_t *comm)
{
    __tsan_release(comm);
    __tsan_acquire(comm);
}

#define opal_free_list_get       flash_compat_list_get
#define opal_free_list_return    flash_compat_list_return
#define ompi_request_complete    flash_compat_request_complete
#define flash_compat_see_request __tsan_acquire
#else
/* A thread that was told by MPI that a request is complete sees what was written before it was. */
#define flash_compat_see_request(request)   ((void) (request))
#define flash_compat_order_references(comm) ((void) (comm))
#endif

static inline void flash_compat_release_comm(ompi_communicator_t *comm)
{
    flash_compat_order_references(comm);
    OBJ_RELEASE(comm);
}

#endif /* COLL_FLASH_COMPAT_H */
