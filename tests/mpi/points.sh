#!/usr/bin/env bash
# The tests' own machinery: points that share a job, of which some fail, die or hang.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# inner LINE...: a script of these lines; what it prints is in the log.
inner() {
    printf '%s\n' 'set -euo pipefail' "source '$top_srcdir/tests/mpi/runner.bash'" "$@" plan >"$scratch/inner.sh"
    env -u FLASH_TEST_TIER -u FLASH_TEST_ONLY -u FLASH_TEST_TIMES FLASH_TEST_TIMEOUT=20 \
        top_srcdir="$top_srcdir" top_builddir="$top_builddir" MPIRUN="$MPIRUN" \
        FLASH_COMPONENT_PATH="$FLASH_COMPONENT_PATH" bash "$scratch/inner.sh" >"$log" 2>&1
}

shares() {
    inner 'mpi 2 -- test_points passes' 'mpi 2 -- test_points passes' 'echo "jobs: ${#jobs[@]}"' &&
        holds 1 '^jobs: 1$' && holds 2 '^ok ' && holds 1 '^1\.\.2$'
}
point 'points of the same ranks share a job' shares

fails() {
    inner 'mpi 2 -- test_points passes' 'mpi 2 -- test_points fails' 'mpi 2 -- test_points passes' &&
        holds 2 '^ok .* passes$' && holds 1 '^not ok .* fails$' &&
        holds 1 'rank 1 of 2, case fails: this rank fails'
}
point 'one that fails is named, and says why' fails

dies() {
    inner 'mpi 2 -- test_points passes' 'mpi 2 -- test_points dies' 'mpi 2 -- test_points passes segment' \
        'mpi 3 -- test_points passes' && holds 3 '^ok ' && holds 1 '^not ok .* dies$'
}
FLASH_TEST_EXPECTED=0 point 'one that dies is named, and those behind it run' dies

hangs() {
    inner 'mpi 2 -- test_points hangs' 'mpi 2 -- test_points passes' && holds 1 '^ok .* passes$' &&
        holds 1 '^not ok .* hangs$' && holds + 'rank [01] of 2 hangs in case hangs'
}
point 'one that hangs is named, with the case, and those behind it run' hangs

# Neither hides the other.
fails_and_dies() {
    inner 'mpi 2 -- test_points fails' 'mpi 2 -- test_points dies' 'mpi 2 -- test_points passes' &&
        holds 1 '^ok ' && holds 1 '^not ok .* fails$' && holds 1 '^not ok .* dies$'
}
point 'one that dies behind one that fails is named, too' fails_and_dies

dies_at_end() {
    inner 'mpi 2 -- test_points dies_at_end' 'mpi 2 -- test_points passes' && holds 2 '^ok ' &&
        holds 1 '^not ok .* passes: the end of its job$'
}
point 'a death in MPI_Finalize is told apart' dies_at_end

is_long() {
    inner 'long mpi 2 -- test_points fails' 'mpi 2 -- test_points passes' && holds 1 '^ok ' && holds 0 '^not ok '
}
point 'the long tier is left out' is_long

# Each script that has long points is in a slice of the long tier.
slices_are_whole() {
    local script missing=0
    for script in $(grep -l '^ *\(beside \)\?long \|"\${\(more\|rarely\)\[@\]}"' "$top_srcdir"/tests/{mpi,cluster}/*.sh); do
        grep -q "all_of .*\b${script##*/}" "$top_srcdir/tests/long.sh" && continue
        echo "no slice of tests/long.sh has ${script##*/}"
        missing=1
    done
    return $missing
}
point 'long points are in slices' slices_are_whole

if [[ -d $top_srcdir/tests/mutations ]]; then
    point 'mutations find what they break' "$top_srcdir/tests/mutate.sh" --check
else
    skip 'mutations find what they break' 'they are not in this package'
fi

# Each point has its own settings, on each communicator, and leaves none behind.
mpi 2 -x FLASH_TEST_EXPECTED=4096 --mca coll_flash_segment_bytes 4096 -- test_points segment
mpi 2 -x FLASH_TEST_EXPECTED=0 -- test_points segment
mpi 2 -x FLASH_TEST_EXPECTED=8192 --mca coll_flash_segment_bytes 8192 -- test_points segment
select_coll ^flash
mpi 2 -- test_points passes

plan
