#!/usr/bin/env bash
# The Fortran module mpix_flash_f08.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

if [[ ${FLASH_NO_FORTRAN:-} ]]; then
    skip 'the Fortran module' "configure: $FLASH_NO_FORTRAN"
    plan
    exit 0
fi

for np in 1 2 3 4 5; do
    mpi "$np" -- test_fortran ring
done
for np in 2 5; do
    mpi "$np" --mca coll_flash_segment_bytes 4096 -- test_fortran ring
    mpi "$np" --mca coll_flash_progress off -- test_fortran ring
done
point 'why sections are refused' says 3 'a buffer is an array section with gaps' 1 -- test_fortran ring

# The same without flash's component.
select_coll ^flash
for np in 1 2 3 4 5; do
    mpi "$np" -- test_fortran plain
done

plan
