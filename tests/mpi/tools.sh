#!/usr/bin/env bash
# flash_simulate, flash_compare, flash_plots and flash_tune: what the tools around the benchmarks say.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/benchmarks.bash"

# simulates FIGURES [OPTION]...: operation, ranks, milliseconds alone, with callbacks, that as a
# multiple of the ideal, % exposed, messages. Blocks of 1 MiB that take a second each, a latency of
# 1 ms, sums that take a second, callbacks that take two for a block.
simulates() {
    "$benchmarks/flash_simulate" --bytes=1M --rate=1048576 --latency=1000 --combine=1048576 \
        --compute-ratio=2 --csv=- "${@:2}" >"$scratch/simulated" 2>"$log" || return 1
    [[ $(awk -F, 'NR > 1 {
            printf "%s %d %.1f %.1f %.4f %.2f %d\n", $1, $2, $3, $5, $6, $7, $8
        }' "$scratch/simulated") == "$1" ]] || {
        cat "$scratch/simulated"
        return 1
    }
}
no_operation() {
    ! "$benchmarks/flash_simulate" --op=a2a >"$log" 2>&1 && holds 1 'give ag, rs or both'
}
point 'flash_simulate: no such operation' no_operation
# A block travels on each second, and the last sender hears of it a latency later.
point 'flash_simulate: allgather' simulates 'allgather 3 2003.0 6000.0 1.0000 0.00 2
allgather 5 4005.0 10000.0 1.0000 0.00 4
allgather 1000 1000000.0 2000000.0 1.0000 0.00 999' --op=ag --ranks=3,5,1000 --segment=1M
# A sum is sent on when it is done; with callbacks, the last waits for the one before it.
point 'flash_simulate: reduce-scatter' simulates 'reduce-scatter 2 2001.0 5000.0 1.0000 100.00 1
reduce-scatter 5 8004.0 11003.0 1.0003 25.07 4' --op=rs --ranks=2,5 --segment=1M
# Four segments to a block: the first has arrived long before the link is free for it.
point 'flash_simulate: segments' simulates 'allgather 3 2002.0 6000.0 1.0000 0.00 8' \
    --op=ag --ranks=3 --segment=256K
point 'flash_simulate: 100,000 ranks' simulates \
    'allgather 100000 100099000.0 200000000.0 1.0000 0.00 99999' \
    --op=ag --ranks=100000 --segment=1M
delayed() {
    "$benchmarks/flash_simulate" --ranks=64 --op=ag --jitter=1000 --seed="$1" --csv=- 2>/dev/null
}
differs() {
    delayed 1 >"$scratch/first" && delayed 1 >"$scratch/again" && delayed 2 >"$scratch/other" &&
        cmp "$scratch/first" "$scratch/again" && ! cmp -s "$scratch/first" "$scratch/other"
}
point 'flash_simulate: the seed decides about random delays' differs

# The comparison of a size, and pictures of it, from a prefix that the build's folders make up.
mkdir -p "$scratch/prefix/lib"
ln -s "$benchmarks" "$scratch/prefix/bin"
ln -s "${FLASH_COMPONENT_PATH%%:*}" "$scratch/prefix/lib/openmpi"
compares() {
    local variants='flash,.*,ring, flash-apart,.*,ring, own, blocking,' variant own_ucx=true
    if [[ ${FLASH_SANITIZER-} == thread ]]; then
        own_ucx=false
    else
        variants+=' own-ucx,'
    fi
    if [[ -x $benchmarks/mpich_iallgather ]]; then
        variants+=' mpich, mpich-async,'
    fi
    OMPI_MCA_coll_flash_on_node=yes timeout "$FLASH_TEST_TIMEOUT" python3 \
        "$top_srcdir/mpi_bench/flash_compare" --here 2 -m 1M:1M --rounds 1 --seconds 0.1 \
        --calls iallgather --prefix "$scratch/prefix" --peers "$benchmarks" \
        --csv "$scratch/compared" --json "$scratch/compared.json" >"$log" 2>&1 || ! $own_ucx || {
        cat "$log"
        return 1
    }
    for variant in $variants; do
        grep -q "^iallgather,here,2,1,1048576,$variant" "$scratch/compared" || {
            cat "$scratch/compared"
            return 1
        }
    done
}
not_served() {
    ! OMPI_MCA_coll_flash_priority=-1 timeout "$FLASH_TEST_TIMEOUT" python3 \
        "$top_srcdir/mpi_bench/flash_compare" --here 2 -m 1M:1M --rounds 1 --seconds 0.1 \
        --calls iallgather --prefix "$scratch/prefix" --peers "$scratch" --csv "$scratch/not" \
        >"$log" 2>&1 && holds 2 'FAILED: # NOTE: flash does not serve'
}
if command -v python3 >/dev/null; then
    point 'flash_compare' compares
    if [[ ${FLASH_SANITIZER-} == thread ]]; then
        skip 'flash_compare: own-ucx' "Open MPI's pml ucx crashes with ThreadSanitizer, without flash"
    fi
    point 'flash_compare: a job that flash does not serve is none of its figures' not_served
else
    skip 'flash_compare' 'no python3'
fi
draws() {
    "$1" "$top_srcdir/mpi_bench/flash_plots" --out "$scratch/plot" "$scratch/compared" &&
        grep -q '</svg>' "$scratch/plot-iallgather-1x2-overlap.svg" &&
        grep -q '</svg>' "$scratch/plot-iallgather-1x2-time.svg"
}
if find_matplotlib; then
    point 'flash_plots' draws "$python"
else
    skip 'flash_plots' "$reason"
fi

# Costs: exact points give back what they were made of, and a run writes what flash reads.
tune() {
    timeout $((5 * FLASH_TEST_TIMEOUT)) python3 "$top_srcdir/mpi_bench/flash_tune" "$@" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
}
fits() {
    awk -v OFS='\t' '
        function made(place, call, algorithm, fixed, rank, doubling, byte,   ranks, size, doublings, cost) {
            for (ranks = 2; ranks <= 8; ranks *= 2) {
                doublings++
                for (size = 4096; size <= 4194304; size *= 32) {
                    cost = fixed + rank * (ranks - 1) + doubling * doublings
                    sent = call ~ /bcast$/ ? size * doublings : (size - size / ranks) * (call ~ /allreduce$/ ? 2 : 1)
                    cost += byte * sent / 1000
                    wrong = cost / 500
                    print place, call, algorithm, ranks, size, algorithm, call ~ /^blocking/ ? cost / 1000 : wrong,
                        call ~ /^blocking/ ? wrong : cost / 1000
                }
            }
        }
        BEGIN {
            OFMT = "%.9f"
            print "place", "call", "algorithm", "ranks", "bytes", "served_by", "alone_us", "lost_us"
            made("network", "reduce_scatter", "pairwise", 170000, 30000, 7000, 3000)
            made("network", "reduce_scatter", "ring", 900000, 300000, 0, 0)
            made("node", "allgather", "shm", 0, 500, 0, 300)
            made("network", "allreduce", "fallback", 0, 0, 90000, 4000)
            made("network", "bcast", "fallback", 0, 5000, 0, 4000)
            made("network", "blocking_allreduce", "ring", 0, 20000, 0, 5000)
            made("network", "blocking_bcast", "ring", 3000, 0, 0, 2000)
            print "node", "allgather", "shm", 8, 8192, "fallback", 0, 12345
        }' >"$scratch/exact.tsv"
    tune --fit "$scratch/exact.tsv" && holds 1 '^network reduce_scatter  *pairwise 170000 30000 7000 3000$' &&
        holds 1 '^network reduce_scatter  *ring  *900000 300000 0 0$' &&
        holds 1 '^network allreduce  *fallback 0 0 90000 4000$' &&
        holds 1 '^network bcast  *fallback 0 5000 0 4000$' &&
        holds 1 '^network blocking_allreduce  *ring  *0 20000 0 5000$' &&
        holds 1 '^network blocking_bcast  *ring  *3000 0 0 2000$' &&
        holds 1 '^node    allgather  *shm  *0 500 0 300$' && holds 7 '^# 9 points, median error 0 %' &&
        holds 1 '1 left out: another algorithm served them'
}
# Three ranks: the line says from which size on all sizes were faster pairwise; without such points there is none.
fits_three() {
    awk -v OFS='\t' '
        function point(algorithm, ranks, size, cost) {
            print "network", "reduce_scatter", algorithm, ranks, size, algorithm, cost
        }
        BEGIN {
            print "place", "call", "algorithm", "ranks", "bytes", "served_by", "lost_us"
            for (size = 4098; size <= 70000; size *= 2) {
                point("fallback", 3, size, 100)
                point("pairwise", 3, size, size == 8196 || size > 20000 ? 90 : 110)
                point("pairwise", 2, size, 1)
            }
        }' >"$scratch/three.tsv"
    tune --fit "$scratch/three.tsv" && holds 1 '^network reduce_scatter pairwise_of_three 32784$' &&
        grep -v 'fallback' "$scratch/three.tsv" >"$scratch/no_three.tsv" && tune --fit "$scratch/no_three.tsv" &&
        holds 0 pairwise_of_three
}
tunes() {
    tune --node --ranks 2 --calls allgather,bcast,blocking_allreduce -m 4K:4K --rounds 1 --seconds 0.01 --prefix "$scratch/prefix" \
        --out "$scratch/tuned" --points "$scratch/points.tsv" && cp "$scratch/tuned" "$log" &&
        holds 3 '^node .* fallback .*[0-9]$' && holds 3 '^node .* ring .*[0-9]$' &&
        says 2 "serves this job (.*costs $scratch/tuned," 2 --mca coll_flash_verbose 1 \
            --mca coll_flash_costs "$scratch/tuned" -- "$benchmarks/flash_iallgather" -m 4K:4K -i 2 -x 1 --no-own
}
if command -v python3 >/dev/null; then
    point 'flash_tune: points that lie on a line' fits
    point 'flash_tune: three ranks' fits_three
    point 'flash_tune: the file is one that flash reads' tunes
else
    skip 'flash_tune' 'no python3'
fi

plan
