/*
 * coll_flash_allgather.c: MPI's arguments to an allgather ring's.
 *
 * Ranks may describe the same data by different types, as long as the signatures agree, so that
 * the ring sees bytes. A rank whose receive type has gaps gathers into packed memory of its own
 * and unpacks at completion, or each piece before its callback; its neighbours do not notice.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

#include <stdlib.h>
#include <string.h>

/* The receive side of a call, as MPI gives it. */
typedef struct layout {
    MPI_Datatype type;
    size_t size; /* bytes of an element */
    ptrdiff_t extent, true_lb;
    flash_count_t count;
    flash_counts_t counts; /* NULL: equal blocks of `count` */
    flash_displs_t displs;
} layout_t;

static flash_count_t block_count(const layout_t *layout, int rank)
{
    return layout->counts == NULL ? layout->count : layout->counts[rank];
}

/* In elements of the type. */
static ptrdiff_t block_displ(const layout_t *layout, int rank)
{
    return layout->counts == NULL ? (ptrdiff_t) rank * layout->count : layout->displs[rank];
}

static void read_type(MPI_Datatype type, size_t *size, ptrdiff_t *extent, ptrdiff_t *true_lb)
{
    ptrdiff_t lb, true_extent;

    ompi_datatype_type_size(type, size);
    ompi_datatype_get_extent(type, &lb, extent);
    ompi_datatype_get_true_extent(type, true_lb, &true_extent);
}

/* Whether `count` elements lie in memory as their packed form does. */
static bool is_dense(MPI_Datatype type, flash_count_t count)
{
    size_t size;
    ptrdiff_t extent, true_lb;

    read_type(type, &size, &extent, &true_lb);
    return ompi_datatype_is_contiguous_memory_layout(type, count) &&
           (count <= 1 || extent == (ptrdiff_t) size);
}

/* ------------------------------------------------------------------ packing */

/* Of `count` elements at `elements` into `packed`, or back. MPI_Pack ends at 2^31 bytes. */
static int convert(bool to_packed, char *packed, char *elements, flash_count_t count,
                   MPI_Datatype type)
{
    opal_convertor_t convertor;
    struct iovec piece = {.iov_base = packed};
    uint32_t pieces = 1;
    size_t size;
    int rc;

    ompi_datatype_type_size(type, &size);
    size *= (size_t) count;
    if (size == 0) {
        return MPI_SUCCESS;
    }
    piece.iov_len = size;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    if (to_packed) {
        rc = opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super,
                                                      (size_t) count, elements, 0, &convertor);
        rc = rc == OPAL_SUCCESS ? opal_convertor_pack(&convertor, &piece, &pieces, &size) : rc;
    } else {
        rc = opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super,
                                                      (size_t) count, elements, 0, &convertor);
        rc = rc == OPAL_SUCCESS ? opal_convertor_unpack(&convertor, &piece, &pieces, &size) : rc;
    }
    OBJ_DESTRUCT(&convertor);
    return rc < 0 ? MPI_ERR_INTERN : MPI_SUCCESS;
}

static int pack(const void *from, flash_count_t count, MPI_Datatype type, char *to)
{
    return convert(true, to, (char *) (uintptr_t) from, count, type);
}

static int unpack(const char *from, char *to, flash_count_t count, MPI_Datatype type)
{
    return convert(false, (char *) (uintptr_t) from, to, count, type);
}

static layout_t deferred_layout(const mca_coll_flash_request_t *request)
{
    layout_t layout = {.type = request->deferred.recvtype,
                       .count = request->deferred.recvcount,
                       .counts = request->deferred.recvcounts,
                       .displs = request->deferred.displs};

    read_type(layout.type, &layout.size, &layout.extent, &layout.true_lb);
    return layout;
}

/* Where an element of a block belongs in the receive buffer. */
static char *element_of(const mca_coll_flash_request_t *request, const layout_t *layout, int rank,
                        ptrdiff_t element)
{
    return (char *) request->deferred.recvbuf +
           (block_displ(layout, rank) + element) * layout->extent;
}

/* The request's last act where blocks were gathered packed. */
static int unpack_blocks(mca_coll_flash_request_t *request)
{
    int size = ompi_comm_size(request->module->comm), rc = MPI_SUCCESS;
    layout_t layout = deferred_layout(request);
    const char *packed = request->deferred.packed;

    for (int rank = 0; rank < size && rc == MPI_SUCCESS; rank++) {
        flash_count_t count = block_count(&layout, rank);

        rc = unpack(packed, element_of(request, &layout, rank, 0), count, layout.type);
        packed += (size_t) count * layout.size;
    }
    return rc;
}

/* Before the callback for a piece of such a block. */
static int unpack_piece(const mca_coll_flash_request_t *request, const flash_piece_t *piece,
                        void **elements)
{
    layout_t layout = deferred_layout(request);

    *elements = element_of(request, &layout, (int) piece->block, (ptrdiff_t) piece->offset);
    return unpack(piece->data, *elements, (flash_count_t) piece->count, layout.type);
}

/* --------------------------------------------------------- where blocks go */

