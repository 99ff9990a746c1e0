/*
 * coll_flash_allgather.c: MPI's allgathers: which algorithm serves each, and its arguments as an
 * operation's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"

/* --------------------------------------------------------- where blocks go */

static bool all_dense(const mca_coll_flash_layout_t *layout, int size)
{
    flash_count_t longest = layout->count;

    for (int rank = 0; layout->counts != NULL && rank < size; rank++) {
        longest = layout->counts[rank] > longest ? layout->counts[rank] : longest;
    }
    /* Equal blocks also lie one after another, as their packed form does. */
    return mca_coll_flash_is_dense(layout->type,
                                   layout->counts == NULL ? 2 * (longest > 0) : longest);
}

/* Pieces are counted in elements of the type then. */
static bool calls_back(const mca_coll_flash_request_t *request)
{
    return request->compute.consume != NULL || request->compute.produce != NULL;
}

/* Its callback writes elements of the receive type, and they are sent as they are. */
bool mca_coll_flash_may_write_own(const void *sendbuf, MPI_Datatype sendtype, MPI_Datatype recvtype)
{
    return mca_coll_flash_is_solid(recvtype) &&
           (sendbuf == MPI_IN_PLACE || mca_coll_flash_is_solid(sendtype));
}

/*
 * In units of the operation's elements: lengths always, places as they are in recvbuf or, if
 * packed, in a row.
 */
static int set_blocks(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                      bool packed, flash_op_params_t *params)
{
    const mca_coll_flash_side_t side = {.counts = layout->counts,
                                        .displs = packed ? NULL : layout->displs,
                                        .element = layout->size / params->element,
                                        .extent = layout->extent / (ptrdiff_t) params->element};

    return mca_coll_flash_request_sides(request, &side, 1, &params->schedule.blocks);
}

/*
 * Output and blocks of the ring; `on_device`: an address of it in a device's memory, or NULL. A
 * callback is to find its piece as the type describes it.
 */
static int place_output(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                        void *recvbuf, flash_op_params_t *params, const void **on_device)
{
    int size = ompi_comm_size(request->module->comm);
    bool packed =
        calls_back(request) ? !mca_coll_flash_is_solid(layout->type) : !all_dense(layout, size);
    const void *first;

    params->schedule.blocks.count = (size_t) layout->count * layout->size / params->element;
    params->output = (char *) recvbuf + layout->true_lb;
    first = mca_coll_flash_first_data(recvbuf, layout->count, layout->counts, layout->displs,
                                      layout->type, size);
    /* MPI_BOTTOM with a type that holds addresses is no NULL: these are added by now. */
    if (mca_coll_flash_bytes(layout->count, layout->counts, layout->type, request->module->comm) >
        0) {
        if (mca_coll_flash_check_buffer(params->output) != MPI_SUCCESS) {
            return MPI_ERR_BUFFER;
        }
        *on_device = mca_coll_flash_is_on_device(first) ? first : NULL;
    }
    if (packed && *on_device != NULL) {
        return mca_coll_flash_refuse_gaps();
    }
    if (packed && mca_coll_flash_place_packed(request, layout, recvbuf, params) != MPI_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    return layout->counts == NULL ? MPI_SUCCESS : set_blocks(request, layout, packed, params);
}

/*
 * Input of the ring: the send buffer as it is if it is dense; otherwise its packed form, made in
 * the own block's place of the output. `on_device`: of the output, then of the input.
 */
static int place_input(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                       const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                       const void *recvbuf, flash_op_params_t *params, const void **on_device)
{
    int rank = ompi_comm_rank(request->module->comm);
    size_t size, own_bytes = (size_t) mca_coll_flash_block_count(layout, rank) * layout->size;
    ptrdiff_t extent, true_lb;
    bool device_output = *on_device != NULL;
    char *own = (char *) params->output + flash_schedule_displ(&params->schedule, (uint32_t) rank) *
                                              (ptrdiff_t) params->element;

    params->input = own;
    if (request->compute.produce != NULL && own_bytes > 0 &&
        !mca_coll_flash_may_write_own(sendbuf, sendtype, layout->type)) {
        return MPI_ERR_TYPE;
    }
    if (sendbuf == MPI_IN_PLACE) {
        return request->scratch == NULL
                   ? MPI_SUCCESS
                   : mca_coll_flash_pack(
                         (const char *) recvbuf +
                             mca_coll_flash_block_displ(layout, rank) * layout->extent,
                         mca_coll_flash_block_count(layout, rank), layout->type, own);
    }
    mca_coll_flash_read_type(sendtype, &size, &extent, &true_lb);
    *on_device = NULL;
    if (sendcount > 0 && size > 0) {
        const char *first = (const char *) sendbuf + true_lb;
        if (mca_coll_flash_check_buffer(first) != MPI_SUCCESS) {
            return MPI_ERR_BUFFER;
        }
        *on_device = mca_coll_flash_is_on_device(first) ? first : NULL;
        /* The processor would pack the one, or unpack the own block for its callback. */
        if (((*on_device != NULL || device_output) &&
             !mca_coll_flash_is_dense(sendtype, sendcount)) ||
            (*on_device != NULL && request->prepare != NULL)) {
            return mca_coll_flash_refuse_gaps();
        }
    }
    if ((size_t) sendcount * size != own_bytes) {
        /* The other ranks wait for a block of the length they know, and are told that it is not
           to be had. */
        request->known_error = MPI_ERR_TRUNCATE;
        params->poisoned = true;
        *on_device = NULL; /* it is not read */
        return MPI_SUCCESS;
    }
    if (mca_coll_flash_is_dense(sendtype, sendcount)) {
        params->input = (const char *) sendbuf + true_lb;
        return MPI_SUCCESS;
    }
    return mca_coll_flash_pack(sendbuf, sendcount, sendtype, own);
}

int mca_coll_flash_start_allgather(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                   const void *sendbuf, flash_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                   flash_counts_t recvcounts, flash_displs_t displs,
                                   MPI_Datatype recvtype, const mca_coll_flash_compute_t *compute,
                                   ompi_request_t **request)
{
    mca_coll_flash_request_t *made = mca_coll_flash_request_new(module, ticket, FLASH_ALLGATHER);
    mca_coll_flash_layout_t layout = {
        .type = recvtype, .count = recvcount, .counts = recvcounts, .displs = displs};
    flash_op_params_t params = {.element = 1};
    const void *device_input, *device_output = NULL;
    int rc;

    if (made == NULL) {
        return MPI_ERR_NO_MEM;
    }
    mca_coll_flash_read_type(recvtype, &layout.size, &layout.extent, &layout.true_lb);
    made->datatype = recvtype;
    if (compute != NULL) {
        made->compute = *compute;
        if (layout.size > 0) {
            params.element = layout.size; /* pieces are counted in elements */
        }
    }
    rc = place_output(made, &layout, recvbuf, &params, &device_output);
    device_input = device_output;
    if (rc == MPI_SUCCESS) {
        rc = place_input(made, &layout, sendbuf, sendcount, sendtype, recvbuf, &params,
                         &device_input);
    }
    if (rc == MPI_SUCCESS) {
        bool awaits = made->compute.produce != NULL && made->compute.on_stream &&
                      mca_coll_flash_block_count(&layout, ompi_comm_rank(module->comm)) > 0;

        rc = mca_coll_flash_stage(made, device_input, device_output, false, awaits);
    }
    if (rc != MPI_SUCCESS) {
        return mca_coll_flash_request_refuse(made, rc, request);
    }
    return mca_coll_flash_request_start(made, &params, request);
}

/* ------------------------------------------------------------ MPI's functions */

typedef mca_coll_flash_arguments_t arguments_t;

static arguments_t arguments_of(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_count_t recvcount, flash_counts_t recvcounts,
                                flash_displs_t displs, MPI_Datatype recvtype)
{
    return (arguments_t){.kind = FLASH_ALLGATHER,
                         .sendbuf = sendbuf,
                         .sendcount = sendcount,
                         .sendtype = sendtype,
                         .recvbuf = recvbuf,
                         .recvcount = recvcount,
                         .recvcounts = recvcounts,
                         .displs = displs,
                         .recvtype = recvtype};
}

static int start(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                 const arguments_t *a, mca_coll_flash_path_t path, ompi_request_t **request)
{
    (void) path;
    return mca_coll_flash_start_allgather(module, ticket, a->sendbuf, a->sendcount, a->sendtype,
                                          a->recvbuf, a->recvcount, a->recvcounts, a->displs,
                                          a->recvtype, NULL, request);
}

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    const mca_coll_flash_previous_t *previous = &module->previous;

    if (a->recvcounts == NULL) {
        return previous->iallgather(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf, a->recvcount,
                                    a->recvtype, module->comm, request,
                                    previous->iallgather_module);
    }
    return previous->iallgatherv(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                 FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype,
                                 module->comm, request, previous->iallgatherv_module);
}

