/*
 * mpix_flash.c: the extension's calls: arguments checked, then to the ring or to the fallback.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

#include <string.h>

#include "mpix_flash_fallback.h"

#define FLASH_MAX_PIECES 4096 /* as mpix_flash.h says: the ring keeps a place for each */

/* Hands a function's error to the communicator's handler, or to MPI_COMM_WORLD's if it has none. */
static int raise_error(MPI_Comm comm, int error, const char *function)
{
    if (error != MPI_SUCCESS) {
        OMPI_ERRHANDLER_INVOKE(ompi_comm_invalid(comm) ? MPI_COMM_WORLD : comm, error, function);
    }
    return error;
}

static int check_comm(MPI_Comm comm)
{
    return ompi_comm_invalid(comm) || OMPI_COMM_IS_INTER(comm) ? MPI_ERR_COMM : MPI_SUCCESS;
}

static int check_type(MPI_Datatype type)
{
    bool usable = type != NULL && type != MPI_DATATYPE_NULL && ompi_datatype_is_valid(type) &&
                  (ompi_datatype_is_predefined(type) || ompi_datatype_is_committed(type));

    return usable ? MPI_SUCCESS : MPI_ERR_TYPE;
}

static int check_counts(int count, const int counts[], MPI_Comm comm)
{
    if (counts == NULL) {
        return count < 0 ? MPI_ERR_COUNT : MPI_SUCCESS;
    }
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        if (counts[rank] < 0) {
            return MPI_ERR_COUNT;
        }
    }
    return MPI_SUCCESS;
}

/* A program may have been compiled without `own`; false: with more, or they make no sense. */
static bool read_hints(const MPIX_Flash_hints *hints, MPIX_Flash_hints *known)
{
    if (hints->size != offsetof(MPIX_Flash_hints, own) && hints->size != sizeof(*known)) {
        return false;
    }
    memset(known, 0, sizeof(*known));
    memcpy(known, hints, hints->size);
    return known->pieces >= 0 && known->pieces <= FLASH_MAX_PIECES && known->row >= 0 &&
           known->on_stream >= 0 && known->on_stream <= 1;
}

/* A callback, and what it is called with. */
typedef struct call {
    MPIX_Flash_compute_fn *fn;
    void *arg;
} call_t;

/* `own`: the hints' callback, or NULL: they are to have none. */
static int read_compute(call_t produce, call_t consume, const MPIX_Flash_hints *hints, call_t *own,
                        mca_coll_flash_compute_t *compute)
{
    MPIX_Flash_hints known = MPIX_FLASH_HINTS_INIT;

    if (hints != NULL && !read_hints(hints, &known)) {
        return MPI_ERR_ARG;
    }
    if (own != NULL) {
        *own = (call_t){known.own, known.own_arg};
    } else if (known.own != NULL) {
        return MPI_ERR_ARG;
    }
    *compute = (mca_coll_flash_compute_t){.produce = produce.fn,
                                          .produce_arg = produce.arg,
                                          .consume = consume.fn,
                                          .consume_arg = consume.arg,
                                          .pieces = known.pieces,
                                          .row = known.row,
                                          .on_stream = known.on_stream == 1};
    compute->stream = compute->on_stream ? known.stream : NULL;
    return MPI_SUCCESS;
}

int MPIX_Flash_active(MPI_Comm comm, int *flag)
{
    int error = check_comm(comm);

    if (error == MPI_SUCCESS && flag == NULL) {
        error = MPI_ERR_ARG;
    }
    if (error == MPI_SUCCESS) {
        *flag = mca_coll_flash_module_of(comm) != NULL;
    }
    return raise_error(comm, error, __func__);
}

int MPIX_Flash_type(int which, MPI_Datatype *type)
{
    int error = type == NULL ? MPI_ERR_ARG : mca_coll_flash_halves_type(which, type);

    return raise_error(MPI_COMM_WORLD, error, __func__);
}

