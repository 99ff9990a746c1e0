#!/usr/bin/env bash
# MPI's blocking calls by flash: results, errors, what is counted, what Open MPI calls itself, and which calls flash
# leaves to Open MPI.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# The programs of the non-blocking calls, which block here.
block=(-x FLASH_TEST_BLOCKING=1 --mca coll_flash_blocking yes)
reductions=(operations big same_bits user_operations)
unequal=(counts types signatures big many communicators)

# Rings for the smallest operations, too.
algorithm=ring
options "${block[@]}"
mpi_on_many -- test_allgather
mpi_on_many -- test_reduce_scatter "${reductions[@]}" shifted_type
mpi_on_many -- test_allreduce "${reductions[@]}"
mpi_on_many -- test_alltoall
mpi_on_many -- test_alltoallv "${unequal[@]}"
mpi_on_many -- test_bcast roots types signatures big many handles_gone nothing
mpi 3 -- test_bcast no_buffer
mpi 3 -- test_alltoallv no_buffer
mpi 3 --mca coll_flash_segment_bytes 4096 -- test_allreduce "${reductions[@]}"
mpi 3 --mca coll_flash_progress off -- test_reduce_scatter "${reductions[@]}"
long mpi 4 --mca coll_flash_progress off -- test_allgather
for np in 2 3; do
    mpi "$np" -- test_sizes plain own_block
    mpi "$np" -- test_empty_types
    mpi "$np" -- test_threads several
done
own_job mpi 4 -- random_ops --seed=20260424 --operations=300
long own_job mpi 3 -- random_ops --seed=20260424 --operations=3000

# The other algorithms: all that fit by shared memory; recursive doubling serves none. Where some calls are Open MPI's,
# all ranks have the same types: MPI_Allgatherv of Open MPI 4.1.4 chooses its algorithm by the size of a rank's own send
# type, and hangs where these differ.
algorithm=pairwise
mpi 3 -- test_reduce_scatter "${reductions[@]}"
long mpi 5 -- test_reduce_scatter "${reductions[@]}"
algorithm=shm shm=auto
mpi 3 -- test_allgather
mpi 3 -- test_reduce_scatter "${reductions[@]}"
long mpi 4 -- test_allgather
algorithm=auto shm=no

# By the costs of blocking calls: each algorithm has some sizes.
options "${block[@]:0:2}" --mca coll_flash_costs "$costs_folder/blocking"
shm=auto
by_costs() { # NP [CASE]...: of all-to-alls with counts
    mpi "$1" -- test_allgather counts types
    mpi "$1" -- test_reduce_scatter "${reductions[@]}"
    mpi "$1" -- test_allreduce "${reductions[@]}"
    mpi "$1" -- test_alltoall counts big
    mpi "$1" -- test_alltoallv "${unequal[@]}" "${@:2}"
    mpi "$1" --mca coll_flash_setup call -- test_alltoallv communicators no_buffer
    mpi "$1" -- test_bcast roots big
}
long by_costs 2
by_costs 3 paths # which has calls that are shared; two ranks, on which little is left to share, have none
shm=no
mpi 3 --mca coll_flash_progress off -- test_alltoallv many communicators

# What is counted; order; errors; what Open MPI calls itself.
options
outcomes() { # NP
    mpi "$1" --mca coll_flash_algorithm ring --mca coll_flash_blocking yes -- test_blocking served among_others \
        beside_idup refused refused_often communicators window file between_groups alone
    mpi "$1" --mca coll_flash_algorithm ring -- test_blocking passed_on key among_others
}
outcomes 2
outcomes 3
long outcomes 5
mpi 2 --mca coll_flash_algorithm fallback --mca coll_flash_blocking yes -- test_blocking passed_on
mpi 3 --mca coll_flash_algorithm ring --mca coll_flash_blocking no -- test_blocking passed_on between_groups alone
mpi 1 --mca coll_flash_blocking yes --mca coll_flash_algorithm ring -- test_blocking file alone
# Communicators that are made without keys, too; by the costs, where another algorithm is named.
own_job mpi 3 --mca coll_flash_algorithm ring --mca coll_flash_blocking yes -- test_blocking communicators beside_idup \
    window file
algorithm=shm shm=auto
own_job mpi 2 --mca coll_flash_blocking yes -- test_blocking communicators beside_idup window file
algorithm=auto shm=no
mpi 2 --mca coll_flash_algorithm recdbl --mca coll_flash_costs "$costs_folder/blocking" -- test_blocking served
# Recursive doubling serves no blocking call, whose messages MPI_Comm_idup's could be taken for.
mpi 2 --mca coll_flash_algorithm recdbl --mca coll_flash_blocking yes -- test_blocking beside_idup passed_on
mpi 3 --mca coll_flash_algorithm fallback --mca coll_flash_costs "$costs_folder/blocking" -- test_blocking passed_on
mpi 3 --mca coll_flash_blocking no --mca coll_flash_costs "$costs_folder/blocking" -- test_blocking passed_on

