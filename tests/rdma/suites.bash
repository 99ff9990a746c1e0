# suites.bash: sourced by run.sh: what is tried in guests.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run.sh and runner.bash

# guests_for GUESTS RANKS: a point: so many guests are up, with so many ranks each. Otherwise the suite is left.
guests_for() {
    guests=$1
    export FLASH_LAB_RANKS=$2
    point "$1 guests boot" "$lab" up "$1"
    [[ -e /run/lab/pid.$1 ]]
}

guests_end() {
    flush
    "$lab" down
}

# on_guests [MPIRUN OPTION]... -- PROGRAM [CASE]...: a point, on all of their ranks. These share a job.
on_guests() {
    local name="$guests guests x $FLASH_LAB_RANKS" word
    for word in "$@"; do
        [[ $word == --* ]] || name+=" ${word#coll_flash_}"
    done
    wanted "$name" || return 0
    queue "$name" $((guests * FLASH_LAB_RANKS)) "$@"
}

# packets GUEST: that the RDMA device has sent.
packets() {
    "$lab" exec "$1" cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
}

# Each rank says that UCX goes by verbs, and so it does: a packet has 4096 bytes at most.
goes_by_verbs() {
    local before after
    before=$(packets 1)
    run "$guests" --mca coll_flash_verbose 1 -- test_allgather types big >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    after=$(packets 1)
    echo "packets: $before before, $after after"
    grep 'UCX reaches other nodes' "$log"
    holds "$guests" 'UCX reaches other nodes by \(\(rc\|ud\)_verbs (rxe0:1), \)*Open MPI by' && ((after - before > 1000))
}

# The same programs on each shape.
results() {
    on_guests -- test_allgather types signatures big
    on_guests -- test_reduce_scatter
    on_guests -- test_extension
    on_guests -- test_persistent
    on_guests -- test_threads several
    on_guests --mca coll_flash_algorithm pairwise -- test_reduce_scatter same_bits
    on_guests -- test_requests many_communicators free_communicators leak
}

suite_2x1() {
    options --mca coll_flash_algorithm ring
    guests_for 2 1 || return 0
    point '2 guests: UCX reaches the other by verbs' goes_by_verbs
    results
    guests_end
}
suite_2x2() {
    options --mca coll_flash_algorithm ring
    guests_for 2 2 || return 0
    results
    guests_end
}
suite_3x1() {
    options --mca coll_flash_algorithm ring
    guests_for 3 1 || return 0
    results
    guests_end
}
suite_random() {
    guests_for 2 2 || return 0
    guests_end
}
suite_faults() {
    guests_for 2 1 || return 0
    guests_end
}