/* Blocks in `unit` bytes: lengths always, places as they are in recvbuf or, if packed, in a row. */
static int unequal_blocks(mca_coll_flash_request_t *request, const layout_t *layout, bool packed,
                          size_t unit, flash_blocks_t *blocks)
{
    int size = ompi_comm_size(request->module->comm);
    ptrdiff_t next = 0;

    if (mca_coll_flash_request_blocks(request, blocks) != MPI_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (int rank = 0; rank < size; rank++) {
        request->counts[rank] = (size_t) block_count(layout, rank) * layout->size / unit;
        request->displs[rank] =
            packed ? next : block_displ(layout, rank) * (layout->extent / (ptrdiff_t) unit);
        next += (ptrdiff_t) request->counts[rank];
    }
    return MPI_SUCCESS;
}

static bool all_dense(const layout_t *layout, int size)
{
    flash_count_t longest = layout->count;

    for (int rank = 0; layout->counts != NULL && rank < size; rank++) {
        longest = layout->counts[rank] > longest ? layout->counts[rank] : longest;
    }
    /* Equal blocks also lie one after another, as their packed form does. */
    return is_dense(layout->type, layout->counts == NULL ? 2 * (longest > 0) : longest);
}

/*
 * Packed blocks in memory of the request's, and with them the caller's counts and displacements:
 * MPI demands that these outlive the call, but Open MPI's own collectives do not need them to, and
 * mpi4py 3.1 frees those that were lists.
 */
static int place_packed(mca_coll_flash_request_t *request, const layout_t *layout, void *recvbuf,
                        flash_op_params_t *params)
{
    ompi_communicator_t *comm = request->module->comm;
    size_t size = (size_t) ompi_comm_size(comm);
    size_t bytes = mca_coll_flash_bytes(layout->count, layout->counts, layout->type, comm);
    size_t kept = layout->counts == NULL ? 0 : size;
    size_t header = (2 * kept * sizeof(flash_count_t) + 63) / 64 * 64;
    flash_count_t *counts = malloc(header + bytes + 1);

    if (counts == NULL) {
        return MPI_ERR_NO_MEM;
    }
    for (size_t rank = 0; rank < kept; rank++) {
        counts[rank] = layout->counts[rank];
        counts[size + rank] = layout->displs[rank];
    }
    request->scratch = counts;
    request->deferred.recvbuf = recvbuf;
    request->deferred.recvtype = layout->type;
    request->deferred.recvcount = layout->count;
    request->deferred.recvcounts = kept > 0 ? counts : NULL;
    request->deferred.displs = kept > 0 ? counts + size : NULL;
    request->deferred.packed = (char *) counts + header;
    if (request->compute.consume == NULL) {
        request->finish = unpack_blocks;
    } else {
        request->prepare = unpack_piece;
    }
    params->output = request->deferred.packed;
    return MPI_SUCCESS;
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
 * Output and blocks of the ring; `on_device`: an address of it in a device's memory, or NULL. A
 * callback is to find its piece as the type describes it.
 */
static int place_output(mca_coll_flash_request_t *request, const layout_t *layout, void *recvbuf,
                        flash_op_params_t *params, const void **on_device)
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
    if (packed && place_packed(request, layout, recvbuf, params) != MPI_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    return layout->counts == NULL
               ? MPI_SUCCESS
               : unequal_blocks(request, layout, packed, params->element, &params->schedule.blocks);
}

/*
 * Input of the ring: the send buffer as it is if it is dense; otherwise its packed form, made in
 * the own block's place of the output. `on_device`: of the output, then of the input.
 */
static int place_input(mca_coll_flash_request_t *request, const layout_t *layout,
                       const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                       const void *recvbuf, flash_op_params_t *params, const void **on_device)
{
    int rank = ompi_comm_rank(request->module->comm);
    size_t size, own_bytes = (size_t) block_count(layout, rank) * layout->size;
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
                   : pack((const char *) recvbuf + block_displ(layout, rank) * layout->extent,
                          block_count(layout, rank), layout->type, own);
    }
    read_type(sendtype, &size, &extent, &true_lb);
    *on_device = NULL;
    if (sendcount > 0 && size > 0) {
        const char *first = (const char *) sendbuf + true_lb;
        if (mca_coll_flash_check_buffer(first) != MPI_SUCCESS) {
            return MPI_ERR_BUFFER;
        }
        *on_device = mca_coll_flash_is_on_device(first) ? first : NULL;
        /* The processor would pack the one, or unpack the own block for its callback. */
        if (((*on_device != NULL || device_output) && !is_dense(sendtype, sendcount)) ||
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
    if (is_dense(sendtype, sendcount)) {
        params->input = (const char *) sendbuf + true_lb;
        return MPI_SUCCESS;
    }
    return pack(sendbuf, sendcount, sendtype, own);
}

int mca_coll_flash_start_allgather(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                   const void *sendbuf, flash_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                   flash_counts_t recvcounts, flash_displs_t displs,
                                   MPI_Datatype recvtype, const mca_coll_flash_compute_t *compute,
                                   ompi_request_t **request)
{
    mca_coll_flash_request_t *made = mca_coll_flash_request_new(module, ticket, FLASH_ALLGATHER);
    layout_t layout = {
        .type = recvtype, .count = recvcount, .counts = recvcounts, .displs = displs};
    flash_op_params_t params = {.element = 1};
    const void *device_input, *device_output = NULL;
    int rc;

    if (made == NULL) {
        return MPI_ERR_NO_MEM;
    }
    read_type(recvtype, &layout.size, &layout.extent, &layout.true_lb);
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
                      block_count(&layout, ompi_comm_rank(module->comm)) > 0;

        rc = mca_coll_flash_stage(made, device_input, device_output, false, awaits);
    }
    if (rc != MPI_SUCCESS) {
        return mca_coll_flash_request_refuse(made, rc, request);
    }
    return mca_coll_flash_request_start(made, &params, request);
}