# ------------------------------------------------------------------------ what is told

call='Allgather of 72000 bytes on communicator [0-9]*'
point 'coll_flash_verbose 2: a blocking call that flash serves' says 3 "$call: ring$" 3 --mca coll_flash_verbose 2 \
    --mca coll_flash_costs "$costs_folder/blocking" -- test_blocking served
point 'coll_flash_verbose 2: one that flash serves a part of' \
    says + 'Alltoallv of [0-9]* bytes on communicator 0: ring ([0-9]* bytes of short blocks fall back)' 3 \
    --mca coll_flash_verbose 2 -x FLASH_TEST_BLOCKING=1 --mca coll_flash_costs "$costs_folder/blocking" -- \
    test_alltoallv paths
point 'coll_flash_verbose 2: nothing of one that flash does not serve' says 0 ' \(Allg\|Allr\|Reduce_\).* of .* bytes' 3 \
    --mca coll_flash_verbose 2 -- test_blocking passed_on
# A buffer in device memory that flash cannot move may be one that Open MPI can.
costs= point 'hosts with GPUs: the built-in costs choose none' says 2 'serves this job .*, blocking no,' 2 \
    -x FLASH_TEST_GPU=1 --mca coll_flash_verbose 1 -- test_blocking passed_on
point 'hosts with GPUs: a file of costs does' says 3 "$call: ring$" 3 -x FLASH_TEST_GPU=1 --mca coll_flash_verbose 2 \
    --mca coll_flash_costs "$costs_folder/blocking" -- test_blocking served
costs= point 'hosts without: they choose some' says 2 'serves this job .*, blocking auto,' 2 --mca coll_flash_verbose 1 \
    -- test_blocking passed_on
differ() { # VALUE OTHER HELD CASE
    explains choices-differ says 1 'coll_flash_blocking differs' 3 --mca coll_flash_verbose 1 \
        --mca coll_flash_algorithm ring --mca coll_flash_blocking "$1" -- \
        "${on_rank[@]}" 1 OMPI_MCA_coll_flash_blocking="$2" "$programs/flash_tests" test_blocking "$4" &&
        holds 3 "serves this job .*, blocking $3," && holds 1 "All processes use $3"
}
point 'coll_flash_blocking yes, and no on one rank: said, and all use no' differ yes no no passed_on
point 'coll_flash_blocking auto, and yes on one rank: said, and all use auto' differ auto yes auto passed_on
point 'a value of the key that cannot be: said, with cause and remedy' explains info-ignored \
    says 2 'Value:  never$' 2 -- test_blocking key

explains_as() { # TEXT MPIRUN-OPTION... -- ARGUMENT...
    local text=$1
    shift
    local given=()
    while [[ $1 != -- ]]; do
        given+=("$1")
        shift
    done
    says 1 "$text" 2 "${given[@]}" -- "$top_builddir/mpi_bench/flash_explain" "${@:2}"
}
point 'flash_explain: a blocking call by its costs' \
    explains_as '^ring .* <- chosen' --mca coll_flash_costs "$costs_folder/blocking" -- blocking_allreduce 1M 4 node
point 'flash_explain: another algorithm that is named counts for nothing' \
    explains_as '^ring .* <- chosen' --mca coll_flash_costs "$costs_folder/blocking" \
    --mca coll_flash_algorithm recdbl -- blocking_allgather 1M 2 node
costs= point 'built-in costs: a reduce-scatter of large blocks between nodes' \
    explains_as '^ring$' -- blocking_reduce_scatter 256M 4
costs= point 'built-in costs: one of blocks of 256 KiB' explains_as '^pairwise (the ring costs more)$' -- \
    blocking_reduce_scatter 1M 4
costs= point 'built-in costs: one of small blocks' explains_as '^falls back (the ring costs more)$' -- \
    blocking_reduce_scatter 64K 4
costs= point 'built-in costs: within a node' explains_as '^falls back (the ring has no cost)$' -- \
    blocking_reduce_scatter 256M 4 node
point 'flash_explain: one without costs' explains_as '^falls back (the ring has no cost)' -- blocking_allgather 1M 4 node
point 'flash_explain: coll_flash_blocking no' \
    explains_as '^falls back (see blocking)' --mca coll_flash_blocking no \
    --mca coll_flash_costs "$costs_folder/blocking" -- blocking_allgather 1M 4 node

# The test itself, with Open MPI's own.
select_coll ^flash
mpi 3 -- test_blocking among_others communicators window file between_groups alone

plan
