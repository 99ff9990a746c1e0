#!/usr/bin/env bash
#
# random.sh [--long [OPERATIONS]]
#
# Random calls, types, communicators and orders of completion, every byte checked, and which way
# each call took: 3000 operations in jobs that flash serves, and some more, or with --long a
# million, with time and memory, which must not grow. FLASH_TEST_SEED in the environment gives
# other ones. By hand, run it in its build folder.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

seed=${FLASH_TEST_SEED:-20260424}
total=3000
[[ ${FLASH_TEST_TIER:-short} == short ]] || total=${FLASH_RANDOM_OPERATIONS:-10000}
more=() # options of random_ops
if [[ ${1:-} == --long ]]; then
    total=${2:-1000000}
    # No end in sight, but some operation within five minutes.
    export FLASH_TEST_TIMEOUT=1000000
    more=(--watch-memory --patience=300)
fi

# share PERCENT NP [MPIRUN OPTION]... -- [OPTION OF random_ops]...: so much of the operations.
share() {
    local operations=$((total * $1 / 100)) np=$2 own=() threads=1
    shift 2
    while [[ $1 != -- ]]; do
        own+=("$1")
        shift
    done
    shift
    if [[ ${1:-} == --threads=* ]]; then
        threads=${1#*=}
        if [[ ${FLASH_SANITIZER-} == thread ]]; then
            skip "np $np random_ops $1" \
                "ThreadSanitizer sees none of the order in Open MPI's own calls, drawn as well"
            return
        fi
    fi
    mpi "$np" "${own[@]}" -- random_ops --seed="$seed" --operations=$((operations / threads)) \
        "$@" "${more[@]}"
    if ((${#more[@]})); then
        sed -n 's/^seed.* %, /# &/p' "$output"
    fi
}

# Rings for the smallest operations, too: 100 percent.
options --mca coll_flash_algorithm ring
share 15 2 --
share 10 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 --
share 15 4 --
share 10 4 --mca coll_flash_progress off --
share 5 4 --mca coll_flash_progress on --mca coll_flash_segment_bytes 512 --bind-to none --
share 5 3 -x UCX_FLASH_TLS=tcp --
share 15 5 --
share 5 7 --
share 5 8 --
share 10 3 -- --threads=2
share 5 2 --mca coll_flash_progress off -- --threads=4
# Besides: some operations around the ring and some passed on, as by default; none.
options
share 2 4 -- --most=1000000
share 10 5 --mca coll_flash_costs "$costs_folder/small_rings" --
share 4 4 --mca coll_flash_costs "$costs_folder/pairwise" -- --most=100000
share 2 3 --mca coll_flash_costs "$costs_folder/pairwise" --mca coll_flash_segment_bytes 512 -- --threads=2
share 5 1 --
select_coll ^flash
share 8 3 --

if ((${#more[@]})); then
    echo "# seed $seed: $total operations asked for, $SECONDS s"
fi
plan
