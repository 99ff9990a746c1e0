/*
 * coll_flash_calls.h: MPI's arguments turned into operations.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_CALLS_H
#define COLL_FLASH_CALLS_H

#include "calls/coll_flash_functions.h"
#include "calls/coll_flash_path.h"
#include "device/flash_gpu.h"
#include "request/coll_flash_memory.h"

struct flash_fallback; /* see flash_fallback.h */
struct flash_stager_order;

/*
 * MPI_Iallgather(v), and with `compute` the extension's. recvcounts == NULL: equal blocks of
 * recvcount.
 */
int mca_coll_flash_start_allgather(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                   const void *sendbuf, flash_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                   flash_counts_t recvcounts, flash_displs_t displs,
                                   MPI_Datatype recvtype, const mca_coll_flash_compute_t *compute,
                                   ompi_request_t **request);

/* By which schedule the operation of that number goes, on all ranks. */
flash_kind_t mca_coll_flash_reduce_scatter_kind(const mca_coll_flash_module_t *module,
                                                const mca_coll_flash_settings_t *settings);
/* MPI_Ireduce_scatter(_block), and with `compute` (and no sendbuf) the extension's, by a ring. */
int mca_coll_flash_start_reduce_scatter(mca_coll_flash_module_t *module,
                                        mca_coll_flash_ticket_t ticket, const void *sendbuf,
                                        void *recvbuf, flash_count_t recvcount,
                                        flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op,
                                        const mca_coll_flash_compute_t *compute,
                                        mca_coll_flash_path_t path, ompi_request_t **request);

/* MPIX_Flash_type(), but for the error handler. */
int mca_coll_flash_float16_type(int which, MPI_Datatype *type);
/* On such a type: puts its own operation in the place of MPI's. MPI_SUCCESS or MPI_ERR_OP. */
int mca_coll_flash_float16_op(MPI_Datatype datatype, MPI_Op *op);
/* Whether an operation is one of these; then any thread may run it, and a device's kernel does the
 * same. */
bool mca_coll_flash_float16_find(MPI_Op op, flash_gpu_operator_t *operation,
                                 flash_gpu_type_t *type);
/* If the operation is one of them and rounds: how a pairwise reduce-scatter rounds once. */
void mca_coll_flash_float16_widen(MPI_Op op, flash_op_params_t *params);

/* Of a reduction that is staged: has the device add, if it can. Before the request is started. */
void mca_coll_flash_add_on_device(const mca_coll_flash_request_t *request, const void *input,
                                  const void *output);
/* The kernel that does the same, of flash_gpu.h's; false: none does. */
bool mca_coll_flash_kernel_of(MPI_Op op, MPI_Datatype datatype, flash_gpu_operator_t *operation,
                              flash_gpu_type_t *type);

/* What a reduction is of. */
void mca_coll_flash_reduce_by(mca_coll_flash_request_t *request, MPI_Datatype datatype, MPI_Op op,
                              flash_op_params_t *params);

/* MPI_Iallreduce, and with `compute` (and no sendbuf) the extension's. */
int mca_coll_flash_start_allreduce(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                   const void *sendbuf, void *recvbuf, flash_count_t count,
                                   MPI_Datatype datatype, MPI_Op op,
                                   const mca_coll_flash_compute_t *compute,
                                   ompi_request_t **request);
/* Which of `count` elements are the block of a rank. */
flash_range_t mca_coll_flash_allreduce_block(size_t count, size_t row, int ranks, int rank);

/* The extension's all-to-all's, both of whose types have no gaps and the same size. */
typedef struct mca_coll_flash_alltoall {
    void *sendbuf;
    flash_count_t sendcount;
    flash_counts_t sendcounts; /* NULL: equal blocks of sendcount */
    flash_displs_t sdispls;
    MPI_Datatype sendtype;
    void *recvbuf;
    flash_count_t recvcount;
    flash_counts_t recvcounts; /* NULL: of recvcount */
    flash_displs_t rdispls;
    MPI_Datatype recvtype;
} mca_coll_flash_alltoall_t;

/* MPIX_Ialltoall(v)_compute. */
int mca_coll_flash_start_alltoall(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                  const mca_coll_flash_alltoall_t *arguments,
                                  const mca_coll_flash_compute_t *compute,
                                  ompi_request_t **request);
/* Whether its ranks are few enough for each to exchange with all others. */
bool mca_coll_flash_may_exchange(ompi_communicator_t *comm);
/* Why there cannot be one. */
mca_coll_flash_reason_t mca_coll_flash_alltoall_reason(ompi_communicator_t *comm);
/* MPI_SUCCESS, or MPI_ERR_TRUNCATE: what this rank has for itself does not fit. */
int mca_coll_flash_alltoall_fits(const mca_coll_flash_alltoall_t *arguments,
                                 ompi_communicator_t *comm);

