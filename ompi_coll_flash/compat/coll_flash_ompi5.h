/*
 * coll_flash_ompi5.h: what coll_flash_compat.h has of Open MPI 5.0 and 6.0.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_OMPI5_H
#define COLL_FLASH_OMPI5_H

#include "opal/mca/accelerator/base/base.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "ompi/instance/instance.h"
#include "ompi/runtime/params.h"

#if OMPI_MAJOR_VERSION == 5
#define FLASH_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#include "ompi/util/count_disp_array.h"

#define FLASH_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
/* coll_flash_ompi6.h's. */
#define FLASH_LARGE_COUNTS 1
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
 * on what flash does; and MPI_Comm_create_from_group gives each rank a number of its own. A group
 * that began as MPI_GROUP_EMPTY has no instance, nor has the default one before MPI_Init. A revoked
 * communicator ends operations that Open MPI knows to wait for messages of its own; flash's would
 * wait on.
 */
static inline const char *flash_compat_obstacle(const ompi_communicator_t *comm)
{
    if (ompi_ftmpi_enabled) {
        return "the job is fault tolerant (ULFM), and flash follows no revocation";
    }
    if (comm->instance == NULL || comm->instance != ompi_mpi_instance_default ||
        !OMPI_COMM_IS_GLOBAL_INDEX(comm)) {
        return "of a session, or by MPI_Comm_create_from_group";
    }
    return NULL;
}

static inline int flash_compat_check_collective(ompi_communicator_t *comm)
{
    int rc = MPI_SUCCESS;

#if OPAL_ENABLE_FT_MPI
    (void) ompi_comm_iface_coll_check(comm, &rc);
#else
    (void) comm;
#endif
    return rc;
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

/* Who is told. */
#define FLASH_MODEX_NODE PMIX_LOCAL
#define FLASH_MODEX_JOB  PMIX_GLOBAL
#define FLASH_MODEX_SEND(rc, scope, key, data, size) \
    OPAL_MODEX_SEND_STRING(rc, scope, key, data, size)
/*
 * PMIx asks the other host, which would wait for good until it is sent. Meanwhile it answers
 * nothing else about that process, so that Open MPI's own connections to it may fail, and end the
 * job.
 */
enum { FLASH_MODEX_PATIENCE = 15 }; /* seconds */

static inline int flash_compat_modex_get(const char *key, const opal_process_name_t *name,
                                         bool at_once, void **data, size_t *size)
{
    int patience = FLASH_MODEX_PATIENCE, rc;
    pmix_value_t *value = NULL;
    pmix_info_t how;
    pmix_proc_t process;

    OPAL_PMIX_CONVERT_NAME(&process, name);
    if (at_once) {
        PMIX_INFO_LOAD(&how, PMIX_IMMEDIATE, &at_once, PMIX_BOOL);
    } else {
        PMIX_INFO_LOAD(&how, PMIX_TIMEOUT, &patience, PMIX_INT);
    }
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

#define FLASH_MODEX_RECV(rc, key, name, data, size) \
    ((rc) = flash_compat_modex_get(key, name, false, data, size))

/*
 * Of a process of this job, behind the fence of MPI_Init: what may not have been sent. The node's PMIx server
 * knows that at once of its own processes, but not of another host's.
 */
static inline int flash_compat_modex_find(const char *key, const opal_process_name_t *name,
                                          bool on_node, void **data, size_t *size)
{
    return flash_compat_modex_get(key, name, on_node && !opal_pmix_base_async_modex, data, size);
}

#endif /* COLL_FLASH_OMPI5_H */
