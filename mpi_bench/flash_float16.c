/*
 * flash_float16.c: how far 16-bit sums are from the right ones, by algorithm and number of ranks.
 *
 * Reduce-scatters on 2, 3, 4 ... of this job's ranks, against sums in double precision of the same
 * 16-bit numbers: by a plain ring of MPI_Sendrecv that adds in 16 bits, by flash's ring, by its
 * pairwise algorithm, and by MPI_Reduce_scatter_block with a user's operation. Beside them, the
 * nearest 16-bit number: nothing that has 16 bits is closer.
 *
 *   mpirun -np 64 --mca coll flash flash_float16 [ELEMENTS OF A BLOCK]
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpix_flash.h>

#include "bench_parse.h"
#include "keep_libraries.h"

enum { PLAIN, RING, PAIRWISE, OWN, NEAREST, WAYS };

/* A format: bits of the significand, and where exponents end. */
typedef struct format {
    const char *name;
    int type; /* of MPIX_Flash_type() */
    int digits, least;
} format_t;

static const format_t formats[] = {{"bf16", MPIX_FLASH_BF16, 8, -133},
                                   {"fp16", MPIX_FLASH_FP16, 11, -24}};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

typedef struct job {
    MPI_Comm comm;
    int rank, size, count;
    const format_t *format;
    MPI_Datatype type;
    MPI_Op add;        /* in 16 bits, for MPI's own */
    double from;       /* numbers are between this and 1 */
    uint16_t *input;   /* a block for each rank */
    uint16_t *output;  /* a block */
    uint16_t *arrived; /* likewise */
} job_t;

static const format_t *adding; /* MPI_User_function has no argument for it */

static void die(const char *what)
{
    fprintf(stderr, "flash_float16: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    abort();
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    if (memory == NULL) {
        die("out of memory");
    }
    return memory;
}

/* ------------------------------------------------------------------- arithmetic */

static double decode(const format_t *f, uint16_t x)
{
    int fraction_bits = f->digits - 1, fraction = x & ((1 << fraction_bits) - 1);
    int exponent = (x & 0x7fff) >> fraction_bits;
    double size = exponent == 0 ? ldexp(fraction, f->least)
                                : ldexp(fraction + (1 << fraction_bits), f->least + exponent - 1);

    return (x & 0x8000) != 0 ? -size : size;
}

/* To the nearest, of two to the even one. Not of what is too large. */
static uint16_t encode(const format_t *f, double x)
{
    int exponent, unit;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double fraction;

    if (x == 0) {
        return sign;
    }
    frexp(x, &exponent);
    unit = exponent - f->digits > f->least ? exponent - f->digits : f->least;
    fraction = nearbyint(ldexp(fabs(x), -unit)); /* 2^digits carries into the exponent */
    return (uint16_t) (sign + ((unit - f->least) << (f->digits - 1)) + (int) fraction);
}

static void add_float16(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const uint16_t *from = in;
    uint16_t *to = inout;

    (void) type;
    for (int k = 0; k < *count; k++) {
        to[k] = encode(adding, decode(adding, from[k]) + decode(adding, to[k]));
    }
}

/* What a rank contributes to an element: the same in each run. */
static uint16_t number(const job_t *job, int rank, int index)
{
    uint32_t x = (uint32_t) rank * 0x9e3779b1u ^ (uint32_t) index * 0x85ebca6bu;

    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    x ^= x >> 15;
    return encode(job->format, job->from + (1 - job->from) * (x >> 8) * 0x1p-24);
}

static double exact(const job_t *job, int index)
{
    double sum = 0;

    for (int rank = 0; rank < job->size; rank++) {
        sum += decode(job->format, number(job, rank, job->rank * job->count + index));
    }
    return sum;
}

/* -------------------------------------------------------------------- the ways */

static int produce(const MPIX_Flash_block *block, void *arg)
{
    const job_t *job = arg;

    memcpy(block->data, job->input + block->displ + block->offset,
           (size_t) block->count * sizeof(*job->input));
    return MPI_SUCCESS;
}

static void by_flash(job_t *job, const char *algorithm)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_flash_algorithm", algorithm);
    MPI_Comm_set_info(job->comm, info);
    MPI_Info_free(&info);
    MPIX_Reduce_scatter_block_compute(produce, job, NULL, job->output, job->count, job->type,
                                      MPI_SUM, job->comm);
}

