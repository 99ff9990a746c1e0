# suites.bash: sourced by run.sh: what is tried in guests.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run.sh and runner.bash

# guests_for GUESTS RANKS: a point: so many guests are up, with so many ranks each. Otherwise the suite is left. They
# boot for points of FLASH_TEST_ONLY as well.
guests_for() {
    guests=$1
    export FLASH_LAB_RANKS=$2
    point "$1 guests boot" "$lab" up "$1"
    wanted "$1 guests boot" || "$lab" up "$1"
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

# packets GUEST [RAIL]: that the RDMA device has sent.
packets() {
    "$lab" exec "$1" cat "/sys/class/infiniband/rxe${2-0}/ports/1/hw_counters/sent_pkts"
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
    holds "$guests" 'serves this job (.*, segments for RDMA' &&
        holds "$guests" 'UCX reaches other nodes by \(\(rc\|ud\)_verbs (rxe0:1), \)\+Open MPI by' && ((after - before > 1000))
}

# rails_used [MPIRUN OPTION]...: how many packets guest 1 sends by either device in long calls: `sent`.
rails_used() {
    local rail before=()
    for rail in 0 1; do
        before+=("$(packets 1 "$rail")")
    done
    run "$guests" --mca coll_flash_verbose 1 "$@" -- "$top_builddir/mpi_bench/flash_iallgather" -m 2M:2M --alone -i 10 \
        --no-own >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    sent=()
    for rail in 0 1; do
        sent+=($(($(packets 1 "$rail") - before[rail])))
    done
    echo "packets by rxe0 and by rxe1: ${sent[*]}"
    holds 1 'results: all right'
}

# Two devices for each guest: UCX cuts long messages, and has a lane over each device for a part of them. The second one
# moves as large a part of flash's messages as of Open MPI's own, by a tenth.
uses_both_rails() {
    local coll sent=() part=()
    for coll in ^flash flash; do
        rails_used --mca pml ucx || return 1
        part+=($((1000 * sent[1] / (sent[0] + sent[1]))))
    done
    grep 'UCX reaches other nodes' "$log"
    holds "$guests" 'UCX reaches other nodes by .*rc_verbs (rxe0:1)' &&
        holds "$guests" 'UCX reaches other nodes by .*rc_verbs (rxe1:1)' &&
        ((part[0] > 200 && 10 * part[1] >= 9 * part[0]))
}

# On each shape.
results() {
    on_guests -- test_allgather types signatures big
    on_guests -- test_reduce_scatter
    on_guests -- test_extension
}

suite_2x1() {
    options --mca coll_flash_algorithm ring
    guests_for 2 1 || return 0
    point '2 guests: UCX reaches the other by verbs' goes_by_verbs
    results
    on_guests -- test_persistent
    on_guests -- test_threads several
    on_guests --mca coll_flash_algorithm pairwise -- test_reduce_scatter same_bits
    on_guests -- test_requests many_communicators free_communicators leak
    on_guests --mca coll_flash_progress on -- test_async
    point '2 guests x 1: without events' deaf 2 -- test_async allgather reduce_scatter
    guests_end
}
# exchanges PROGRAM [CASE]...: in a job of more ranks than UCX may have queue pairs for, exchanges go by datagrams.
exchanges() {
    says "$((guests * FLASH_LAB_RANKS))" 'exchanges with all ranks reach other nodes by ud_verbs (rxe0:1)' \
        "$((guests * FLASH_LAB_RANKS))" --mca coll_flash_verbose 1 -x UCX_RC_MAX_NUM_EPS=2 -- "$@" &&
        holds + 'UCX reaches other nodes by rc_verbs (rxe0:1), '
}

suite_2x2() {
    options --mca coll_flash_algorithm ring
    guests_for 2 2 || return 0
    results
    point "$guests guests x $FLASH_LAB_RANKS: all-to-alls by datagrams" exchanges test_two_callbacks alltoall
    options --mca coll_flash_algorithm pairwise
    point "$guests guests x $FLASH_LAB_RANKS: pairwise reduce-scatters by datagrams" exchanges test_reduce_scatter same_bits
    options --mca coll_flash_algorithm ring
    on_guests --map-by node -- test_persistent
    guests_end
}
suite_rails() {
    options --mca coll_flash_algorithm ring
    FLASH_LAB_RAILS=2 guests_for 2 1 || return 0
    point '2 guests, two devices each: UCX uses both' uses_both_rails
    guests_end
}
suite_3x1() {
    options --mca coll_flash_algorithm ring
    guests_for 3 1 || return 0
    results
    guests_end
}
suite_random() {
    options --mca coll_flash_algorithm ring
    guests_for 2 2 || return 0
    # A job of its own: random_ops is no program of points.
    point '2 guests x 2: random operations' run 4 -- random_ops --seed="${FLASH_TEST_SEED:-20260424}" \
        --operations="${FLASH_RANDOM_OPERATIONS:-300}"
    guests_end
}

# ------------------------------------------------------------ faults

bounded_seconds=180 # within which a job with a fault ends by itself, on a machine as slow as this one

# in_time COMMAND...: whatever its exit status.
in_time() {
    local started=$SECONDS status=0
    limit=$bounded_seconds "$@" >"$log" 2>&1 || status=$?
    echo "the job ended with status $status, after $((SECONDS - started)) seconds"
    ((SECONDS - started < bounded_seconds)) || {
        cat "$log"
        return 1
    }
}

dies() { # CALL [MPIRUN OPTION]...
    in_time run "$guests" --enable-recovery --mca coll_flash_probe_seconds 1 "${@:2}" -- test_lost dies "$1"
}

# A rank dies in an operation: the others are told, then and at the next one.
survivors_are_told() { # CALL [MPIRUN OPTION]...
    dies "$@" && holds $((guests - 1)) 'at last: MPI_ERR_OTHER' && holds $((guests - 1)) 'once more: MPI_ERR_OTHER' &&
        holds 0 'called right' && { told peer-lost >/dev/null || told transport-failed; }
}

# Up to 1.13 UCX has no way to ask where there is no TCP: the others give the dead rank up when they have waited too
# long.
silence_ends() { # CALL
    dies "$1" -x UCX_FLASH_NET_DEVICES=rxe0:1 --mca coll_flash_stall_seconds 20 --mca coll_flash_stall_error yes \
        --mca coll_flash_verbose 1 && holds $((guests - 1)) 'at last: MPI_ERR_OTHER' && holds 0 'called right' &&
        holds + 'UCX cannot ask whether its process is there: up to UCX 1.13 it needs TCP'
}

job_ends() { # CALL
    dies "$1" && holds + 'MPI will try to terminate your MPI job' && holds 0 'called right'
}

rank_dies() { # CALL
    point "$guests guests, $1: a rank dies, and the others are told" survivors_are_told "$1"
}

# As `gather`, where UCX has RDMA devices alone.
rank_dies_without_tcp() {
    if printf '%s\n' 1.14 "$(ucx_info -v | sed -n 's/^# .*ersion[=: ]*\([0-9.]*\).*/\1/p' | head -n 1)" | sort -C -V; then
        point "$guests guests without TCP: a rank dies, and the others are told" survivors_are_told gather \
            -x UCX_FLASH_NET_DEVICES=rxe0:1
    else
        point "$guests guests without TCP: a rank dies, and the others wait too long" silence_ends gather
    fi
}

# amid ITERATIONS COMMAND...: it breaks something while so many allgathers are sent. Rank 0 ends by itself, with an error
# or with right results. mpirun may wait for a dead guest's daemon.
# Between two calls the program waits in Open MPI's own barrier, where flash does not ask whether a dead guest is there: a
# guest that dies then does not end rank 0.
amid_options=() # of mpirun
amid() {
    local before job breaker started status=0
    before=$(packets 1)
    limit=$((3 * bounded_seconds)) run "$guests" "${amid_options[@]}" -- "$top_builddir/mpi_bench/flash_iallgather" \
        -m 1M:1M -i "$1" \
        --no-own >"$log" 2>&1 &
    job=$!
    until (($(packets 1) > before + 3000)); do
        kill -0 "$job" || {
            cat "$log"
            return 1
        }
        sleep 1
    done
    started=$SECONDS
    "${@:2}" &
    breaker=$!
    while "$lab" exec 1 pgrep flash_iall >/dev/null && ((SECONDS - started < bounded_seconds)); do
        sleep 1
    done
    echo "rank 0 ended within $((SECONDS - started)) seconds"
    ((SECONDS - started < bounded_seconds)) || status=1
    kill "$breaker" 2>/dev/null || :
    pkill -P "$job" -x timeout || :
    wait "$job" || :
    cat "$log"
    ((status == 0)) && holds 0 'wrong'
}

# Memory that may not be locked cannot be registered: TCP is used instead. A guest's root may lock all it wants,
# whatever its limit; so this right goes as well.
cannot_lock() {
    # shellcheck disable=SC2034,SC2016 # the runner's; expanded by the inner shell
    local tool=(setpriv --bounding-set -ipc_lock bash -c 'ulimit -l 64; exec "$@"' bash)
    in_time run "$guests" --mca coll_flash_verbose 1 -- test_allgather types big &&
        holds "$guests" 'UCX reaches other nodes by tcp (eth0), Open MPI by' && holds "$guests" 'serves this job' &&
        holds + 'max locked memory (ulimit -l)'
}

# With SIGUSR1, the queue pairs of guest 2's rank go to their error state.
queue_pairs_break() {
    # shellcheck disable=SC2034 # run's
    local tool=(env "LD_PRELOAD=$programs/.libs/libmessages.so:$programs/.libs/libqueue_pairs.so")
    local amid_options=(--mca pml ob1) # which has no queue pairs
    amid 40 "$lab" exec 2 pkill -USR1 flash_iall && holds + 'MPI_ERR_OTHER' &&
        { told peer-failed || told transport-failed || told peer-lost; } >/dev/null
}

# counter GUEST NAME: of its RDMA device.
counter() {
    "$lab" exec "$1" cat "/sys/class/infiniband/rxe0/ports/1/hw_counters/$2"
}

# A link that loses packets, as a congested one does: the device sends them again, and results are right.
loses_packets() {
    local before after status=0
    before=$(counter 1 out_of_seq_request)
    "$lab" exec 2 tc qdisc add dev eth0 root netem loss 0.5% || return 1
    limit=$bounded_seconds run "$guests" --mca coll_flash_verbose 1 -- test_allgather types big >"$log" 2>&1 || status=$?
    "$lab" exec 2 tc qdisc del dev eth0 root
    after=$(counter 1 out_of_seq_request)
    echo "packets out of sequence: $before before, $after after"
    ((status == 0)) || {
        cat "$log"
        return 1
    }
    holds "$guests" 'UCX reaches other nodes by \(rc\|ud\)_verbs' && ((after > before))
}

# link_is_cut SECONDS: while allgathers are sent, for longer than flash waits until it asks whether the other rank is
# there, and not so long that the device gives up. By one command, since what tells a guest goes by the same link.
link_is_cut() {
    local before job status=0
    before=$(packets 1)
    limit=$bounded_seconds run "$guests" -- "$top_builddir/mpi_bench/flash_iallgather" -m 1M:1M -i 300 --alone --no-own \
        >"$log" 2>&1 &
    job=$!
    until (($(packets 1) > before + 2000)); do
        kill -0 "$job" || {
            cat "$log"
            return 1
        }
        sleep 1
    done
    "$lab" exec 2 "tc qdisc add dev eth0 root netem loss 100%; sleep $1; tc qdisc del dev eth0 root"
    wait "$job" || status=$?
    cat "$log"
    ((status == 0)) && holds 1 'results: all right'
}

suite_deaths() {
    options --mca coll_flash_algorithm ring
    guests_for 3 1 || return 0
    if ((ompi_major < 5)); then
        rank_dies gather
        rank_dies reduce
        rank_dies_without_tcp
    else
        # Open MPI 5 itself ends a job in which a connection of its own is closed.
        point '3 guests, gather: a rank dies, and the job ends' job_ends gather
        point '3 guests, reduce: a rank dies, and the job ends' job_ends reduce
        skip '3 guests without TCP: a rank dies' 'Open MPI 5 itself ends the job'
    fi
    guests_end
}
suite_faults() {
    options --mca coll_flash_algorithm ring
    guests_for 2 1 || return 0
    point '2 guests: memory that cannot be locked: TCP instead' cannot_lock
    point '2 guests: a link that loses packets' loses_packets
    point '2 guests: a link is cut for 6.5 seconds' link_is_cut 6.5
    if [[ -e $programs/.libs/libqueue_pairs.so ]]; then
        point '2 guests: queue pairs in their error state, and rank 0 ends' queue_pairs_break
    else
        skip '2 guests: queue pairs in their error state' 'there is no infiniband/verbs.h'
    fi
    # The kernel keeps the device until no process has it open.
    point '2 guests: an RDMA device is deleted, and rank 0 ends' amid 40 "$lab" exec 2 rdma link delete rxe0
    guests_end
    guests_for 2 1 || return 0
    point '2 guests: a guest dies, and rank 0 ends' amid 1000000 "$lab" kill 2
    guests_end
}
