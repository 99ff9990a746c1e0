#!/usr/bin/env bash
# A rank dies in a job that goes on without it, is late, or goes another way: the others are told.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$top_srcdir/tests/mpi/survivors.bash"

# shellcheck disable=SC2034 # the runner's
is_beside=yes # all points, which mostly wait

# Those to whom what rank 1 left half-written keeps from coming what others send.
blocked() {
    local pid
    grep -A 9 'Nothing comes in any more of what' "$log" | sed -n 's/^ *PID: *\([0-9]*\)$/\1/p' |
        while read -r pid; do
            sed -n "s/^rank \([0-9]*\), pid $pid: at last.*/\1/p" "$log"
        done
}

# Each process that prints its outcome has been told that rank 1 is to blame, or one that has given it
# up for rank 1's sake: as gone, where that is a neighbour, or as at fault.
names_the_dead() {
    local pid pids dead
    mapfile -t pids < <(sed -n 's/^rank [0-9]*, pid \([0-9]*\): at last.*/\1/p' "$log")
    dead=$(blocked | sort -u | sed 's/^/|/' | tr -d '\n')
    for pid in "${pids[@]}"; do
        grep -E -A 2 "(Gone|At fault): *rank (1$dead) of MPI_COMM_WORLD" "$log" >"$scratch/told"
        grep -q "PID: *$pid\$" "$scratch/told" ||
            holds + "nothing tells process $pid who is to blame" || return
    done
}

# Every survivor ends with an error, then and at the next operation. mpirun's status is that of the
# dead rank. A message that was under way at its death UCX may find out to have failed before
# anybody asks for the process.
survivors_are_told() {
    local np=$1
    shift
    ranks_end run "$np" --enable-recovery --mca coll_flash_probe_seconds 1 "$@" &&
        holds $((np - 1)) 'at last: MPI_ERR_OTHER' && holds $((np - 1)) 'once more: MPI_ERR_OTHER' &&
        holds 0 'called right' && holds 0 'ended with a piece pending' && names_the_dead &&
        { told peer-lost >/dev/null || told transport-failed >/dev/null || told peer-lost; }
}

# dies NP CALL [OPTION]...: in the middle of an operation.
dies() {
    point "np $1, $2${3:+, ${*:3}}: a rank dies" survivors_are_told "$1" "${@:3}" -- test_lost dies "$2"
}
# absent NP CALL: before it.
absent() {
    point "np $1, $2: a rank dies before it takes part" survivors_are_told "$1" -- test_lost absent "$2"
}
# dies_at STEP CALL [OPTION]...
dies_at() {
    point "np 4, $2${3:+, ${*:3}}: a rank dies at step $1" \
        survivors_are_told 4 "${@:3}" -- test_lost dies "$2" "$1"
}
pairwise=(--mca coll_flash_algorithm pairwise)
for call in gather reduce; do
    long dies 2 "$call"
    dies 3 "$call"
    long dies 4 "$call"
    long dies 3 "$call" -x UCX_FLASH_TLS=tcp
    long dies 4 "$call" --mca coll_flash_progress off
    long absent 2 "$call"
    absent 4 "$call"
    long dies 4 "${call}v"
    for form in "${call}_init" "${call}_pending"; do
        long dies 4 "$form"
    done
    dies_at 2 "${call}_compute"
    for step in 1 3 4; do
        long dies_at "$step" "${call}_compute"
    done
done
dies 3 reduce_all
dies 3 exchange
long dies 2 exchange
long dies 4 exchange
long absent 4 exchange
long dies 3 exchangev
long dies 2 reduce_all
long absent 4 reduce_all
# Along the ring from rank 0, and to it, by way of rank 1, to which all others are next.
chain=(--mca coll_flash_ring_order rank)
dies 3 bcast "${chain[@]}"
dies 3 reduce_to_root "${chain[@]}"
long dies 2 bcast "${chain[@]}"
long dies 2 reduce_to_root "${chain[@]}"
long dies 3 bcast "${chain[@]}" --mca coll_flash_progress off
long dies 3 reduce_to_root "${chain[@]}" --mca coll_flash_progress off
# Between rank 0 and each other rank: the others hear nothing of rank 1, until rank 0 ends for its sake.
root_is_told() {
    local np=$1
    shift
    ranks_end run "$np" --enable-recovery --mca coll_flash_probe_seconds 1 "$@" &&
        holds 1 'rank 0, pid [0-9]*: at last: MPI_ERR_OTHER' && holds $((np - 1)) ': at last: ' &&
        holds 0 'called right' && holds + ': *rank 1 of MPI_COMM_WORLD'
}
root_loses() { # NP CALL [OPTION]...
    point "np $1, $2${3:+, ${*:3}}: a rank dies, and the root is told" root_is_told "$1" "${@:3}" -- test_lost dies "$2"
}
root_loses 3 gather_to_root
long dies 2 gather_to_root
long dies 2 scatter
long root_loses 4 gather_to_root
long root_loses 3 scatter
long root_loses 3 scatter --mca coll_flash_progress off
long absent 2 gather_to_root
long root_loses 3 gatherv_to_root
long root_loses 3 scatterv
long dies 2 scatterv
# Shared with Open MPI's call, which has no data and waits. The persistent request has two ranks: of more, the root
# alone would make another one when its own has failed.
shared=(--mca coll_flash_algorithm auto --mca coll_flash_costs "$costs_folder/small_rings")
point 'np 3, gatherv_to_root, shared: a rank dies, and the root is told' \
    root_is_told 3 "${shared[@]}" -- test_lost dies gatherv_to_root
