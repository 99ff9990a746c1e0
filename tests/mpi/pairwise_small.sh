#!/usr/bin/env bash
# Reduce-scatters that are pairwise by their cost: which are, and what comes of them.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # the runner's
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_costs "$costs_folder/pairwise"
path_is() { # TEXT OTHER NP ...: calls take the way of that text, and none the other
    local call='Ireduce_scatter_block of [0-9]* bytes on communicator 0'
    says + "$call: $1" "${@:3}" --mca coll_flash_verbose 2 -- test_reduce_scatter same_bits &&
        holds 0 "$call: \\($2\\)"
}
point 'pairwise, where the ring costs more' path_is 'pairwise (the ring costs more' 'ring\|falls back' 3
point 'algorithm ring: a ring' path_is ring 'pairwise\|falls back' 3 --mca coll_flash_algorithm ring
point 'algorithm fallback: falls back' path_is 'falls back (see algorithm' 'ring\|pairwise' 3 \
    --mca coll_flash_algorithm fallback
on_node=no point 'on one node without rings: falls back' path_is 'falls back (on one node' 'ring\|pairwise' 3
shm=auto point 'on one node: through shared memory' path_is 'shm (the ring costs more' 'ring\|pairwise' 3
# Blocks of 40004 bytes.
sent=80008
dearer() { # NS TEXT OTHER: pairwise costs so much, and the fallback a nanosecond a byte
    printf 'node reduce_scatter %s\n' 'fallback 0 0 0 1000' "pairwise $1 0 0 0" >"$scratch/dearer"
    common=()
    path_is "$2" "$3" 3 --mca coll_flash_costs "$scratch/dearer"
}
point 'not where it costs as much as the fallback' dearer $sent 'falls back (the ring has no cost' 'ring\|pairwise'
point 'but where it costs less' dearer $((sent - 1)) 'pairwise (the ring has no cost' 'ring\|falls back'
options --mca coll_flash_costs "$costs_folder/pairwise"
point 'algorithm recdbl: not pairwise' path_is 'recdbl (see algorithm' 'ring\|pairwise' 3 \
    --mca coll_flash_algorithm recdbl

mpi_on_many -- test_reduce_scatter
mpi 4 -x UCX_FLASH_TLS=tcp -- test_reduce_scatter
mpi 4 --mca coll_flash_progress off -- test_reduce_scatter
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_reduce_scatter
further_requests() { # NP
    mpi "$1" -- test_requests one_communicator many_communicators come_and_go reduce_meanwhile leak
    mpi "$1" -- test_in_turn
    mpi "$1" -- test_life
}
further_requests 2
long further_requests 5
mpi 2 -- test_threads several other_waits # bursts of allgathers would be libnbc's own matter
[[ ${FLASH_SANITIZER-} == thread ]] || mpi 2 -- test_threads persistent
mpi 3 -- test_users_code
mpi 3 -- test_arguments
mpi 3 -- test_cancel

plan
