/*
 * coll_flash_kernel.c: which of a device's kernels does what MPI's operation does.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

static const struct {
    MPI_Op handle;
    flash_gpu_operator_t operation;
} operations[] = {{MPI_SUM, FLASH_GPU_SUM},   {MPI_PROD, FLASH_GPU_PROD}, {MPI_MAX, FLASH_GPU_MAX},
                  {MPI_MIN, FLASH_GPU_MIN},   {MPI_LAND, FLASH_GPU_LAND}, {MPI_LOR, FLASH_GPU_LOR},
                  {MPI_LXOR, FLASH_GPU_LXOR}, {MPI_BAND, FLASH_GPU_BAND}, {MPI_BOR, FLASH_GPU_BOR},
                  {MPI_BXOR, FLASH_GPU_BXOR}};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* By their size in bytes. C's bool is 0 or 1, and takes MPI's logical operations alone. */
static const MPI_Datatype signed_types[] = {
    MPI_SIGNED_CHAR, MPI_SHORT,   MPI_INT,     MPI_LONG, MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
    MPI_INT32_T,     MPI_INT64_T, MPI_INTEGER, MPI_AINT, MPI_COUNT,     MPI_OFFSET};
static const MPI_Datatype unsigned_types[] = {
    MPI_UNSIGNED_CHAR,      MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
    MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,        MPI_UINT16_T, MPI_UINT32_T,
    MPI_UINT64_T,           MPI_BYTE,           MPI_C_BOOL};
static const MPI_Datatype floating_types[] = {MPI_FLOAT, MPI_DOUBLE, MPI_REAL,
                                              MPI_DOUBLE_PRECISION};

static bool is_among(MPI_Datatype type, const MPI_Datatype *types, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        if (types[k] == type) {
            return true;
        }
    }
    return false;
}

static bool find_type(MPI_Datatype datatype, flash_gpu_type_t *type)
{
    size_t size;

    ompi_datatype_type_size(datatype, &size);
    if (is_among(datatype, floating_types, COUNT_OF(floating_types))) {
        *type = size == 4 ? FLASH_GPU_F32 : FLASH_GPU_F64;
        return size == 4 || size == 8;
    }
    if (is_among(datatype, signed_types, COUNT_OF(signed_types))) {
        *type = size == 1   ? FLASH_GPU_I8
                : size == 2 ? FLASH_GPU_I16
                : size == 4 ? FLASH_GPU_I32
                            : FLASH_GPU_I64;
        return true;
    }
    *type = size == 1   ? FLASH_GPU_U8
            : size == 2 ? FLASH_GPU_U16
            : size == 4 ? FLASH_GPU_U32
                        : FLASH_GPU_U64;
    return is_among(datatype, unsigned_types, COUNT_OF(unsigned_types));
}

bool mca_coll_flash_kernel_of(MPI_Op op, MPI_Datatype datatype, flash_gpu_operator_t *operation,
                              flash_gpu_type_t *type)
{
    for (size_t k = 0; k < COUNT_OF(operations); k++) {
        if (operations[k].handle == op) {
            *operation = operations[k].operation;
            return find_type(datatype, type);
        }
    }
    return mca_coll_flash_float16_find(op, operation, type);
}
