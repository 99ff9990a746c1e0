#!/usr/bin/env bash
# The timeline: what coll_flash_trace writes, and what flash_timeline makes of it.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

benchmarks=$top_builddir/mpi_bench

if ! command -v python3 >/dev/null; then
    skip 'the timeline' 'no python3'
    plan
    exit 0
fi

# traced NP BYTES KINDS PROGRAM [ARGUMENT]...: BYTES and KINDS as for trace.py.
traced() {
    rm -f "$scratch"/trace.*
    run "$1" --mca coll_flash_trace "$scratch/trace" -- "${@:4}" &&
        python3 "$top_srcdir/tests/mpi/trace.py" "$1" "$2" "$3" "$scratch"/trace.*.json
}

# Blocks of 1 MiB, and of a third and a half of that.
short=(-m 1M:1M -i 2 -x 1)
for np in 2 3; do
    point "np $np flash_iallgather" traced "$np" $(((np - 1) << 20)) combine,receive,send,wait \
        "$benchmarks/flash_iallgather" "${short[@]}"
done
point 'np 2 flash_ireduce_scatter_block' traced 2 $((1 << 19)) combine,receive,send,wait \
    "$benchmarks/flash_ireduce_scatter_block" "${short[@]}"
# A block of SIZE arrives in that many segments.
segments() { # SEGMENTS SIZE [ARGUMENT]...
    traced 2 0 combine,receive,send,wait "$benchmarks/flash_iallgather" -m "$2:$2" -i 2 -x 1 --no-own "${@:3}" &&
        python3 -c 'import collections, json, sys
names = collections.Counter((event["name"], event["ph"]) for event in json.load(open(sys.argv[1])))
print(names)
sys.exit(names["receive", "X"] != int(sys.argv[2]) * names["allgather", "b"] or not names["allgather", "b"])' \
            "$scratch/trace.0.json" "$1"
}
point 'np 2 flash_iallgather --segment: as long as it asks for' segments 16 1M --segment=64K
point 'np 2 flash_iallgather: usual segments' segments 4 1M
point 'np 2 flash_iallgather: the longer ones of long blocks' segments 8 4M
point 'np 2 test_extension' traced 2 0 callback,combine,receive,send,wait test_extension
point 'np 3 test_pending' traced 3 0 callback,combine,receive,send,wait test_pending any_order

# Of the traces of the point before.
pictures() {
    "$1" "$top_srcdir/mpi_bench/flash_timeline" --json="$scratch/all.json" \
        --picture="$scratch/all.svg" "$scratch"/trace.*.json &&
        grep -q '</svg>' "$scratch/all.svg" &&
        "$1" -c 'import json, sys
parts = [json.load(open(path)) for path in sys.argv[2:]]
sys.exit(json.load(open(sys.argv[1])) != sum(parts, []))' "$scratch/all.json" "$scratch"/trace.*.json
}
# From 0 to 10 ms: a callback until 4, its piece pending until 6, and the application in MPI from 5 on.
known_figures() {
    cat >"$scratch/known.json" <<'EOF'
[{"name":"process_name","ph":"M","pid":0,"args":{"name":"known","missing":0}},
{"name":"allgather","ph":"b","pid":0,"tid":0,"cat":"allgather","id":"0.7","ts":0,"args":{"operation":7}},
{"name":"callback","ph":"X","pid":0,"tid":1,"ts":0,"dur":4000,"args":{"operation":7}},
{"name":"pending piece","ph":"b","pid":0,"tid":0,"cat":"p","id":"0.7.0","ts":0,"args":{"operation":7}},
{"name":"pending piece","ph":"e","pid":0,"tid":0,"cat":"p","id":"0.7.0","ts":6000,"args":{"operation":7}},
{"name":"callback","ph":"X","pid":0,"tid":1,"ts":7000,"dur":500,"args":{"operation":8}},
{"name":"wait","ph":"X","pid":0,"tid":5,"ts":5000,"dur":6000},
{"name":"allgather","ph":"e","pid":0,"tid":0,"cat":"allgather","id":"0.7","ts":10000,"args":{"operation":7}}]
EOF
    "$1" "$top_srcdir/mpi_bench/flash_timeline" --operations 7 --picture="$scratch/known.svg" \
        "$scratch/known.json" | tee "$log" &&
        holds 1 '^known: 10.000 ms, of which 4.000 ms waiting with nothing computed$'
}
# Of the two operations with callbacks, the allgather comes first.
knows_operations() {
    run 2 --mca coll_flash_trace "$scratch/gemm" -- "$benchmarks/flash_gemm" --bytes=4K \
        --compute=offload --iterations=1 --warmup=0 --no-others >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    python3 -Bc 'import sys
sys.path.insert(0, sys.argv[1])
import papers
papers.Lab(".")
scatters, gathers = papers.operations(sys.argv[2])
sys.exit(not 0 <= gathers < scatters)' "$top_srcdir/mpi_bench" "$scratch/gemm.0.json"
}
if [[ -x $benchmarks/flash_gemm ]]; then
    point 'papers.py has a laboratory, and finds the operations of its pictures' knows_operations
else
    skip 'papers.py' 'built without OpenBLAS'
fi
if find_matplotlib; then
    point 'flash_timeline' pictures "$python"
    point 'flash_timeline: known figures' known_figures "$python"
else
    skip 'flash_timeline' "$reason"
fi

cannot_be_written() {
    says 2 'coll_flash_trace asks for could not be opened' 2 \
        --mca coll_flash_trace "$scratch/nowhere/trace" -- test_others && told no-trace
}
point 'np 2: no such folder: a message, and the job runs' cannot_be_written

untraced() {
    mkdir "$scratch/empty"
    (cd "$scratch/empty" && run 2 -- test_others) && [[ -z $(ls -A "$scratch/empty") ]]
}
point 'np 2: none unless asked for' untraced

plan
