#!/usr/bin/env bash
# The Intel MPI Benchmarks, unchanged, with their own checks: the collectives that flash serves and that they have, around the ring.
#
# Debian has no package of them: they are taken from the folder IMB, where they were built with -DCHECK.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
options --mca coll_flash_algorithm ring --mca coll_flash_blocking yes

# checks NP PROGRAM CALL: 20 sizes, 0 among them, or 18 for sums of whole floats; each row's last column, of what is
# wrong, is 0.00; and no such call is passed on.
checks() {
    local np=$1 table=$scratch/table sizes=20
    [[ $3 != *[Rr]educe* ]] || sizes=18
    run "$np" --mca coll_flash_verbose 2 -- \
        "$IMB/$2" "$3" -npmin "$np" -iter 5 -iter_policy off -msglog 0:18 -time 5 >"$table" 2>"$log" &&
        (($(awk '$1 ~ /^[0-9]+$/ && $NF == "0.00"' "$table" | wc -l) == sizes)) &&
        grep -q 'defects *$' "$table" && holds + "flash: $3 of .*: ring\$" && holds 0 "flash: $3 of .*fall" &&
        return
    cat "$table"
    return 1
}

if [[ -z ${IMB-} ]]; then
    skip 'Intel MPI Benchmarks' 'no folder IMB given'
    plan
    exit 0
fi

for np in 2 3 4; do
    for call in Iallgather Iallgatherv Iallreduce Ialltoall Ialltoallv Ibcast Igather Igatherv Ireduce Ireduce_scatter \
        Iscatter Iscatterv; do
        point "np $np: IMB-NBC $call" checks "$np" IMB-NBC "$call"
    done
    for call in Allgather Allgatherv Allreduce Alltoall Alltoallv Bcast Reduce_scatter Reduce_scatter_block; do
        point "np $np: IMB-MPI1 $call" checks "$np" IMB-MPI1 "$call"
    done
done

plan
