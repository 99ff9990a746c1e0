/*
 * coll_flash_ompi41.h: what coll_flash_compat.h has of Open MPI 4.1.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_OMPI41_H
#define COLL_FLASH_OMPI41_H

#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal_params.h"

#define FLASH_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0

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

/* What an MPI function checks before a collective begins. MPI_SUCCESS or an error. */
static inline int flash_compat_check_collective(ompi_communicator_t *comm)
{
    (void) comm;
    return MPI_SUCCESS;
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

/* Who is told. */
#define FLASH_MODEX_NODE OPAL_PMIX_LOCAL
#define FLASH_MODEX_JOB  OPAL_PMIX_GLOBAL
#define FLASH_MODEX_SEND(rc, scope, key, data, size) \
    OPAL_MODEX_SEND_STRING(rc, scope, key, data, size)
#define FLASH_MODEX_RECV(rc, key, name, data, size) \
    OPAL_MODEX_RECV_STRING(rc, key, name, data, size)

/*
 * Of a process of this job, behind the fence of MPI_Init: what may not have been sent. PMIx waits two seconds
 * for it. Not with OPAL_PMIX_IMMEDIATE: see docs/internals/agreement.md.
 */
static inline int flash_compat_modex_find(const char *key, const opal_process_name_t *name,
                                          bool on_node, void **data, size_t *size)
{
    int rc;

    (void) on_node;
    FLASH_MODEX_RECV(rc, key, name, data, size);
    return rc;
}

#endif /* COLL_FLASH_OMPI41_H */
