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

# A rank dies when what its neighbour sends it no longer fits into the connection.
rank_dies() {
    run_on 3 1 200mbit --enable-recovery -x UCX_TCP_SNDBUF=32K \
        -x UCX_TCP_RCVBUF=32K --mca coll_flash_probe_seconds 1 -- test_lost dies "$1" \
        >"$log" 2>&1 || :
    holds 2 'at last: MPI_ERR_OTHER' && holds 2 'once more: MPI_ERR_OTHER' &&
        holds 0 'called right' && holds + 'Gone:  rank 1 of MPI_COMM_WORLD'
}

# goes_by COUNT TEXT [COMMAND]...: what is said of the order in which MPI_COMM_WORLD stands in its
# ring, with ranks mapped in turn to the hosts; COMMAND runs the program.
goes_by() {
    run_on 2 2 none --map-by node --mca coll_flash_verbose 1 -- "${@:3}" \
        "$programs/flash_tests" test_allgather types >"$log" 2>&1 && holds "$1" "$2"
}

for shape in '2 1' '4 1' '2 2' '3 1'; do
    read -r number ranks <<<"$shape"
    on_hosts "$number" "$ranks" -- test_allgather types signatures big
    on_hosts "$number" "$ranks" -- test_reduce_scatter
    on_hosts "$number" "$ranks" -- test_extension
done
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
# UCX warns of what it does not know; the names of its settings have changed.
settings_are_known() {
    run_on 2 1 none -- test_allgather signatures >"$log" 2>&1 && holds 0 'invalid configuration'
}
point '2 hosts: UCX knows what flash sets' settings_are_known

# The first check of a new cluster, by a launcher that is not mpirun itself.
says_go() {
    FLASH_PROGRAMS=$top_builddir/mpi_bench FLASH_COMPONENT_PATH=$FLASH_COMPONENT_PATH \
        "$top_srcdir/mpi_bench/flash_info" --launcher "$hosts" -n 2 -- >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 1 '^go: 2 ranks on several nodes$'
}
point '2 hosts: flash_info says go' says_go
# Interfaces of one address on all hosts, as container runtimes make them: flash uses the ones that Open MPI is
# told to use.
other_interfaces() {
    # shellcheck disable=SC2034 # run_on.bash's
    local hosts_options=(-d)
    run_on "$@" --mca coll_flash_verbose 1 -- test_allgather types signatures big >"$log" 2>&1 &&
        holds 3 'coll:flash: serves this job'
}
excluded() {
    OMPI_MCA_btl_tcp_if_exclude=lo,docker other_interfaces "$@"
}
if compgen -G '/sys/class/infiniband/*' >/dev/null; then
    skip '3 hosts, docker0 on each' 'there is an RDMA device: UCX chooses among all networks'
else
    point '3 hosts, docker0 on each: the networks that are included' other_interfaces 3 1 none
    point '3 hosts, docker0 on each: the interface that is included' \
        other_interfaces 3 1 none --mca btl_tcp_if_include eth0
    point '3 hosts, docker0 on each: what is not excluded' excluded 3 1 none
fi
# Hosts without flash: the others hear of it without a word from there.
host_without() {
    run_on 3 2 none -- "${on_rank[@]}" '1 2 3' OMPI_MCA_coll=^flash \
        "$programs/test_version_linked" >"$log" 2>&1 && holds 6 'right, flash is not active' &&
        told releases-differ
}
# Open MPI 5's own connections there fail while PMIx is asked for what was never sent.
host_without_ends() {
    local status=0
    run_on 3 2 none -- "${on_rank[@]}" '1 2 3' OMPI_MCA_coll=^flash \
        "$programs/test_version_linked" >"$log" 2>&1 || status=$?
    ((status < 124)) && told releases-differ
}
if ((ompi_major < 5)); then
    point '3 hosts, one and a half without flash: said, and none uses it' host_without
else
    long point '3 hosts, one and a half without flash: said, and the job ends' host_without_ends
fi
# The progress thread must wake up for what comes from other hosts.
on_hosts 2 1 --mca coll_flash_progress on -- test_async
on_hosts 2 2 --mca coll_flash_progress on -- test_async
on_hosts 3 1 --mca coll_flash_progress off -- test_extension
for call in gather reduce; do
    if ((ompi_major < 5)); then
        point "3 hosts, $call: a rank dies" rank_dies "$call"
    else
        skip "3 hosts, $call: a rank dies" \
            'Open MPI 5 itself ends a job in which a connection of its own is closed'
    fi
done

# The other MPI that the benchmarks compare with starts there, too. Now and then MPICH 4.0 hangs by
# itself, which is none of flash's: only its launcher is tried each time, and a hang of the benchmark twice.
mpich_measures() {
    local status=124 tries=3
    while ((status == 124 && tries-- > 0)); do
        status=0
        timeout "$FLASH_TEST_TIMEOUT" "$hosts" -n 2 -p 2 -l mpich -- "$top_builddir/mpi_bench/mpich_iallgather" \
            -m 1K:1K -i 2 -x 1 --no-own >"$log" 2>&1 || status=$?
    done
    holds 1 '4 ranks on 2 hosts' && holds 1 'results: all right'
}
mpich_runs() {
    timeout --kill-after=10 $((5 * FLASH_TEST_TIMEOUT)) "$hosts" -n 2 -p 2 -l mpich -- /bin/hostname \
        >"$log" 2>&1 && (($(sort -u "$log" | grep -c .) == 2)) && (($(grep -c . "$log") == 4))
}
if [[ -x $top_builddir/mpi_bench/mpich_iallgather ]]; then
    point '2 hosts x 2, MPICH' mpich_runs
    long point "2 hosts x 2, MPICH's benchmark" mpich_measures
else
    skip '2 hosts x 2, MPICH' 'no MPICH (Debian: mpich, libmpich-dev)'
fi

plan