long point 'np 3, scatterv, shared: likewise' root_is_told 3 "${shared[@]}" -- test_lost dies scatterv
point 'np 2, gatherv_to_root_init, shared: a rank dies' \
    survivors_are_told 2 "${shared[@]}" -- test_lost dies gatherv_to_root_init
dies 4 reduce_all_init
long dies 4 reduce_all --mca coll_flash_progress off
dies 4 reduce_init
dies 4 gather_pending
long dies 2 reduce "${pairwise[@]}"
dies 4 reduce "${pairwise[@]}"
long dies_at 2 reduce_compute "${pairwise[@]}"
# It has a place in the queue of one, and will never say that what is there is complete. (Where UCX writes
# there by something else than memcpy(), it lives.)
survivors_are_told_of_block() {
    survivors_are_told "$@" && told blocked
}
# blocks_queue NP CALL [OPTION]...
blocks_queue() {
    point "np $1, $2${3:+, ${*:3}}: a rank dies in the middle of a message" \
        survivors_are_told_of_block "$1" "${@:3}" -- test_lost blocks "$2"
}
for call in gather reduce; do
    blocks_queue 3 "$call"
    long blocks_queue 4 "$call"
    long blocks_queue 4 "$call" --mca coll_flash_progress off
done
long blocks_queue 4 reduce "${pairwise[@]}"
# shellcheck disable=SC2034 # the runner's
over_shm() {
    shm=copy on_node=no "$@"
}
# shellcheck disable=SC2034
by_reading() {
    shm=read on_node=no "$@"
}
# without_rings NP: through shared memory, and by reading.
without_rings() {
    local np=$1 call
    point "np $np, gather, read: a rank dies" \
        by_reading survivors_are_told "$np" -- test_lost dies gather
    long point "np $np, gatherv, read: a rank dies" \
        by_reading survivors_are_told "$np" -- test_lost dies gatherv
    point "np $np, gather, read: a rank dies before it takes part" \
        by_reading survivors_are_told "$np" -- test_lost absent gather
    for call in gather reduce; do
        point "np $np, $call, shared memory: a rank dies" \
            over_shm survivors_are_told "$np" -- test_lost dies "$call"
    done
    for call in gatherv reducev; do
        long point "np $np, $call, shared memory: a rank dies" \
            over_shm survivors_are_told "$np" -- test_lost dies "$call"
    done
    point "np $np, gather, shared memory: a rank dies before it takes part" \
        over_shm survivors_are_told "$np" -- test_lost absent gather
}
long without_rings 2
without_rings 3
long without_rings 4
long point 'np 3, gather, tcp: a rank dies before it takes part' \
    survivors_are_told 3 -x UCX_FLASH_TLS=tcp -- test_lost absent gather

# sizes_are_apart CALL ENDS: rank 0 takes the ring and rank 1, whose blocks are shorter,
# does not: both wait, and the ring says so. Whether rank 1 has an end depends on its own way.
sizes_are_apart() {
    printf 'node %s %s\n' allgather 'fallback 0 0 0 1000' allgather 'ring 2000000 0 0 0' \
        reduce_scatter 'fallback 0 0 0 1000' reduce_scatter 'pairwise 0 0 0 500' \
        reduce_scatter 'ring 1000000 0 0 0' >"$scratch/apart"
    ranks_end run 2 --enable-recovery --mca coll_flash_costs "$scratch/apart" \
        --mca coll_flash_stall_seconds 1 --mca coll_flash_stall_error 1 -- \
        test_lost apart "$1" &&
        holds 1 'rank 0, .*: at last: MPI_ERR_OTHER' && holds 0 'at last: success' &&
        holds 0 'called right' && holds "$2" 'rank 1, .*: at last: MPI_ERR_OTHER' &&
        holds + 'has done so for 1 seconds' && told stalled &&
        holds + 'algorithms differ where sizes differ'
}
point 'gather, one falls back: sizes for which different algorithms cost least' sizes_are_apart gather 0
point 'reduce, one is pairwise: sizes for which different algorithms cost least' sizes_are_apart reduce 1

