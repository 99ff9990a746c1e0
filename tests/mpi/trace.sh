#!/usr/bin/env bash
# The timeline: what coll_flash_trace writes, and what flash_timeline makes of it.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

benchmarks=$top_builddir/mpi_bench

# traced NP BYTES PROGRAM [ARGUMENT]...: BYTES as for trace.py.
traced() {
    rm -f "$scratch"/trace.*
    run "$1" --mca coll_flash_trace "$scratch/trace" -- "${@:3}" &&
        python3 "$top_srcdir/tests/mpi/trace.py" "$1" "$2" "$scratch"/trace.*.json
}

# Three allgathers of 1 MiB blocks: each rank receives the others'.
for np in 2 3; do
    point "np $np flash_iallgather" traced "$np" $(((np - 1) << 20)) \
        "$benchmarks/flash_iallgather" -m 1M:1M -i 2 -x 1
done
point 'np 3 flash_ireduce_scatter' traced 3 0 "$benchmarks/flash_ireduce_scatter" -m 1M:1M -i 2 -x 1
point 'np 2 test_extension' traced 2 0 test_extension
point 'np 3 test_pending' traced 3 0 test_pending any_order

# Of the traces of the point before.
pictures() {
    "$1" "$top_srcdir/mpi_bench/flash_timeline" --json="$scratch/all.json" \
        --picture="$scratch/all.svg" "$scratch"/trace.*.json &&
        grep -q '</svg>' "$scratch/all.svg" &&
        "$1" -c 'import json, sys
parts = [json.load(open(path)) for path in sys.argv[2:]]
sys.exit(json.load(open(sys.argv[1])) != sum(parts, []))' "$scratch/all.json" "$scratch"/trace.*.json
}
if find_matplotlib; then
    point 'flash_timeline' pictures "$python"
else
    skip 'flash_timeline' "$reason"
fi

cannot_be_written() {
    says 1 'coll_flash_trace asks for could not be opened' 2 \
        --mca coll_flash_trace "$scratch/nowhere/trace" -- test_others
}
point 'np 2: no such folder: a message, and the job runs' cannot_be_written

untraced() {
    mkdir "$scratch/empty"
    (cd "$scratch/empty" && run 2 -- test_others) && [[ -z $(ls -A "$scratch/empty") ]]
}
point 'np 2: none unless asked for' untraced

plan
