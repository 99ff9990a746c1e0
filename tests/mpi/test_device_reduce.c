/*
 * test_device_reduce.c: all operations on all types, in the memory of a device, whether it adds by
 * itself or the host does.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"
#include "reduction.h"

/* MPI 3.1, section 5.9.2: ten operations on C's 9 signed and 9 unsigned integers, seven on INTEGER,
   AINT, COUNT and OFFSET, three on BYTE and on C_BOOL, four on C's and Fortran's two floating types
   each. Those on other types there are no kernels for. */
enum { PAIRS_OF_KERNELS = 10 * (9 + 9) + 7 * 4 + 3 * 2 + 4 * 4 };

static void check_sums(const reduction_t *reduction, const unsigned char *got, int count)
{
    _Alignas(16) unsigned char wanted[REDUCTION_MOST_BYTES] = {0};

    for (int k = 0; k < count; k++) {
        reduction->result(wanted, world_size, (size_t) (world_rank * count + k), reduction->op);
        if (!check(reduction->equal(wanted, got + (size_t) k * reduction->extent),
                   "%s, %s: element %d of %d is wrong", reduction->name, reduction->op_name, k,
                   count)) {
            return;
        }
    }
}

static void reduce(const reduction_t *reduction, int count)
{
    size_t own = (size_t) count * reduction->extent, all = own * (size_t) world_size;
    unsigned char *operands = get_memory(all + 1), *result = get_memory(own + 1);
    buffer_t from = buffer_make(IN_DEVICE, all), to = buffer_make(IN_DEVICE, own);
    MPI_Request request;

    memset(operands, 0, all);
    for (int k = 0; k < count * world_size; k++) {
        reduction->operand(operands + (size_t) k * reduction->extent, world_rank, (size_t) k,
                           reduction->op);
    }
    buffer_write(&from, operands);
    MPI_Ireduce_scatter_block(from.data, to.data, count, reduction->type, reduction->op,
                              MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    buffer_read(&to, result);
    check_sums(reduction, result, count);
    check(buffer_free(&from) && buffer_free(&to), "%s, %s: wrote around a buffer", reduction->name,
          reduction->op_name);
    free(operands);
    free(result);
}

/* Pairs of an operation and a type that the device added itself. */
static int reduce_all(void)
{
    static const int counts[] = {1, 77, 3001};
    size_t count;
    const reduction_t *list = reductions(&count);
    int by_device = 0;

    for (size_t k = 0; k < count; k++) {
        unsigned long launches = device_launches();

        for (size_t i = 0; i < LENGTH(counts); i++) {
            reduce(&list[k], counts[i]);
        }
        by_device += device_launches() > launches;
    }
    nothing_left();
    return by_device;
}

static void by_device(void)
{
    int found = reduce_all();

    check(!device_is_standin() || found == PAIRS_OF_KERNELS, "%d pairs have been added there",
          found);
}

static void by_host(void)
{
    check(reduce_all() == 0, "the device has added");
}

DEVICE_PROGRAM(test_device_reduce, {"by_device", by_device}, {"by_host", by_host});
