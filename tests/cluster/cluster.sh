#!/usr/bin/env bash
# The programs of tests/mpi on emulated hosts, where ranks reach each other by TCP alone, or by TCP
# and shared memory.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/run_on.bash"

results_on() { # HOSTS RANKS [COMMAND]: for the extension, of which turns.sh has as much
    on_hosts "$1" "$2" -- test_allgather types signatures big
    on_hosts "$1" "$2" -- test_reduce_scatter
    "${@:3}" on_hosts "$1" "$2" -- test_extension
}
long results_on 2 1
long results_on 4 1
results_on 2 2 long
results_on 3 1
# A failing rank on another host, and rings that cross hosts at other places.
on_hosts 3 1 -- test_failures consume produce
on_hosts 3 1 -- test_sizes plain persistent compute
on_hosts 2 2 -- test_requests many_communicators free_communicators leak
# The progress thread must wake up for what comes from other hosts.
on_hosts 2 1 --mca coll_flash_progress on -- test_async
on_hosts 2 2 --mca coll_flash_progress on -- test_async
on_hosts 3 1 --mca coll_flash_progress off -- test_extension
# What has left after its operation, while its rank computes and UCX's events wake no thread.
left() {
    # shellcheck disable=SC2034 # run_on's
    local tool=(env "LD_PRELOAD=$programs/.libs/libmessages.so:$programs/.libs/libdeaf.so")
    run_on 2 1 none -x UCX_TCP_SNDBUF=48k -x UCX_TCP_RCVBUF=48k -x FLASH_TEST_SIGNS="$scratch/left" -- \
        "${on_rank[@]}" 1 OMPI_MCA_coll_flash_progress=off "$programs/flash_tests" test_left "$@"
}
point '2 hosts x 1, a broadcast, without events: all leaves' left bcast
point '2 hosts x 1, an allgather, without events: all leaves' left allgatherv
long on_hosts 3 1 -- test_gather roots signatures big many
long on_hosts 2 2 -- test_gather roots big no_buffer
# UCX is opened by the first calls; and in MPI_Init by all ranks, since one rank's thread level wants that.
on_hosts 2 2 -- test_setup late communicators freed_held
one_at_multiple() {
    # With the variable, which TSan's builds set, each rank opens UCX in MPI_Init for reasons of its own.
    (unset UCX_MEM_EVENTS && run_on 3 1 none --mca coll_flash_verbose 1 -- "${on_rank[@]}" 1 FLASH_TEST_LEVEL=multiple \
        "$programs/test_setup" late waiting) >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 3 'communicator 0: UCX is open on all ranks' && holds 0 'set up by first calls'
}
point '3 hosts x 1, MPI_THREAD_MULTIPLE on one rank: UCX is opened in MPI_Init' one_at_multiple
# HAN, which makes communicators of its own where there are several nodes, above flash and below it. Open MPI 4.1's
# keeps references to them, also where flash is not selected, so that no module of theirs is released.
beside_han() {
    ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 on_hosts "$@"
}
if "$OMPI_INFO" --parsable 2>/dev/null | grep -c '^mca:coll:han:version' >/dev/null; then
    beside_han 2 2 --mca coll_han_priority 99 -- test_beside
    beside_han 2 2 --mca coll_han_priority 40 -- test_blocking but_one
    long beside_han 2 2 --mca coll_han_priority 40 -- test_beside
    long beside_han 3 2 --mca coll_han_priority 99 -- test_beside
else
    skip '2 hosts x 2, HAN' 'this Open MPI has no such component'
fi

plan