/* As flash's ring, whose steps flash_schedule.h has. */
static void by_plain_ring(job_t *job)
{
    int right = (job->rank + 1) % job->size, left = (job->rank + job->size - 1) % job->size;

    memcpy(job->output, job->input + left * job->count, (size_t) job->count * sizeof(*job->output));
    for (int step = 1; step < job->size; step++) {
        int block = (job->rank + 2 * job->size - 1 - step) % job->size;

        MPI_Sendrecv(job->output, job->count, job->type, right, 0, job->arrived, job->count,
                     job->type, left, 0, job->comm, MPI_STATUS_IGNORE);
        memcpy(job->output, job->input + block * job->count,
               (size_t) job->count * sizeof(*job->output));
        add_float16(job->arrived, job->output, &job->count, &job->type);
    }
}

static void reduce(job_t *job, int way)
{
    switch (way) {
    case PLAIN:
        by_plain_ring(job);
        break;
    case RING:
        by_flash(job, "ring");
        break;
    case PAIRWISE:
        by_flash(job, "pairwise");
        break;
    case OWN:
        MPI_Reduce_scatter_block(job->input, job->output, job->count, job->type, job->add,
                                 job->comm);
        break;
    default:
        for (int k = 0; k < job->count; k++) {
            job->output[k] = encode(job->format, exact(job, k));
        }
    }
}

/* Root mean square of the errors, as a part of that of the sums. */
static double error_of(job_t *job, int way)
{
    double squares[2] = {0, 0}; /* of errors, of sums */

    memset(job->output, 0xff, (size_t) job->count * sizeof(*job->output));
    reduce(job, way);
    for (int k = 0; k < job->count; k++) {
        double right = exact(job, k), error = decode(job->format, job->output[k]) - right;

        squares[0] += error * error;
        squares[1] += right * right;
    }
    MPI_Allreduce(MPI_IN_PLACE, squares, 2, MPI_DOUBLE, MPI_SUM, job->comm);
    return sqrt(squares[0] / squares[1]);
}

static void measure(job_t *job)
{
    double errors[WAYS];

    for (int block = 0; block < job->size; block++) {
        for (int k = 0; k < job->count; k++) {
            job->input[block * job->count + k] = number(job, job->rank, block * job->count + k);
        }
    }
    for (int way = 0; way < WAYS; way++) {
        errors[way] = error_of(job, way);
    }
    if (job->rank == 0) {
        printf("| %s | %g to 1 | %d |", job->format->name, job->from, job->size);
        for (int way = 0; way < WAYS; way++) {
            printf(" %.3f |", 1e3 * errors[way]);
        }
        printf("\n");
        fflush(stdout);
    }
}

/* ------------------------------------------------------------------- the program */

static void measure_on(int ranks, int count, MPI_Op add)
{
    job_t job = {.count = count, .add = add};
    int world_rank, active;

    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < ranks ? 0 : MPI_UNDEFINED, 0, &job.comm);
    if (job.comm == MPI_COMM_NULL) {
        return;
    }
    MPI_Comm_rank(job.comm, &job.rank);
    MPI_Comm_size(job.comm, &job.size);
    MPIX_Flash_active(job.comm, &active);
    if (!active) {
        die("flash does not serve these ranks: is it selected (--mca coll flash)?");
    }
    job.input = allocate((size_t) job.size * (size_t) count, sizeof(*job.input));
    job.output = allocate((size_t) count, sizeof(*job.output));
    job.arrived = allocate((size_t) count, sizeof(*job.arrived));
    for (int k = 0; k < 2 * FORMATS; k++) {
        job.format = adding = &formats[k / 2];
        job.from = k % 2 == 0 ? -1 : 0;
        MPIX_Flash_type(job.format->type, &job.type);
        measure(&job);
    }
    free(job.input);
    free(job.output);
    free(job.arrived);
    MPI_Comm_free(&job.comm);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {2, 3, 4, 8, 16, 32, 64};
    int size, rank, count = 4096;
    MPI_Op add;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 2 || (argc == 2 && !bench_parse_int(argv[1], 1, 1 << 20, &count))) {
        if (rank == 0) {
            fprintf(stderr, "usage: flash_float16 [ELEMENTS OF A BLOCK, 1 to 1048576]\n");
        }
        MPI_Finalize();
        return 2;
    }
    MPI_Op_create(add_float16, 1, &add);
    if (rank == 0) {
        printf("Relative error of 16-bit sums, in thousandths, against double precision.\n\n"
               "| type | numbers | ranks | plain 16-bit ring | flash, ring | flash, pairwise | "
               "MPI_Reduce_scatter_block | nearest |\n"
               "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    }
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        if (sizes[k] <= size) {
            measure_on(sizes[k], count, add);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Op_free(&add);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
