/*
 * flash_explain.c: which algorithm serves a call, and what each costs: for flash_info --explain.
 *
 * flash_explain OP BYTES RANKS [node]: OP is allgather, reduce_scatter, allreduce, alltoall, bcast,
 * reduce, gather or scatter, or blocking_ and one of the first five, BYTES the size of all blocks
 * together, or of the vector, with K, M or G behind it or not; `node`: the ranks share one.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "bench_parse.h"
#include "keep_libraries.h"

int main(int argc, char **argv)
{
    char text[1024];
    int rank, ranks, error = MPI_ERR_ARG, node = argc == 5 && strcmp(argv[4], "node") == 0;
    double bytes;
    bool right = (argc == 4 || node) && bench_parse_number(argv[2], 1024, 0, 0x1p50, &bytes) &&
                 bench_parse_int(argv[3], 2, INT_MAX, &ranks);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (right) {
        error = MPIX_Flash_explain(argv[1], (MPI_Count) bytes, ranks, node, text, sizeof(text));
    }
    if (error == MPI_SUCCESS && rank == 0) {
        printf("%s of %.0f bytes in all, %d ranks on %s\n%s", argv[1], bytes, ranks,
               node ? "one node" : "several nodes", text);
    } else if (rank == 0) {
        fprintf(stderr,
                "usage: flash_explain [blocking_]allgather|reduce_scatter|allreduce|alltoall|bcast|"
                "reduce|gather|scatter BYTES[K|M|G] RANKS [node], of two ranks or more\n");
    }
    MPI_Finalize();
    return error == MPI_SUCCESS ? 0 : 2;
}
