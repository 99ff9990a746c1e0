#!/usr/bin/env bash
# Emulated hosts of all kinds: networks that are not to be used, hosts without flash, ranks that die there, and the
# first check of a new cluster.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/run_on.bash"
# shellcheck source=/dev/null
source "$top_srcdir/tests/mpi/survivors.bash"

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
    long point '3 hosts, docker0 on each: the interface that is included' \
        other_interfaces 3 1 none --mca btl_tcp_if_include eth0
    long point '3 hosts, docker0 on each: what is not excluded' excluded 3 1 none
fi
# Networks that lead to some of the hosts: flash uses those that Open MPI is told to use, also between ranks that are no
# neighbours in MPI_COMM_WORLD. Where Open MPI finds its way without being told and UCX would not, flash leaves the job
# to Open MPI, and says which network is in the way.
more_networks() { # KIND
    # shellcheck disable=SC2034 # run_on.bash's
    local hosts_options=(-e "$1")
    shift
    run_on 4 1 none --mca coll_flash_verbose 1 "$@" >"$log" 2>&1
}
serves_by_eth0() { # KIND
    more_networks "$1" -- test_beside && holds 4 'coll:flash: serves this job' && holds 4 'reaches other nodes by tcp (eth0)'
}
leaves_to_open_mpi() {
    OMPI_MCA_btl_tcp_if_exclude=lo more_networks some -x FLASH_TEST_ACTIVE=0 -- test_allgather types signatures &&
        holds 4 'coll:flash: does not serve this job' && told ucx-not-usable &&
        holds + 'Cause: .*is not in the network 10.1.0.0/24, which UCX may choose'
}
if compgen -G '/sys/class/infiniband/*' >/dev/null; then
    skip '4 hosts with several networks' 'there is an RDMA device: UCX chooses among all networks'
else
    point '4 hosts, three networks, two of them of pairs of hosts: the one that is included' serves_by_eth0 subnets
    long point '4 hosts, likewise, with addresses of one subnet: the one that is included' serves_by_eth0 subnet
    long point '4 hosts, two of them with one more network: the one that is included' serves_by_eth0 some
    point "4 hosts, two of them with one more network: left to Open MPI, and said" leaves_to_open_mpi
fi
# Hosts without flash: the others hear of it without a word from there. A message for a process that never looks stays
# in memory (coll_flash_meeting.c), where the leak check would find it.
host_without() {
    ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 run_on 3 2 none -- "${on_rank[@]}" '1 2 3' OMPI_MCA_coll=^flash \
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
# A rank dies when what its neighbour sends it no longer fits into the connection.
rank_dies() {
    ranks_end run_on 3 1 200mbit --enable-recovery -x UCX_TCP_SNDBUF=32K \
        -x UCX_TCP_RCVBUF=32K --mca coll_flash_probe_seconds 1 -- test_lost dies "$1" &&
        holds 2 'at last: MPI_ERR_OTHER' && holds 2 'once more: MPI_ERR_OTHER' &&
        holds 0 'called right' && holds + 'Gone:  rank 1 of MPI_COMM_WORLD'
}
for call in gather reduce; do
    more=()
    [[ $call == gather ]] || more=(long)
    if ((ompi_major < 5)); then
        "${more[@]}" point "3 hosts, $call: a rank dies" rank_dies "$call"
    else
        "${more[@]}" skip "3 hosts, $call: a rank dies" \
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
