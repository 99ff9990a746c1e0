#!/usr/bin/env bash
# Ranks in turn on emulated hosts: their rings enter and leave each host once, or not, if that is wanted.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/run_on.bash"

# goes_by COUNT TEXT [COMMAND]...: what is said of the order in which MPI_COMM_WORLD stands in its
# ring, with ranks mapped in turn to the hosts; COMMAND runs the program.
goes_by() {
    run_on 2 2 none --map-by node --mca coll_flash_verbose 1 -- "${@:3}" \
        "$programs/flash_tests" test_allgather types >"$log" 2>&1 && holds "$1" "$2"
}

on_hosts 2 2 --map-by node -- test_allgather types signatures big
long on_hosts 2 2 --map-by node -- test_allgather
on_hosts 2 2 --map-by node -- test_reduce_scatter
long on_hosts 2 2 --map-by node -- test_extension
on_hosts 2 2 --map-by node --mca coll_flash_on_node yes -- test_requests many_communicators come_and_go
long on_hosts 2 2 --map-by node --mca coll_flash_ring_order rank -- test_reduce_scatter
point '2 hosts x 2, in turn: the ring goes by the machine' \
    goes_by 1 'communicator 0 goes by the machine, in the order 0 2 1 3'
point '2 hosts x 2, in turn: one rank wants the order of ranks, and all have it' \
    goes_by 4 'rings go by the order of ranks' "${on_rank[@]}" 1 OMPI_MCA_coll_flash_ring_order=rank

plan