/* The arguments of a call, as MPI gives them. */
typedef struct mca_coll_flash_arguments {
    flash_kind_t kind; /* one of those that have costs */
    /* An all-to-all, a gather or a scatter whose blocks have lengths of their own, which their two ends
       alone know. */
    bool unequal;
    bool blocking;
    const void *sendbuf;
    flash_count_t sendcount;
    /* An all-to-all's, if it has recvcounts and is not in place; a scatter's, at the root, if it is
       unequal. */
    flash_counts_t sendcounts;
    flash_displs_t sdispls;
    MPI_Datatype sendtype; /* not used in place, nor by reductions */
    void *recvbuf;
    /* An allreduce's: of the vector; a chain's: of its one block; a gather's or a scatter's: of each
       block, on all ranks; unequal, of the own one. */
    flash_count_t recvcount;
    flash_counts_t recvcounts; /* NULL: equal blocks of recvcount; a gather's, at the root alone */
    flash_displs_t displs;
    MPI_Datatype recvtype;
    MPI_Op op; /* NULL: no reduction */
    int root;  /* of a kind that has one */
} mca_coll_flash_arguments_t;

/*
 * What the ticket of the call has: how far the root is, and of unequal blocks, in *taken, the steps in
 * which something travels.
 */
flash_part_t mca_coll_flash_part_of(const mca_coll_flash_module_t *module,
                                    const mca_coll_flash_arguments_t *arguments,
                                    flash_steps_t *taken);

/* The call of these arguments, as far as it is equal on all ranks. */
mca_coll_flash_call_t mca_coll_flash_call_of(const char *name,
                                             const mca_coll_flash_arguments_t *arguments,
                                             ompi_communicator_t *comm);
/* The algorithm that serves it; `state`: see mca_coll_flash_choose_path(). */
mca_coll_flash_path_t mca_coll_flash_path_of(const char *name,
                                             const mca_coll_flash_arguments_t *arguments,
                                             mca_coll_flash_module_t *module,
                                             mca_coll_flash_setup_state_t *state);
/* That of a blocking call, see mca_coll_flash_choose_blocking_path(). */
mca_coll_flash_path_t mca_coll_flash_blocking_path_of(const char *name,
                                                      const mca_coll_flash_arguments_t *arguments,
                                                      mca_coll_flash_module_t *module,
                                                      const mca_coll_flash_settings_t *settings);
/* That of a persistent form: the ring or the fallback; `reason`: why it must be the latter. */
mca_coll_flash_path_t mca_coll_flash_persistent_path_of(const char *name,
                                                        const mca_coll_flash_arguments_t *arguments,
                                                        mca_coll_flash_module_t *module,
                                                        mca_coll_flash_reason_t reason);
/* Where the first data of a receive side begins; NULL: there is none. */
const void *mca_coll_flash_first_data(const void *recvbuf, flash_count_t recvcount,
                                      flash_counts_t recvcounts, flash_displs_t displs,
                                      MPI_Datatype recvtype, int blocks);
/*
 * Before a call goes to another module, or to shared memory: puts copies in host memory in the
 * place of buffers in a device's, where that would touch them. NULL: there are none. MPI_SUCCESS,
 * or an error that is explained; then the call is not made. `order`: what comes first, or NULL.
 */
int mca_coll_flash_bounce(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                          mca_coll_flash_path_t path, const struct flash_stager_order *order,
                          struct flash_fallback **bounced);
/* After it: *request stands for the call and for copying its result back. Returns `error`. */
int mca_coll_flash_bounce_started(struct flash_fallback *bounced, int error,
                                  ompi_request_t **request);

/*
 * A collective of MPI's that flash serves. Its functions take the arguments that its calls have
 * filled in.
 */
typedef struct mca_coll_flash_collective {
    /* Starts the call by one of flash's algorithms. */
    int (*start)(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                 const mca_coll_flash_arguments_t *arguments, mca_coll_flash_path_t path,
                 ompi_request_t **request);
    /* Gives it to the module below. */
    int (*pass_on)(mca_coll_flash_module_t *module, const mca_coll_flash_arguments_t *arguments,
                   ompi_request_t **request);
    /* Has that one run the blocking call, whatever its buffers are. */
    int (*block)(mca_coll_flash_module_t *module, const mca_coll_flash_arguments_t *arguments);
    /* Has that one make a persistent request. */
    int (*init)(mca_coll_flash_module_t *module, const mca_coll_flash_arguments_t *arguments,
                struct ompi_info_t *info, ompi_request_t **request);
} mca_coll_flash_collective_t;

/*
 * Starts a standard call by an algorithm for which only the processor's memory will do, or by the
 * module below: copies, as above, take the place of buffers in a device's memory, and stand in
 * *arguments from then on.
 */
int mca_coll_flash_start_bounced(const mca_coll_flash_collective_t *collective,
                                 mca_coll_flash_module_t *module,
                                 mca_coll_flash_arguments_t *arguments, mca_coll_flash_path_t path,
                                 ompi_request_t **request);
/*
 * Makes a blocking call of the module below, with such copies. MPI_SUCCESS or an error. If the buffers
 * cannot be copied, this rank takes no part, and the communicator must not be used again: later calls of
 * Open MPI's may receive what this one was sent.
 */