int MPIX_Flash_complete(MPIX_Flash_handle handle, int error)
{
    int status = error >= 0 ? error : MPI_ERR_OTHER;
    bool pending;

    if (handle.operation == NULL) {
        return MPI_ERR_ARG;
    }
    if (handle.piece < 0) {
        pending = flash_fallback_end_pending(handle.operation, handle.piece, status);
    } else {
        pending = flash_progress_end_pending(mca_coll_flash_job_progress(), handle.operation,
                                             (uint64_t) handle.piece, status);
    }
    return pending ? MPI_SUCCESS : MPI_ERR_ARG;
}

static size_t type_bytes(MPI_Datatype type, int count)
{
    size_t size;

    ompi_datatype_type_size(type, &size);
    return size * (size_t) count;
}

static const char *module_obstacle(const mca_coll_flash_module_t *module)
{
    return module == NULL ? "flash does not serve it" : NULL;
}

/* Size does not matter: callbacks between the steps of a ring are what the user asked for. */
static void tell_path(const char *name, int count, const int counts[], MPI_Datatype type,
                      MPI_Comm comm, const char *obstacle)
{
    mca_coll_flash_tell_path(name, mca_coll_flash_bytes(count, counts, type, comm), comm,
                             "plain collective", obstacle);
}

/* --------------------------------------------------------------- allgather */

static int check_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                           const void *recvbuf, int recvcount, const int recvcounts[],
                           MPI_Datatype recvtype, MPI_Comm comm)
{
    int error = check_type(recvtype);

    if (error == MPI_SUCCESS) {
        error = check_counts(recvcount, recvcounts, comm);
    }
    if (error == MPI_SUCCESS && recvbuf == MPI_IN_PLACE) {
        error = MPI_ERR_BUFFER;
    }
    if (error == MPI_SUCCESS && sendbuf != MPI_IN_PLACE) {
        error = sendcount < 0 ? MPI_ERR_COUNT : check_type(sendtype);
    }
    return error;
}

static int allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int recvcount, const int recvcounts[], const int displs[],
                     MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume, void *arg,
                     const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    mca_coll_flash_module_t *module;
    mca_coll_flash_compute_t compute;
    const char *obstacle;
    call_t own;
    int error = check_comm(comm);

    if (error == MPI_SUCCESS) {
        error = request == NULL ? MPI_ERR_ARG
                                : read_compute((call_t){NULL, NULL}, (call_t){consume, arg}, hints,
                                               &own, &compute);
    }
    if (error == MPI_SUCCESS) {
        compute.produce = own.fn;
        compute.produce_arg = own.arg;
        error = consume == NULL && own.fn == NULL ? MPI_ERR_ARG : MPI_SUCCESS;
    }
    if (error == MPI_SUCCESS) {
        error = check_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvcounts,
                                recvtype, comm);
    }
    if (error != MPI_SUCCESS) {
        return error;
    }
    module = mca_coll_flash_module_of(comm);
    obstacle = module_obstacle(module);
    tell_path(recvcounts == NULL ? "Iallgather_compute" : "Iallgatherv_compute", recvcount,
              recvcounts, recvtype, comm, obstacle);
    if (obstacle != NULL) {
        error = flash_fallback_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                         recvcounts, displs, recvtype, &compute, comm, request);
    } else {
        error = mca_coll_flash_start_allgather(module, mca_coll_flash_next_sequence(module),
                                               sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                               recvcounts, displs, recvtype, &compute, request);
    }
    if (error == MPI_SUCCESS) {
        ompi_coll_base_retain_datatypes(*request, NULL, recvtype);
    }
    return error;
}

int MPIX_Iallgather_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, int recvcount, MPI_Datatype recvtype,
                            MPIX_Flash_compute_fn *consume, void *arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    return raise_error(comm,
                       allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL,
                                 recvtype, consume, arg, hints, comm, request),
                       __func__);
}

int MPIX_Iallgatherv_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, const int recvcounts[], const int displs[],
                             MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume, void *arg,
                             const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    if (recvcounts == NULL || displs == NULL) {
        return raise_error(comm, MPI_ERR_ARG, __func__);
    }
    return raise_error(comm,
                       allgather(sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs,
                                 recvtype, consume, arg, hints, comm, request),
                       __func__);
}

