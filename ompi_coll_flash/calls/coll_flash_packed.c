/*
 * coll_flash_packed.c: sides of calls that move bytes, and the receive side of those whose datatype has
 * gaps.
 *
 * Ranks may describe the same data by different types, as long as the signatures agree, so that the
 * ring sees bytes. A rank whose receive type has gaps receives into packed memory of its own, and
 * unpacks at completion, or each piece before its callback; its neighbours do not notice.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"

#include <stdlib.h>

void mca_coll_flash_read_type(MPI_Datatype type, size_t *size, ptrdiff_t *extent,
                              ptrdiff_t *true_lb)
{
    ptrdiff_t lb, true_extent;

    ompi_datatype_type_size(type, size);
    ompi_datatype_get_extent(type, &lb, extent);
    ompi_datatype_get_true_extent(type, true_lb, &true_extent);
}

mca_coll_flash_layout_t mca_coll_flash_layout_of(MPI_Datatype type, flash_count_t count)
{
    mca_coll_flash_layout_t layout = {.type = type, .count = count};

    mca_coll_flash_read_type(type, &layout.size, &layout.extent, &layout.true_lb);
    return layout;
}

mca_coll_flash_layout_t mca_coll_flash_received_layout(const mca_coll_flash_arguments_t *a)
{
    mca_coll_flash_layout_t layout = mca_coll_flash_layout_of(a->recvtype, a->recvcount);

    layout.counts = a->recvcounts;
    layout.displs = a->displs;
    return layout;
}

mca_coll_flash_layout_t mca_coll_flash_sent_layout(const mca_coll_flash_arguments_t *a)
{
    mca_coll_flash_layout_t layout;

    if (a->sendbuf == MPI_IN_PLACE) {
        return mca_coll_flash_received_layout(a);
    }
    layout = mca_coll_flash_layout_of(a->sendtype, a->sendcount);
    layout.counts = a->sendcounts;
    layout.displs = a->sdispls;
    return layout;
}

mca_coll_flash_layout_t mca_coll_flash_roots_layout(const mca_coll_flash_arguments_t *a)
{
    return a->kind == FLASH_GATHER ? mca_coll_flash_received_layout(a)
                                   : mca_coll_flash_sent_layout(a);
}

bool mca_coll_flash_is_dense(MPI_Datatype type, flash_count_t count)
{
    size_t size;
    ptrdiff_t extent, true_lb;

    mca_coll_flash_read_type(type, &size, &extent, &true_lb);
    return ompi_datatype_is_contiguous_memory_layout(type, count) &&
           (count <= 1 || extent == (ptrdiff_t) size);
}

/* Whether the blocks lie in memory as their packed form does: there are two at least. */
static bool are_packed(const mca_coll_flash_layout_t *layout)
{
    return mca_coll_flash_is_dense(layout->type, 2);
}

static int find_side(const void *first, bool packed, const void **on_device)
{
    if (mca_coll_flash_check_buffer(first) != MPI_SUCCESS) {
        return MPI_ERR_BUFFER;
    }
    *on_device = mca_coll_flash_is_on_device(first) ? first : NULL;
    return *on_device != NULL && !packed ? mca_coll_flash_refuse_gaps() : MPI_SUCCESS;
}

int mca_coll_flash_find_block(const mca_coll_flash_layout_t *layout, const void *buffer,
                              const void **on_device)
{
    return find_side((const char *) buffer + layout->true_lb,
                     mca_coll_flash_is_dense(layout->type, layout->count), on_device);
}

/* Of blocks that are all empty, no buffer is needed. */
static int find_blocks(const mca_coll_flash_layout_t *layout, const void *buffer, int ranks,
                       const void **on_device)
{
    int first = 0;

    *on_device = NULL;
    while (first < ranks && mca_coll_flash_bytes_of_block(layout, first) == 0) {
        first++;
    }
    return first == ranks
               ? MPI_SUCCESS
               : find_side((const char *) mca_coll_flash_block_of(layout, buffer, first) +
                               layout->true_lb,
                           are_packed(layout), on_device);
}

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

int mca_coll_flash_pack(const void *from, flash_count_t count, MPI_Datatype type, char *to)
{
    return convert(true, to, (char *) (uintptr_t) from, count, type);
}

/* One behind another. */
static int pack_blocks(const mca_coll_flash_layout_t *layout, const void *buffer, int ranks,
                       char *packed)
{
    int rc = MPI_SUCCESS;

    for (int rank = 0; rank < ranks && rc == MPI_SUCCESS; rank++) {
        rc = mca_coll_flash_pack(mca_coll_flash_block_of(layout, buffer, rank),
                                 mca_coll_flash_block_count(layout, rank), layout->type, packed);
        packed += mca_coll_flash_bytes_of_block(layout, rank);
    }
    return rc;
}

static int unpack(const char *from, char *to, flash_count_t count, MPI_Datatype type)
{
    return convert(false, (char *) (uintptr_t) from, to, count, type);
}

static mca_coll_flash_layout_t deferred_layout(const mca_coll_flash_request_t *request)
{
    mca_coll_flash_layout_t layout = {.type = request->deferred.recvtype,
                                      .count = request->deferred.recvcount,
                                      .counts = request->deferred.recvcounts,
                                      .displs = request->deferred.displs};

    mca_coll_flash_read_type(layout.type, &layout.size, &layout.extent, &layout.true_lb);
    return layout;
}

/* Where an element of a block belongs in the receive buffer. */
static char *element_of(const mca_coll_flash_request_t *request,
                        const mca_coll_flash_layout_t *layout, int rank, ptrdiff_t element)
{
    return (char *) request->deferred.recvbuf +
           (mca_coll_flash_block_displ(layout, rank) + element) * layout->extent;
}

