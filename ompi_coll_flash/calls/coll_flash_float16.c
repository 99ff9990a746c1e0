/*
 * coll_flash_float16.c: floating-point numbers of 16 bits, as MPI's datatypes, and operations on
 * them.
 *
 * MPI 3.1 has neither. The types are made when somebody asks for one, and freed with MPI_COMM_SELF
 * in MPI_Finalize (section 8.7.1). To MPI the operations are a user's, which the plain collectives
 * take; they are flash's own functions all the same, which any thread may run.
 *
 * Shared between threads: `made` and what it stands for are written under `mutex`, by whoever asks
 * first; an operation on a type is asked for by threads that have its handle.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

#include <pthread.h>
#include <string.h>

enum { BF16, FP16, TYPES };
enum { SUM, PROD, MAX, MIN, OPERATIONS };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool made;
static MPI_Datatype types[TYPES];
static MPI_Op operations[TYPES][OPERATIONS];

/* ------------------------------------------------------------------ arithmetic */

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float widen_bf16(uint16_t x)
{
    return float_of((uint32_t) x << 16);
}

/* To the nearest, of two to the even one; a carry goes on into the exponent, up to infinity. */
static uint16_t narrow_bf16(float x)
{
    uint32_t bits = bits_of(x);

    if (x != x) {
        return (uint16_t) (bits >> 16 | 0x40); /* stays a NAN */
    }
    return (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen_fp16(uint16_t x)
{
    uint32_t sign = (uint32_t) (x & 0x8000) << 16, exponent = x >> 10 & 31, fraction = x & 0x3ff;

    if (exponent == 0) {
        return float_of(sign | bits_of((float) fraction * 0x1p-24f));
    }
    exponent = exponent == 31 ? 255 : exponent - 15 + 127;
    return float_of(sign | exponent << 23 | fraction << 13);
}

static uint16_t narrow_fp16(float x)
{
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;

    if (x != x) {
        return (uint16_t) (sign | 0x7e00);
    }
    if (size >= bits_of(65520.0f)) { /* half way from the largest number to the next */
        return (uint16_t) (sign | 0x7c00);
    }
    if (size < bits_of(0x1p-14f)) { /* a multiple of 2^-24: as rounded next to 0.5 */
        return (uint16_t) (sign | (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)));
    }
    return (uint16_t) (sign | ((size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13));
}

/* Each result is made in single precision and rounded once. A NAN is no maximum but by luck, as
 * with MPI's. */
#define FLOAT16(name, type, expression)                                                \
    static void name##_##type(void *in, void *inout, int *count, MPI_Datatype *unused) \
    {                                                                                  \
        const uint16_t *from = in;                                                     \
        uint16_t *to = inout;                                                          \
                                                                                       \
        (void) unused;                                                                 \
        for (int k = 0; k < *count; k++) {                                             \
            float a = widen_##type(from[k]), b = widen_##type(to[k]);                  \
                                                                                       \
            to[k] = narrow_##type(expression);                                         \
        }                                                                              \
    }

#define FLOAT16_OF(type)              \
    FLOAT16(sum, type, a + b)         \
    FLOAT16(prod, type, a *b)         \
    FLOAT16(max, type, a > b ? a : b) \
    FLOAT16(min, type, a < b ? a : b)

FLOAT16_OF(bf16)
FLOAT16_OF(fp16)

/* Sums and products of a pairwise reduce-scatter: in single precision, until all is added. */
#define WIDE_PASS(name, from_type, to_type, statement)                       \
    static int name(void *unused, const void *in, void *inout, size_t count) \
    {                                                                        \
        const from_type *from = in;                                          \
        to_type *to = inout;                                                 \
                                                                             \
        (void) unused;                                                       \
        for (size_t k = 0; k < count; k++) {                                 \
            statement;                                                       \
        }                                                                    \
        return MPI_SUCCESS;                                                  \
    }

#define WIDE(type)                                                               \
    WIDE_PASS(begin_##type, uint16_t, float, to[k] = widen_##type(from[k]))      \
    WIDE_PASS(wide_sum_##type, uint16_t, float, to[k] += widen_##type(from[k]))  \
    WIDE_PASS(wide_prod_##type, uint16_t, float, to[k] *= widen_##type(from[k])) \
    WIDE_PASS(end_##type, float, uint16_t, to[k] = narrow_##type(from[k]))

WIDE(bf16)
WIDE(fp16)

static const struct {
    flash_combine_fn *begin, *end, *combine[OPERATIONS]; /* NULL: rounds nothing */
} wide[TYPES] = {[BF16] = {.begin = begin_bf16,
                           .end = end_bf16,
                           .combine = {[SUM] = wide_sum_bf16, [PROD] = wide_prod_bf16}},
                 [FP16] = {.begin = begin_fp16,
                           .end = end_fp16,
                           .combine = {[SUM] = wide_sum_fp16, [PROD] = wide_prod_fp16}}};

static MPI_User_function *const functions[TYPES][OPERATIONS] = {
    [BF16] = {[SUM] = sum_bf16, [PROD] = prod_bf16, [MAX] = max_bf16, [MIN] = min_bf16},
    [FP16] = {[SUM] = sum_fp16, [PROD] = prod_fp16, [MAX] = max_fp16, [MIN] = min_fp16}};

/* -------------------------------------------------------------- making, freeing */

static int free_all(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void) comm, (void) keyval, (void) value, (void) state;
    for (int type = 0; type < TYPES; type++) {
        PMPI_Type_free(&types[type]);
        for (int operation = 0; operation < OPERATIONS; operation++) {
            PMPI_Op_free(&operations[type][operation]);
        }
    }
    return MPI_SUCCESS;
}

/* The first attribute that MPI_Finalize deletes. */
static int free_at_the_end(void)
{
    int keyval;
    int rc = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_all, &keyval, NULL);

    if (rc == MPI_SUCCESS) {
        rc = PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
        PMPI_Comm_free_keyval(&keyval);
    }
    return rc;
}

static int make_type(int type, const char *name)
{
    int rc = PMPI_Type_dup(MPI_UINT16_T, &types[type]);

    for (int operation = 0; operation < OPERATIONS && rc == MPI_SUCCESS; operation++) {
        rc = PMPI_Op_create(functions[type][operation], 1, &operations[type][operation]);
    }
    return rc == MPI_SUCCESS ? PMPI_Type_set_name(types[type], name) : rc;
}

int mca_coll_flash_float16_type(int which, MPI_Datatype *type)
{
    int rc = MPI_SUCCESS;

    if (which != MPIX_FLASH_BF16 && which != MPIX_FLASH_FP16) {
        return MPI_ERR_ARG;
    }
    pthread_mutex_lock(&mutex);
    if (!made) {
        rc = make_type(BF16, "MPIX_FLASH_BF16");
        rc = rc == MPI_SUCCESS ? make_type(FP16, "MPIX_FLASH_FP16") : rc;
        rc = rc == MPI_SUCCESS ? free_at_the_end() : rc;
        made = rc == MPI_SUCCESS;
    }
    *type = which == MPIX_FLASH_BF16 ? types[BF16] : types[FP16];
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* ------------------------------------------------------------------- looking up */

/* TYPES if it is none of them. */
static int find_type(MPI_Datatype datatype)
{
    int type = 0;

    while (type < TYPES && (types[type] == NULL || types[type] != datatype)) {
        type++;
    }
    return type;
}

int mca_coll_flash_float16_op(MPI_Datatype datatype, MPI_Op *op)
{
    const MPI_Op known[OPERATIONS] = {
        [SUM] = MPI_SUM, [PROD] = MPI_PROD, [MAX] = MPI_MAX, [MIN] = MPI_MIN};
    int type = find_type(datatype);

    if (type == TYPES || *op == NULL || *op == MPI_OP_NULL || !ompi_op_is_intrinsic(*op)) {
        return MPI_SUCCESS;
    }
    for (int operation = 0; operation < OPERATIONS; operation++) {
        if (known[operation] == *op) {
            *op = operations[type][operation];
            return MPI_SUCCESS;
        }
    }
    return MPI_ERR_OP;
}

/* An operation's number among all of both types, or that of all if it is none of them. */
static int find_operation(MPI_Op op)
{
    int k = 0;

    while (k < TYPES * OPERATIONS &&
           (op == NULL || operations[k / OPERATIONS][k % OPERATIONS] != op)) {
        k++;
    }
    return k;
}

void mca_coll_flash_float16_widen(MPI_Op op, flash_op_params_t *params)
{
    int k = ompi_op_is_intrinsic(op) ? TYPES * OPERATIONS : find_operation(op);
    int type = k / OPERATIONS;

    if (type < TYPES && wide[type].combine[k % OPERATIONS] != NULL) {
        params->wide = sizeof(float);
        params->widen = wide[type].begin;
        params->narrow = wide[type].end;
        params->combine = wide[type].combine[k % OPERATIONS];
    }
}

bool mca_coll_flash_float16_find(MPI_Op op, flash_gpu_operator_t *operation, flash_gpu_type_t *type)
{
    static const flash_gpu_operator_t gpu_operators[OPERATIONS] = {[SUM] = FLASH_GPU_SUM,
                                                                   [PROD] = FLASH_GPU_PROD,
                                                                   [MAX] = FLASH_GPU_MAX,
                                                                   [MIN] = FLASH_GPU_MIN};

    int k = find_operation(op);

    if (k == TYPES * OPERATIONS) {
        return false;
    }
    *operation = gpu_operators[k % OPERATIONS];
    *type = k / OPERATIONS == BF16 ? FLASH_GPU_BF16 : FLASH_GPU_F16;
    return true;
}
