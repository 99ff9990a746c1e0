/*
 * mpix_flash_call.c: see mpix_flash_call.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension/mpix_flash_call.h"

#include <stdlib.h>
#include <string.h>

#include "ring/coll_flash_setup.h"

bool flash_call_has_world(void)
{
    int initialized, finalized;

    mca_coll_flash_version_require();
    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    return initialized && !finalized;
}

void flash_call_begin(const char *function)
{
    mca_coll_flash_version_require();
    OMPI_ERR_INIT_FINALIZE(function);
}

/* Without a group: MPI_COMM_WORLD where MPI_Init has not been called, but a session is open. */
static bool is_there(MPI_Comm comm)
{
    return !ompi_comm_invalid(comm) && comm->c_local_group != NULL;
}

int flash_call_raise(MPI_Comm comm, int error, const char *function)
{
    bool valid = is_there(comm);

    if (error != MPI_SUCCESS && (valid || flash_call_has_world())) {
        OMPI_ERRHANDLER_INVOKE(valid ? comm : MPI_COMM_WORLD, error, function);
    }
    return error;
}

int flash_call_check_comm(MPI_Comm comm)
{
    return !is_there(comm) || OMPI_COMM_IS_INTER(comm) ? MPI_ERR_COMM : MPI_SUCCESS;
}

int flash_call_check_type(MPI_Datatype type)
{
    bool usable = type != NULL && type != MPI_DATATYPE_NULL && ompi_datatype_is_valid(type) &&
                  (ompi_datatype_is_predefined(type) || ompi_datatype_is_committed(type));

    return usable ? MPI_SUCCESS : MPI_ERR_TYPE;
}

int flash_call_check_counts(int count, const int counts[], MPI_Comm comm)
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

/*
 * A program may have been compiled without the later fields; false: with more, or they make no
 * sense. The size tells which it has: a field that fits behind `merge` would not change it.
 */
static bool read_hints(const MPIX_Flash_hints *hints, MPIX_Flash_hints *known)
{
    if (hints->size != offsetof(MPIX_Flash_hints, own) &&
        hints->size != offsetof(MPIX_Flash_hints, merge) && hints->size != sizeof(*known)) {
        return false;
    }
    memset(known, 0, sizeof(*known));
    memcpy(known, hints, hints->size);
    return known->pieces >= 0 && known->pieces <= FLASH_MAX_PIECES && known->row >= 0 &&
           known->on_stream >= 0 && known->on_stream <= 1 && known->merge >= 0 && known->merge <= 1;
}

int flash_call_read(flash_call_t produce, flash_call_t consume, const MPIX_Flash_hints *hints,
                    flash_call_t *own, mca_coll_flash_compute_t *compute)
{
    MPIX_Flash_hints known = MPIX_FLASH_HINTS_INIT;

    if (hints != NULL && !read_hints(hints, &known)) {
        return MPI_ERR_ARG;
    }
    if (own != NULL) {
        *own = (flash_call_t){known.own, known.own_arg};
    } else if (known.own != NULL) {
        return MPI_ERR_ARG;
    }
    *compute = (mca_coll_flash_compute_t){.produce = produce.fn,
                                          .produce_arg = produce.arg,
                                          .consume = consume.fn,
                                          .consume_arg = consume.arg,
                                          .pieces = known.pieces,
                                          .row = known.row,
                                          .on_stream = known.on_stream == 1,
                                          .merge = known.merge == 1};
    compute->stream = compute->on_stream ? known.stream : NULL;
    return MPI_SUCCESS;
}

mca_coll_flash_module_t *flash_call_module(MPI_Comm comm, mca_coll_flash_compute_t *compute)
{
    mca_coll_flash_module_t *module = mca_coll_flash_module_of(comm);

    if (module != NULL && compute->pieces == 0) {
        compute->pieces = (int) module->settings.pieces;
    }
    return module;
}

size_t flash_call_bytes(MPI_Datatype type, int count)
{
    size_t size;

    ompi_datatype_type_size(type, &size);
    return size * (size_t) count;
}

mca_coll_flash_reason_t flash_call_reason(const mca_coll_flash_module_t *module)
{
    return module == NULL ? FLASH_NOT_SERVED : FLASH_NO_REASON;
}

mca_coll_flash_reason_t flash_call_merge_reason(const mca_coll_flash_module_t *module,
                                                const mca_coll_flash_compute_t *compute,
                                                flash_kind_t kind, int count, const int counts[],
                                                MPI_Datatype type)
{
    const mca_coll_flash_call_t call = {
        .kind = kind,
        .bytes = mca_coll_flash_bytes(count, counts, type, module->comm),
        .element = kind == FLASH_ALLGATHER ? 1 : flash_call_bytes(type, 1)};
    bool merges = compute->merge && mca_coll_flash_merge_pays(&call, module);

    return merges ? FLASH_MERGED : FLASH_NO_REASON;
}

mca_coll_flash_reason_t flash_call_setup_reason(mca_coll_flash_module_t *module, flash_kind_t kind,
                                                mca_coll_flash_reason_t reason)
{
    bool ready = reason != FLASH_NO_REASON || !module->late ||
                 mca_coll_flash_setup_wait(module, mca_coll_flash_needed_setup(module, kind)) ==
                     FLASH_SETUP_READY;

    return ready ? reason : FLASH_NOT_SET_UP;
}

void flash_call_tell(const char *name, int count, const int counts[], MPI_Datatype type,
                     MPI_Comm comm, mca_coll_flash_reason_t reason)
{
    mca_coll_flash_tell_path(name, mca_coll_flash_bytes(count, counts, type, comm), comm, reason);
}

int flash_call_check_reduction(const void *recvbuf, int recvcount, const int recvcounts[],
                               MPI_Datatype datatype, MPI_Op *op, MPI_Comm comm)
{
    char *message = NULL;
    int error = mca_coll_flash_float16_op(datatype, op);

    if (error == MPI_SUCCESS) {
        error = flash_call_check_type(datatype);
    }
    if (error == MPI_SUCCESS && (*op == NULL || *op == MPI_OP_NULL)) {
        error = MPI_ERR_OP;
    }
    if (error == MPI_SUCCESS && !ompi_op_is_valid(*op, datatype, &message, "MPIX_Flash")) {
        free(message);
        error = MPI_ERR_OP;
    }
    if (error == MPI_SUCCESS) {
        error = flash_call_check_counts(recvcount, recvcounts, comm);
    }
    if (error == MPI_SUCCESS && recvbuf == MPI_IN_PLACE) {
        error = MPI_ERR_BUFFER;
    }
    return error;
}

mca_coll_flash_reason_t flash_call_reduce_reason(const mca_coll_flash_module_t *module,
                                                 MPI_Datatype datatype, MPI_Op op)
{
    mca_coll_flash_reason_t reason = flash_call_reason(module);

    return reason != FLASH_NO_REASON ? reason : mca_coll_flash_reduce_reason(datatype, op);
}