int mca_coll_flash_block_bounced(const mca_coll_flash_collective_t *collective,
                                 mca_coll_flash_module_t *module,
                                 mca_coll_flash_arguments_t *arguments);

/*
 * Keeps a standard call that goes by messages until its communicator is set up. Then it starts, or falls
 * back, and is told of; but not if `name` is NULL. MPI_SUCCESS or an error.
 */
int mca_coll_flash_hold(const mca_coll_flash_collective_t *collective, const char *name,
                        mca_coll_flash_module_t *module,
                        const mca_coll_flash_arguments_t *arguments, mca_coll_flash_path_t path,
                        ompi_request_t **request);

/* Gives one to the module below whose communicator's set-up has been refused: see coll_flash_held.c. */
int mca_coll_flash_fall_back_out_of_turn(const mca_coll_flash_collective_t *collective,
                                         mca_coll_flash_module_t *module,
                                         mca_coll_flash_arguments_t *arguments,
                                         ompi_request_t **request);

/* What the functions that Open MPI calls have in common, once the arguments are filled in. */
static inline int mca_coll_flash_start_call(const mca_coll_flash_collective_t *collective,
                                            const char *name, mca_coll_flash_arguments_t *arguments,
                                            mca_coll_base_module_t *base, ompi_request_t **request)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    mca_coll_flash_setup_state_t state = FLASH_SETUP_NONE;
    mca_coll_flash_path_t path = mca_coll_flash_path_of(name, arguments, module, &state);

    if (state == FLASH_SETUP_PENDING) {
        return mca_coll_flash_hold(collective, name, module, arguments, path, request);
    }
    if (state == FLASH_SETUP_REFUSED) {
        return mca_coll_flash_fall_back_out_of_turn(collective, module, arguments, request);
    }
    return path == FLASH_RING || path == FLASH_PAIRWISE
               ? collective->start(module, mca_coll_flash_plain_ticket(module, path), arguments,
                                   path, request)
               : mca_coll_flash_start_bounced(collective, module, arguments, path, request);
}

/* A blocking call: by an algorithm of flash's, or by the module below. MPI_SUCCESS or an error. */
int mca_coll_flash_block(const mca_coll_flash_collective_t *collective, const char *name,
                         mca_coll_flash_arguments_t *arguments, mca_coll_base_module_t *base);

/* Waits for a request that has no other owner, and frees it. */
int mca_coll_flash_wait(ompi_request_t *request);

/* Once, before threads make persistent requests at a time. */
void mca_coll_flash_persistent_init(void);
/*
 * The persistent form of a standard call: an inactive request. Where the ring serves the call, each
 * start is one of the collective's. Elsewhere the module below makes the request; if its buffers
 * are in device memory, which that one would touch, each round copies them.
 */
int mca_coll_flash_make_persistent(const mca_coll_flash_collective_t *collective, const char *name,
                                   const mca_coll_flash_arguments_t *arguments,
                                   struct ompi_info_t *info, mca_coll_base_module_t *base,
                                   ompi_request_t **request);

/* No gap in an element or between two: a ring carries all that lies in their extent. */
bool mca_coll_flash_is_solid(MPI_Datatype type);
/* Whether a callback may write an allgather's own block where it is sent from. */
bool mca_coll_flash_may_write_own(const void *sendbuf, MPI_Datatype sendtype,
                                  MPI_Datatype recvtype);

/* Why a ring cannot reduce with `op` on `datatype`. */
mca_coll_flash_reason_t mca_coll_flash_reduce_reason(MPI_Datatype datatype, MPI_Op op);

/*
 * The blocking function below flash's, called as though it were the communicator's. HAN of Open MPI 4.1,
 * on hosts with unequal numbers of ranks, replaces itself there by what it has below it, and calls the
 * communicator's function: which would be flash's again, without end. What it has left there is the one
 * below from then on, and the reference to its module with it.
 */
#define FLASH_BLOCK_BELOW(module, name, rc, ...)                                       \
    do {                                                                               \
        mca_coll_flash_previous_t *previous_ = &(module)->previous;                    \
        mca_coll_base_comm_coll_t *functions_ = (module)->comm->c_coll;                \
        const mca_coll_base_module_##name##_fn_t own_ = functions_->coll_##name;       \
        mca_coll_base_module_t *const own_module_ = functions_->coll_##name##_module;  \
                                                                                       \
        functions_->coll_##name = previous_->name;                                     \
        functions_->coll_##name##_module = previous_->name##_module;                   \
        (rc) = previous_->name(__VA_ARGS__, (module)->comm, previous_->name##_module); \
        previous_->name = functions_->coll_##name;                                     \
        previous_->name##_module = functions_->coll_##name##_module;                   \
        functions_->coll_##name = own_;                                                \
        functions_->coll_##name##_module = own_module_;                                \
    } while (0)

#endif /* COLL_FLASH_CALLS_H */
