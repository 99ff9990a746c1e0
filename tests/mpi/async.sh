#!/usr/bin/env bash
# Data moves without MPI calls, by a thread that sleeps when there is nothing to do, and that counts.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for np in 1 2 3 5; do
    mpi "$np" --mca coll_flash_progress on -- test_async
done
mpi 2 -- test_async
mpi 2 --mca coll_flash_progress on -x UCX_FLASH_TLS=tcp -- test_async
mpi 3 --mca coll_flash_progress off -x FLASH_TEST_THREAD=0 -- test_async
# What is too small for a ring, too, though the thread is not woken for it.
for np in 2 3; do
    mpi "$np" --mca coll_flash_costs "$costs_folder/pairwise" -- test_async reduce_scatter idle
done
# Segments as short as what need not be acknowledged.
for tls in all tcp; do
    mpi 3 --mca coll_flash_segment_bytes 4096 -x UCX_FLASH_TLS=$tls -- test_async late
done
# An event that UCX misses: the thread looks without one.
for tls in all tcp; do
    point "np 2, UCX_FLASH_TLS=$tls: without events" deaf 2 -x UCX_FLASH_TLS=$tls -- test_async allgather reduce_scatter
done
# No operation, no thread.
own_job mpi 2 --mca coll_flash_progress on -x FLASH_TEST_THREAD=0 -- test_async idle

# It runs where no rank is bound, if the launcher may run there, too, and Slurm says that all of that is the job's.
bound() { # CASE COMMAND...: mpirun under COMMAND, each rank under "${under_rank[@]}"
    printf '#!/bin/sh\nexec %s "$@"\n' "${*:2} $(command -v "$MPIRUN")" >"$scratch/bound"
    chmod +x "$scratch/bound"
    MPIRUN=$scratch/bound run 2 --mca coll_flash_algorithm ring --mca coll_flash_progress on --bind-to none -- \
        "$(command -v taskset)" -c "$first" "${under_rank[@]}" "$programs/flash_tests" test_affinity "$1"
}
under_rank=()
first=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
if (($(nproc) < 2)); then
    skip 'np 2, bound: where the thread runs' 'this machine has one hardware thread'
else
    point 'np 2, bound: the thread runs where no rank is' bound outside env -u SLURM_CPUS_ON_NODE
    point 'np 2, bound, the launcher too: the thread stays there' bound inside env -u SLURM_CPUS_ON_NODE taskset -c "$first"
    point 'np 2, bound, in a part of a node of Slurm: the thread stays' bound inside env SLURM_CPUS_ON_NODE=1
    point 'np 2, bound, with all of a node of Slurm: the thread runs where no rank is' \
        bound outside env SLURM_CPUS_ON_NODE="$(nproc --all)"
    # shellcheck disable=SC2016 # expanded by the inner shell
    under_rank=(/bin/sh -c '"$@"; exit $?' wrapper)
    point 'np 2, each under a wrapper, bound: the thread runs where no rank is' bound outside env -u SLURM_CPUS_ON_NODE
fi

# What it did, as tools see it.
for np in 1 2 5; do
    mpi "$np" -- test_counters
done
mpi 2 --mca coll_flash_progress off -- test_counters

plan