/* The request's last act where blocks were gathered packed. */
static int unpack_blocks(mca_coll_flash_request_t *request)
{
    int size = ompi_comm_size(request->module->comm), rc = MPI_SUCCESS;
    mca_coll_flash_layout_t layout = deferred_layout(request);
    const char *packed = request->deferred.packed;

    for (int rank = 0; rank < size && rc == MPI_SUCCESS; rank++) {
        flash_count_t count = mca_coll_flash_block_count(&layout, rank);

        rc = unpack(packed, element_of(request, &layout, rank, 0), count, layout.type);
        packed += (size_t) count * layout.size;
    }
    return rc;
}

/* Before the callback for a piece of such a block. */
static int unpack_piece(const mca_coll_flash_request_t *request, const flash_piece_t *piece,
                        void **elements)
{
    mca_coll_flash_layout_t layout = deferred_layout(request);

    *elements = element_of(request, &layout, (int) piece->block, (ptrdiff_t) piece->offset);
    return unpack(piece->data, *elements, (flash_count_t) piece->count, layout.type);
}

/*
 * With the packed blocks, the request keeps the caller's counts and displacements: MPI demands that
 * these outlive the call, but Open MPI's own collectives do not need them to, and mpi4py 3.1 frees
 * those that were lists.
 */
int mca_coll_flash_place_packed(mca_coll_flash_request_t *request,
                                const mca_coll_flash_layout_t *layout, void *recvbuf,
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

static int unpack_one(mca_coll_flash_request_t *request)
{
    return unpack(request->deferred.packed, request->deferred.recvbuf, request->deferred.recvcount,
                  request->deferred.recvtype);
}

int mca_coll_flash_place_packed_block(mca_coll_flash_request_t *request,
                                      const mca_coll_flash_layout_t *layout, void *recvbuf,
                                      flash_op_params_t *params)
{
    request->scratch = malloc((size_t) layout->count * layout->size + 1);
    if (request->scratch == NULL) {
        return MPI_ERR_NO_MEM;
    }
    request->deferred.recvbuf = recvbuf;
    request->deferred.recvtype = layout->type;
    request->deferred.recvcount = layout->count;
    request->deferred.packed = request->scratch;
    request->finish = unpack_one;
    params->output = request->scratch;
    return MPI_SUCCESS;
}

/* ---------------------------------------------------------------- calls of bytes */

int mca_coll_flash_place_sent(mca_coll_flash_request_t *request,
                              const mca_coll_flash_layout_t *layout, const void *buffer,
                              bool copies, flash_op_params_t *params, const void **on_device)
{
    ompi_communicator_t *comm = request->module->comm;
    int ranks = ompi_comm_size(comm);
    int rc = find_blocks(layout, buffer, ranks, on_device);

    params->input = (const char *) buffer + layout->true_lb;
    if (rc != MPI_SUCCESS || (are_packed(layout) && !copies)) {
        return rc;
    }
    request->packed =
        malloc(mca_coll_flash_bytes(layout->count, layout->counts, layout->type, comm) + 1);
    if (request->packed == NULL) {
        return MPI_ERR_NO_MEM;
    }
    params->input = request->packed;
    return *on_device != NULL ? MPI_SUCCESS /* copied when there is what copies */
                              : pack_blocks(layout, buffer, ranks, request->packed);
}

int mca_coll_flash_place_received(mca_coll_flash_request_t *request,
                                  const mca_coll_flash_layout_t *layout, void *buffer,
                                  flash_op_params_t *params, const void **on_device)
{
    int rc = find_blocks(layout, buffer, ompi_comm_size(request->module->comm), on_device);

    params->output = (char *) buffer + layout->true_lb;
    return rc != MPI_SUCCESS || are_packed(layout)
               ? rc
               : mca_coll_flash_place_packed(request, layout, buffer, params);
}

void mca_coll_flash_set_blocks(const mca_coll_flash_layout_t *layout, bool packed, int ranks,
                               size_t *counts, ptrdiff_t *displs)
{
    ptrdiff_t behind = 0;

    for (int rank = 0; rank < ranks; rank++) {
        counts[rank] = mca_coll_flash_bytes_of_block(layout, rank);
        displs[rank] = packed ? behind : mca_coll_flash_block_displ(layout, rank) * layout->extent;
        behind += (ptrdiff_t) counts[rank];
    }
}

int mca_coll_flash_set_side(mca_coll_flash_request_t *request,
                            const mca_coll_flash_layout_t *layout, bool packed,
                            flash_blocks_t *blocks)
{
    int rc = MPI_SUCCESS;

    if (layout->counts == NULL) {
        blocks->count = mca_coll_flash_block_bytes(layout);
        return MPI_SUCCESS;
    }
    rc = mca_coll_flash_request_blocks(request, 1, blocks);
    if (rc == MPI_SUCCESS) {
        mca_coll_flash_set_blocks(layout, packed, ompi_comm_size(request->module->comm),
                                  request->counts, request->displs);
    }
    return rc;
}

int mca_coll_flash_start_bytes(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                               const mca_coll_flash_arguments_t *arguments,
                               mca_coll_flash_place_t place, ompi_request_t **request)
{
    flash_op_params_t params = {.element = 1};
    mca_coll_flash_request_t *made;
    flash_steps_t taken;
    int rc;

    ticket.part = mca_coll_flash_part_of(module, arguments, &taken);
    made = mca_coll_flash_request_new(module, ticket, arguments->kind);
    if (made == NULL) {
        return MPI_ERR_NO_MEM;
    }
    rc = place(made, arguments, &params);
    return rc != MPI_SUCCESS ? mca_coll_flash_request_refuse(made, rc, request)
                             : mca_coll_flash_request_start(made, &params, request);
}