# A rank that is late: a warning that tells what is waited for, and all is well in the end. The rank comes when
# both others have given theirs, and some watches later, which are to give no more.
warned='has done so for 2 seconds'
rank_is_late() {
    FLASH_TEST_UNTIL=$warned FLASH_TEST_LINGER=3 run 3 --mca coll_flash_stall_seconds 2 "$@" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 3 'at last: success' && holds 0 'called right' &&
        holds 2 "$warned" &&
        holds + 'Waits for: *rank 1 of MPI_COMM_WORLD to take a message' &&
        holds + 'Progress: *step . of 3, block of rank . of the communicator' &&
        holds 2 "Operation: *$operation, number 3 of communicator MPI_COMM_WORLD" &&
        holds 2 'The operation waits on'
}
# Meanwhile what others send comes in: a rank that is late is told from a queue that is blocked.
echoes_come_in() {
    run 3 --mca coll_flash_probe_seconds 1 --mca coll_flash_verbose 2 -- test_lost late "$1" \
        >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 3 'at last: success' && holds 0 'nothing comes in' && holds 0 'what waiting has opened stays'
}
# Nor does it pass for one that a dead rank has blocked: what it sent before came in behind all of that.
late_beside_the_dead() {
    ranks_end run 4 --enable-recovery --mca coll_flash_probe_seconds 1 -- \
        test_lost beside "$1" &&
        holds 3 'at last: success' && holds 0 'called right' && holds 0 'Nothing comes in' && holds 0 'Gone:'
}
for call in gather reduce; do
    point "np 4, $call: a rank is late for others than the dead" late_beside_the_dead "$call"
done
# Given up: each rank ends with an error, the late one included, which comes when both others have theirs.
late_rank_is_given_up() {
    FLASH_TEST_UNTIL='at last: ' ranks_end run 3 --enable-recovery --mca coll_flash_stall_seconds 2 \
        --mca coll_flash_stall_error 1 "$@" &&
        holds 3 'at last: MPI_ERR_OTHER' && holds 3 'once more: MPI_ERR_OTHER' &&
        holds 0 'called right' && holds + 'That rank is given up'
}
late_for_shm() {
    FLASH_TEST_UNTIL=$warned run 3 --mca coll_flash_stall_seconds 2 -- test_lost late "$1" \
        >"$log" 2>&1 &&
        holds 3 'at last: success' && holds 0 'called right' && told stalled &&
        holds + 'Waits for: *rank 1 of MPI_COMM_WORLD to send a message' &&
        holds + "Operation: *$operation, number 3 of communicator MPI_COMM_WORLD"
}
# Of those by recursive doubling it is told that they are, and that they wait on whatever is asked for.
# shellcheck disable=SC2034 # the runner's
late_in_recdbl() {
    FLASH_TEST_UNTIL=$warned FLASH_TEST_LINGER=3 FLASH_TEST_COUNT=40000 algorithm=recdbl run 3 \
        --mca coll_flash_stall_seconds 2 \
        --mca coll_flash_stall_error 1 -- test_lost late "$1" >"$log" 2>&1 &&
        holds 3 'at last: success' && holds 0 'called right' && told stalled
}
late_for_recdbl() {
    late_in_recdbl "$1" && holds 1 'Waits for: *rank 1 of MPI_COMM_WORLD to send a message' &&
        holds 1 'Waits for: *rank 1 of MPI_COMM_WORLD to take a message' &&
        holds 1 "Progress: *step 0 of 2, block of rank $2 of the communicator, segment 0" &&
        holds 1 "Progress: *step 0 of 2, block of rank $3 of the communicator, segment 0" &&
        holds 2 "Operation: *$operation by recursive doubling of communicator MPI_COMM_WORLD" &&
        holds 2 'The operation waits on' && holds 0 'That rank is given up'
}
with_threads() {
    OMPI_MPI_THREAD_LEVEL=3 "$@" && holds 3 ': MPI_THREAD_MULTIPLE'
}
# However many wait for it, one tells. On a loaded machine rank 1 may take a message and send the next one seconds later:
# that call may then be told of again, in its next step.
many_wait_in_recdbl() {
    late_in_recdbl gather_many && holds 2 'Progress: *step 0 of 2' &&
        holds + 'Waits for: *rank 1 of MPI_COMM_WORLD to'
}
point 'allgathers, by recursive doubling: a rank is late for many' many_wait_in_recdbl
for operation in allgather reduce-scatter; do
    call=gather more=()
    [[ $operation == allgather ]] || call=reduce more=(long)
    "${more[@]}" point "$operation, shared memory: a rank is late" over_shm late_for_shm "$call"
    "${more[@]}" point "$operation, shared memory: a late rank is given up" \
        over_shm late_rank_is_given_up -- test_lost late "$call"
    # What the rank before the late one waits for, and the rank behind it sends.
    blocks=(1 2)
    [[ $operation == allgather ]] || blocks=(0 1)
    point "$operation, by recursive doubling: a rank is late" late_for_recdbl "$call" "${blocks[@]}"
    long point "$operation, by recursive doubling, MPI_THREAD_MULTIPLE: a rank is late" \
        with_threads late_for_recdbl "$call" "${blocks[@]}"
    point "$operation: a rank is late" rank_is_late -- test_lost late "$call"
    "${more[@]}" point "$operation: a rank is late, and what it sends comes in" echoes_come_in "$call"
    point "$operation: a late rank is given up" late_rank_is_given_up -- test_lost late "$call"
done

plan
