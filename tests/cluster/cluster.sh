#!/usr/bin/env bash
# The programs of tests/mpi on emulated hosts, where ranks reach each other by TCP alone, or by TCP
# and shared memory.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/run_on.bash"

# on_hosts HOSTS RANKS [MPIRUN OPTION]... -- PROGRAM [CASE]...: a point.
on_hosts() {
    local name="$1 hosts x $2" word
    for word in "${@:3}"; do
        [[ $word == --* ]] || name+=" $word"
    done
    point "$name" run_on "$1" "$2" none "${@:3}"
}

# goes_by COUNT TEXT [COMMAND]...: what is said of the order in which MPI_COMM_WORLD stands in its
# ring, with ranks mapped in turn to the hosts; COMMAND runs the program.
goes_by() {
    run_on 2 2 none --map-by node --mca coll_flash_verbose 1 -- "${@:3}" \
        "$programs/flash_tests" test_allgather types >"$log" 2>&1 && holds "$1" "$2"
}

results_on() { # HOSTS RANKS
    on_hosts "$1" "$2" -- test_allgather types signatures big
    on_hosts "$1" "$2" -- test_reduce_scatter
    on_hosts "$1" "$2" -- test_extension
}
long results_on 2 1
long results_on 4 1
results_on 2 2
results_on 3 1
# A failing rank on another host, and rings that cross hosts at other places.
on_hosts 3 1 -- test_failures consume produce
on_hosts 3 1 -- test_sizes plain persistent compute
on_hosts 2 2 -- test_requests many_communicators free_communicators leak
# Ranks in turn on the hosts: their rings enter and leave each host once, or not, if that is wanted.
for program in allgather reduce_scatter extension; do
    on_hosts 2 2 --map-by node -- "test_$program"
done
on_hosts 2 2 --map-by node --mca coll_flash_on_node yes -- test_requests many_communicators come_and_go
on_hosts 2 2 --map-by node --mca coll_flash_ring_order rank -- test_reduce_scatter
point '2 hosts x 2, in turn: the ring goes by the machine' \
    goes_by 1 'communicator 0 goes by the machine, in the order 0 2 1 3'
point '2 hosts x 2, in turn: one rank wants the order of ranks, and all have it' \
    goes_by 4 'rings go by the order of ranks' "${on_rank[@]}" 1 OMPI_MCA_coll_flash_ring_order=rank
# The progress thread must wake up for what comes from other hosts.
on_hosts 2 1 --mca coll_flash_progress on -- test_async
on_hosts 2 2 --mca coll_flash_progress on -- test_async
on_hosts 3 1 --mca coll_flash_progress off -- test_extension

plan
