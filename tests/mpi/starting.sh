#!/usr/bin/env bash
# What flash exchanges before its first operation: what jobs send and ask for is what flash_scale counts.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# shellcheck disable=SC2034 # the runner's
algorithm=ring shm=auto
scale=$top_builddir/mpi_bench/flash_scale

# Each rank must hear of each other one exactly once.
many_fit() {
    local ranks
    ranks=$(seq 2 300)
    # shellcheck disable=SC2086 # numbers
    "$scale" --per-node=7 $ranks 100000 >"$log" && [[ $(grep -c '^MPI_Init' "$log") == 300 ]] &&
        awk -F, '$1 == "MPI_Init" && ($5 != $2 - 1 || 2 ^ $4 < $2 || 2 ^ ($4 - 1) >= $2) { exit 1 }' "$log"
}
point 'flash_scale: among 2 to 300, and 100000, ranks each hears once of each' many_fit
as_documented() {
    diff <(grep -v '^#' "$top_srcdir/docs/results/scale.tsv" | sed 1d) \
        <("$scale" --per-node=64 64 1000 10000 100000 | sed 1d | tr , '\t')
}
point "flash_scale counts what the documents' table has" as_documented
refuses_nonsense() {
    ! "$scale" >"$log" 2>&1 && holds + 'give numbers of ranks' && ! "$scale" 1 >"$log" 2>&1 && holds + RANKS
}
point 'flash_scale: no ranks, and one' refuses_nonsense

# private COMPONENT [MPIRUN OPTION]...: memory that the mean rank has for itself, in KiB, behind MPI_Init, and behind calls
# by the ring.
private() {
    coll=$1 run 4 "${@:2}" -- "$top_builddir/mpi_bench/flash_startup" 1024 >"$log" 2>&1 &&
        awk -F, '/^MPI_/ { init = init == "" ? $4 : init; last = $4 } END { print init, last }' "$log"
}
# UCX alone may take more, as it does where Open MPI's own messages go by it.
memory() {
    local init last own_init own_last ucx most
    read -r init last < <(private flash) && read -r own_init own_last < <(private ^flash) &&
        read -r ucx _ < <(private ^flash --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any) || return
    most=$((ucx - own_init > 2048 ? ucx - own_init : 2048))
    echo "with flash $init and $last KiB, without $own_init and $own_last (behind MPI_Init, behind calls); pml ucx $ucx" >"$log"
    ((own_init > 0 && init - own_init <= 307 && last - own_last <= most)) || { cat "$log" && return 1; }
}
if sanitized; then
    skip 'memory of a process' "a sanitizer's own is larger"
else
    point 'a process has 0.3 MiB more behind MPI_Init, and 2 MiB, or what UCX takes, behind calls by the ring, at most' memory
fi

# Open MPI 5's mpirun is a name of this launcher's.
by_prterun() {
    MPIRUN=$scratch/prterun says 3 'serves this job' 3 --mca coll_flash_verbose 1 -- test_allgather counts
}
if [[ $(command -v prterun) ]]; then
    # shellcheck disable=SC2016 # expanded by the new shell
    printf '#!/bin/sh\nexec prterun --personality ompi "$@"\n' >"$scratch/prterun"
    chmod +x "$scratch/prterun"
    point 'prterun starts the ranks' by_prterun
else
    skip 'prterun starts the ranks' 'it comes with Open MPI 5'
fi

why=
if sanitized; then
    why="a sanitizer's library is to be loaded first"
elif ! "$OMPI_INFO" --parsable | grep -q '^mca:pml:monitoring:'; then
    why='this Open MPI has no pml monitoring, which counts messages'
fi
if [[ $why ]]; then
    skip 'messages, look-ups and peers before the first operation' "$why"
    plan
    exit
fi

# expected NP CALL: of the rank that has most, by flash_scale: messages and look-ups until the end of CALL, the peers of
# its messages, and their number.
expected() {
    "$scale" "$1" | awk -F, -v call="$2" '
        NR == 1 || (call == "none" && $1 != "MPI_Init") || (call == "ring" && $1 == "exchange") { next }
        { messages += $4; lookups += $6; peers = $7 > peers ? $7 : peers }
        END { print messages, lookups, peers }'
}

# Of Open MPI, what pml monitoring has seen, a file for each rank; of PMIx, what pmix_counts.c tells.
seen() {
    awk '$1 == "I" || $1 == "E" {
             sent[$2] += $6; met[$2, $3] = met[$3, $2] = 1
         }
         /^FLASH_TEST_PMIX/ { lookups = $2 > lookups ? $2 : lookups }
         END {
             for (pair in met) { split(pair, of, SUBSEP); peers[of[1]]++ }
             for (rank in sent) {
                 messages = sent[rank] > messages ? sent[rank] : messages
                 most = peers[rank] > most ? peers[rank] : most
             }
             print messages + 0, lookups + 0, most + 0
         }' "$log" "$scratch"/seen.*
}

# as_counted NP CALL
as_counted() {
    local expected seen
    # shellcheck disable=SC2034 # run's
    local tool=(env "LD_PRELOAD=$programs/.libs/libmessages.so:$programs/.libs/libpmix_counts.so")
    rm -f "$scratch"/seen.*
    run "$1" --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 \
        --mca pml_monitoring_filename "$scratch/seen" --mca coll_flash_progress off \
        -- "$programs/starting_calls" "$2" >"$log" 2>&1 || { cat "$log" && return 1; }
    expected=$(expected "$1" "$2")
    seen=$(seen)
    echo "expected $expected; seen $seen (messages, look-ups, peers of the rank that has most)" >>"$log"
    [[ $seen == "$expected" ]] || { cat "$log" && return 1; }
}

for np in 2 3 5 16; do
    for call in none ring exchange; do
        more=()
        [[ $np != 16 || $call == exchange ]] || more=(long)
        "${more[@]}" point "np $np, $call: messages, look-ups and peers are those that flash_scale counts" as_counted "$np" "$call"
    done
done
long point 'np 64: likewise' as_counted 64 exchange

# What one process alone needs of another is not told to all hosts.
tells_all_little() {
    as_counted 2 none && awk '/^FLASH_TEST_PMIX/ { ranks++; most = $9 > most ? $9 : most }
        END { exit !(ranks == 2 && most > 0 && most < 128) }' "$log"
}
point 'PMIx holds less than 128 bytes of a process for all hosts' tells_all_little

# One that a process without flash would not have.
does_not_wait() {
    as_counted 3 none && holds 3 ' 0 patient'
}
if ((ompi_major >= 5)); then
    point 'PMIx is asked for the releases of this node, and does not wait for them' does_not_wait
fi

plan