int MPIX_Allgather_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume,
                           void *arg, const MPIX_Flash_hints *hints, MPI_Comm comm)
{
    MPI_Request request;
    int error = MPIX_Iallgather_compute(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                        consume, arg, hints, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

int MPIX_Allgatherv_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, const int recvcounts[], const int displs[],
                            MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume, void *arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm)
{
    MPI_Request request;
    int error = MPIX_Iallgatherv_compute(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                         recvtype, consume, arg, hints, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ---------------------------------------------------------- reduce-scatter */

static int check_reduce_scatter(const void *recvbuf, int recvcount, const int recvcounts[],
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    char *message = NULL;
    int error = check_type(datatype);

    if (error == MPI_SUCCESS && (op == NULL || op == MPI_OP_NULL)) {
        error = MPI_ERR_OP;
    }
    if (error == MPI_SUCCESS && !ompi_op_is_valid(op, datatype, &message, "MPIX_Flash")) {
        free(message);
        error = MPI_ERR_OP;
    }
    if (error == MPI_SUCCESS) {
        error = check_counts(recvcount, recvcounts, comm);
    }
    if (error == MPI_SUCCESS && recvbuf == MPI_IN_PLACE) {
        error = MPI_ERR_BUFFER;
    }
    return error;
}

static int reduce_scatter(MPIX_Flash_compute_fn *produce, void *arg, const MPIX_Flash_hints *hints,
                          void *recvbuf, int recvcount, const int recvcounts[],
                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    mca_coll_flash_module_t *module;
    mca_coll_flash_compute_t compute;
    const char *obstacle;
    call_t own;
    int error = check_comm(comm);

    if (error == MPI_SUCCESS) {
        error =
            request == NULL || produce == NULL
                ? MPI_ERR_ARG
                : read_compute((call_t){produce, arg}, (call_t){NULL, NULL}, hints, &own, &compute);
    }
    if (error == MPI_SUCCESS) {
        compute.consume = own.fn;
        compute.consume_arg = own.arg;
    }
    if (error == MPI_SUCCESS) {
        error = mca_coll_flash_halves_op(datatype, &op);
    }
    if (error == MPI_SUCCESS) {
        error = check_reduce_scatter(recvbuf, recvcount, recvcounts, datatype, op, comm);
    }
    if (error != MPI_SUCCESS) {
        return error;
    }
    module = mca_coll_flash_module_of(comm);
    obstacle = module_obstacle(module);
    if (obstacle == NULL) {
        obstacle = mca_coll_flash_reduce_obstacle(datatype, op);
    }
    tell_path(recvcounts == NULL ? "Ireduce_scatter_block_compute" : "Ireduce_scatter_compute",
              recvcount, recvcounts, datatype, comm, obstacle);
    if (obstacle != NULL) {
        error = flash_fallback_reduce_scatter(&compute, recvbuf, recvcount, recvcounts, datatype,
                                              op, comm, request);
    } else {
        error = mca_coll_flash_start_reduce_scatter(module, mca_coll_flash_next_sequence(module),
                                                    NULL, recvbuf, recvcount, recvcounts, datatype,
                                                    op, &compute, request);
    }
    if (error == MPI_SUCCESS) {
        ompi_coll_base_retain_op(*request, op, datatype);
    }
    return error;
}

int MPIX_Ireduce_scatter_block_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                       const MPIX_Flash_hints *hints, void *recvbuf, int recvcount,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       MPI_Request *request)
{
    return raise_error(
        comm,
        reduce_scatter(produce, arg, hints, recvbuf, recvcount, NULL, datatype, op, comm, request),
        __func__);
}

int MPIX_Ireduce_scatter_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                 const MPIX_Flash_hints *hints, void *recvbuf,
                                 const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm, MPI_Request *request)
{
    if (recvcounts == NULL) {
        return raise_error(comm, MPI_ERR_ARG, __func__);
    }
    return raise_error(
        comm,
        reduce_scatter(produce, arg, hints, recvbuf, 0, recvcounts, datatype, op, comm, request),
        __func__);
}

int MPIX_Reduce_scatter_block_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                      const MPIX_Flash_hints *hints, void *recvbuf, int recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    int error = MPIX_Ireduce_scatter_block_compute(produce, arg, hints, recvbuf, recvcount,
                                                   datatype, op, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

int MPIX_Reduce_scatter_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                const MPIX_Flash_hints *hints, void *recvbuf,
                                const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm)
{
    MPI_Request request;
    int error = MPIX_Ireduce_scatter_compute(produce, arg, hints, recvbuf, recvcounts, datatype, op,
                                             comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* -------------------------------------------------------------- allreduce */

static int allreduce(call_t produce, call_t consume, const MPIX_Flash_hints *hints, void *recvbuf,
                     int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                     MPI_Request *request)
{
    mca_coll_flash_module_t *module;
    mca_coll_flash_compute_t compute;
    const char *obstacle;
    int error = check_comm(comm);

    if (error == MPI_SUCCESS) {
        error = request == NULL || produce.fn == NULL
                    ? MPI_ERR_ARG
                    : read_compute(produce, consume, hints, NULL, &compute);
    }
    if (error == MPI_SUCCESS) {
        error = mca_coll_flash_halves_op(datatype, &op);
    }
    if (error == MPI_SUCCESS) {
        error = check_reduce_scatter(recvbuf, count, NULL, datatype, op, comm);
    }
    if (error != MPI_SUCCESS) {
        return error;
    }
    module = mca_coll_flash_module_of(comm);
    obstacle = module_obstacle(module);
    if (obstacle == NULL) {
        obstacle = mca_coll_flash_reduce_obstacle(datatype, op);
    }
    mca_coll_flash_tell_path("Iallreduce_compute", type_bytes(datatype, count), comm,
                             "plain collective", obstacle);
    if (obstacle != NULL) {
        error = flash_fallback_allreduce(&compute, recvbuf, count, datatype, op, comm, request);
    } else {
        error = mca_coll_flash_start_allreduce(module, mca_coll_flash_next_sequence(module),
                                               recvbuf, count, datatype, op, &compute, request);
    }
    if (error == MPI_SUCCESS) {
        ompi_coll_base_retain_op(*request, op, datatype);
    }
    return error;
}

int MPIX_Iallreduce_compute(MPIX_Flash_compute_fn *produce, void *produce_arg,
                            MPIX_Flash_compute_fn *consume, void *consume_arg,
                            const MPIX_Flash_hints *hints, void *recvbuf, int count,
                            MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    return raise_error(comm,
                       allreduce((call_t){produce, produce_arg}, (call_t){consume, consume_arg},
                                 hints, recvbuf, count, datatype, op, comm, request),
                       __func__);
}

int MPIX_Allreduce_compute(MPIX_Flash_compute_fn *produce, void *produce_arg,
                           MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, void *recvbuf, int count,
                           MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    int error = MPIX_Iallreduce_compute(produce, produce_arg, consume, consume_arg, hints, recvbuf,
                                        count, datatype, op, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ------------------------------------------------------------- all-to-all */

static bool is_solid_or_empty(MPI_Datatype type)
{
    return type_bytes(type, 1) == 0 || mca_coll_flash_is_solid(type);
}

/* One side of it. */
static int check_side(const void *buffer, int count, const int counts[], MPI_Datatype type,
                      MPI_Comm comm)
{
    int error = check_type(type);

    if (error == MPI_SUCCESS) {
        error = check_counts(count, counts, comm);
    }
    if (error == MPI_SUCCESS && buffer == MPI_IN_PLACE) {
        error = MPI_ERR_BUFFER;
    }
    return error == MPI_SUCCESS && !is_solid_or_empty(type) ? MPI_ERR_TYPE : error;
}

static int alltoall(const mca_coll_flash_alltoall_t *a, call_t produce, call_t consume,
                    const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    mca_coll_flash_module_t *module;
    mca_coll_flash_compute_t compute;
    const char *obstacle;
    int error = check_comm(comm);

    if (error == MPI_SUCCESS) {
        error = request == NULL || (produce.fn == NULL && consume.fn == NULL)
                    ? MPI_ERR_ARG
                    : read_compute(produce, consume, hints, NULL, &compute);
    }
    if (error == MPI_SUCCESS) {
        error = check_side(a->sendbuf, a->sendcount, a->sendcounts, a->sendtype, comm);
    }
    if (error == MPI_SUCCESS) {
        error = check_side(a->recvbuf, a->recvcount, a->recvcounts, a->recvtype, comm);
    }
    if (error == MPI_SUCCESS && type_bytes(a->sendtype, 1) != type_bytes(a->recvtype, 1)) {
        error = MPI_ERR_TYPE; /* blocks are cut by elements */
    }
    if (error != MPI_SUCCESS) {
        return error;
    }
    module = mca_coll_flash_module_of(comm);
    obstacle = module_obstacle(module);
    if (obstacle == NULL) {
        obstacle = mca_coll_flash_alltoall_obstacle(comm);
    }
    tell_path(a->recvcounts == NULL ? "Ialltoall_compute" : "Ialltoallv_compute", a->recvcount,
              a->recvcounts, a->recvtype, comm, obstacle);
    if (obstacle != NULL) {
        error = flash_fallback_alltoall(&compute, a, comm, request);
    } else {
        error = mca_coll_flash_start_alltoall(module, mca_coll_flash_next_sequence(module), a,
                                              &compute, request);
    }
    if (error == MPI_SUCCESS) {
        ompi_coll_base_retain_datatypes(*request, a->sendtype, a->recvtype);
    }
    return error;
}

int MPIX_Ialltoall_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *produce,
                           void *produce_arg, MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    mca_coll_flash_alltoall_t a = {.sendbuf = (void *) (uintptr_t) sendbuf,
                                   .sendcount = sendcount,
                                   .sendtype = sendtype,
                                   .recvbuf = recvbuf,
                                   .recvcount = recvcount,
                                   .recvtype = recvtype};

    return raise_error(comm,
                       alltoall(&a, (call_t){produce, produce_arg}, (call_t){consume, consume_arg},
                                hints, comm, request),
                       __func__);
}

int MPIX_Ialltoallv_compute(const void *sendbuf, const int sendcounts[], const int sdispls[],
                            MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                            const int rdispls[], MPI_Datatype recvtype,
                            MPIX_Flash_compute_fn *produce, void *produce_arg,
                            MPIX_Flash_compute_fn *consume, void *consume_arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    mca_coll_flash_alltoall_t a = {.sendbuf = (void *) (uintptr_t) sendbuf,
                                   .sendcounts = sendcounts,
                                   .sdispls = sdispls,
                                   .sendtype = sendtype,
                                   .recvbuf = recvbuf,
                                   .recvcounts = recvcounts,
                                   .rdispls = rdispls,
                                   .recvtype = recvtype};

    if (sendcounts == NULL || sdispls == NULL || recvcounts == NULL || rdispls == NULL) {
        return raise_error(comm, MPI_ERR_ARG, __func__);
    }
    return raise_error(comm,
                       alltoall(&a, (call_t){produce, produce_arg}, (call_t){consume, consume_arg},
                                hints, comm, request),
                       __func__);
}

int MPIX_Alltoall_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                          int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *produce,
                          void *produce_arg, MPIX_Flash_compute_fn *consume, void *consume_arg,
                          const MPIX_Flash_hints *hints, MPI_Comm comm)
{
    MPI_Request request;
    int error =
        MPIX_Ialltoall_compute(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, produce,
                               produce_arg, consume, consume_arg, hints, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

int MPIX_Alltoallv_compute(const void *sendbuf, const int sendcounts[], const int sdispls[],
                           MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                           const int rdispls[], MPI_Datatype recvtype,
                           MPIX_Flash_compute_fn *produce, void *produce_arg,
                           MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, MPI_Comm comm)
{
    MPI_Request request;
    int error = MPIX_Ialltoallv_compute(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                        rdispls, recvtype, produce, produce_arg, consume,
                                        consume_arg, hints, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}