static int block(mca_coll_flash_module_t *module, const arguments_t *a)
{
    int rc;

    if (a->recvcounts == NULL) {
        FLASH_BLOCK_BELOW(module, allgather, rc, a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                          a->recvcount, a->recvtype);
    } else {
        FLASH_BLOCK_BELOW(module, allgatherv, rc, a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                          FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype);
    }
    return rc;
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    const mca_coll_flash_previous_t *previous = &module->previous;

    if (a->recvcounts == NULL) {
        return previous->allgather_init(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                        a->recvcount, a->recvtype, module->comm, info, request,
                                        previous->allgather_init_module);
    }
    return previous->allgatherv_init(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                     FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs),
                                     a->recvtype, module->comm, info, request,
                                     previous->allgatherv_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = start, .pass_on = pass_on, .block = block, .init = pass_on_each_time};

int mca_coll_flash_allgather(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                             void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                             ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL, recvtype);

    (void) comm;
    return mca_coll_flash_block(&collective, "Allgather", &arguments, base);
}

int mca_coll_flash_allgatherv(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                              void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                              MPI_Datatype recvtype, ompi_communicator_t *comm,
                              mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs, recvtype);

    (void) comm;
    return mca_coll_flash_block(&collective, "Allgatherv", &arguments, base);
}

int mca_coll_flash_iallgather(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                              void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                              ompi_communicator_t *comm, ompi_request_t **request,
                              mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL, recvtype);

    (void) comm;
    return mca_coll_flash_start_call(&collective, "Iallgather", &arguments, base, request);
}

int mca_coll_flash_iallgatherv(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                               void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                               MPI_Datatype recvtype, ompi_communicator_t *comm,
                               ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs, recvtype);

    (void) comm;
    return mca_coll_flash_start_call(&collective, "Iallgatherv", &arguments, base, request);
}

int mca_coll_flash_allgather_init(const void *sendbuf, flash_count_t sendcount,
                                  MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                  MPI_Datatype recvtype, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL, recvtype);

    (void) comm;
    return mca_coll_flash_make_persistent(&collective, "Allgather_init", &arguments, info, base,
                                          request);
}

int mca_coll_flash_allgatherv_init(const void *sendbuf, flash_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf, flash_counts_t recvcounts,
                                   flash_displs_t displs, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, struct ompi_info_t *info,
                                   ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs, recvtype);

    (void) comm;
    return mca_coll_flash_make_persistent(&collective, "Allgatherv_init", &arguments, info, base,
                                          request);
}
