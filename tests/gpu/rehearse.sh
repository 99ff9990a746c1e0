#!/usr/bin/env bash
#
# rehearse.sh [--build FOLDER] [RELEASE]: packs the kit of FOLDER (default: build-test) for a node with a GPU, and runs
# it from start to end in a minimal Debian (trixie) without MPI, compiler and network, over the stand-in for CUDA's
# driver. A point of TAP for each thing that is to be found; the last line sums up.
#
# The minimal system stays in build-rehearsal-RELEASE, with all results. Needs root, as debootstrap does, and
# namespaces; is skipped without.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=/dev/null
source tests/debian.bash

die() {
    echo "rehearse.sh: $1" >&2
    exit 1
}

build="build-test"
if [[ ${1-} == --build ]]; then
    build=${2:?a folder}
    shift 2
fi
if [[ ${1-} == -* ]]; then
    sed -n '3,/^$/s/^# \{0,1\}//p' tests/gpu/rehearse.sh
    exit 2
fi
if ((EUID != 0)) || ! unshare --mount --ipc --pid --net --fork true 2>/dev/null; then
    echo 'SKIP: the kit was not rehearsed: that needs root, and namespaces'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
release=${1:-trixie}
top=$PWD/build-rehearsal-$release
./install-deps.sh debootstrap iproute2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2034 # tap.bash's
output=$scratch/output
failures=0 skips=0 points=0
# shellcheck source=/dev/null
source tests/tap.bash

# pack KIT: as it would be in a copy of it, in which no file's mode is what it was.
pack() {
    local most=$((60 << 20))
    remove "$top/packed" "$top/$1"
    tests/gpu/pack.sh --build "$build" "$top/packed" && mkdir "$top/$1" &&
        cp --no-preserve=mode "$top"/packed/* "$top/$1" &&
        [[ $(du --bytes --summarize "$top/$1" | cut -f 1) -le $most ]]
}

# What a node has: the driver and its libraries, by those that stand in for them.
copy_driver() {
    local file
    mkdir -p "$top/driver"
    for file in "$build"/tests/gpu/.libs/lib{cuda,cudart,cublas,cublasLt}.so.[0-9]*; do
        [[ $file =~ \.so\.[0-9]+$ ]] && cp --dereference "$file" "$top/driver"
    done
    [[ -e $top/driver/libcuda.so.1 ]] && compgen -G "$top/driver/libcublasLt.so.*"
}

# Programs of the toolkit that only look as if they were.
make_tools() {
    mkdir -p "$top/tools"
    cat >"$top/tools/nvidia-smi" <<'END'
#!/bin/sh
echo 'a stand-in, 1.0, [N/A], Default, 1 MiB, 1, 1'
END
    cat >"$top/tools/compute-sanitizer" <<'END'
#!/bin/sh
while case $1 in -*) ;; *) false ;; esac do shift 2; done
"$@"
status=$?
echo '========= ERROR SUMMARY: 0 errors'
exit $status
END
    cat >"$top/tools/nvidia-cuda-mps-control" <<'END'
#!/bin/sh
if [ "${1-}" = -f ]; then
    : >"$CUDA_MPS_PIPE_DIRECTORY/control"
    while [ -e "$CUDA_MPS_PIPE_DIRECTORY/control" ]; do sleep 0.1; done
    exit
fi
read -r command
[ "$command" != quit ] || rm "$CUDA_MPS_PIPE_DIRECTORY/control"
END
    chmod +x "$top"/tools/*
}

# on_node RESULTS SCRIPT: the status of SCRIPT there; the kit is /elsewhere/kit, what it finds comes to RESULTS.
on_node() (
    mkdir -p "$top/results/$1"
    # shellcheck disable=SC2016 # expanded by the inner shells
    ROOT=$top/minimal TOP=$top KIT=${kit:-kit} RESULTS=$top/results/$1 SCRIPT=$2 unshare --net bash -euc '
        ip link set lo up
        source tests/debian.bash
        enter "$ROOT" "$TOP/$KIT:/elsewhere/kit:ro" "$TOP/driver:/driver:ro" "$TOP/tools:/tools:ro" \
            "$RESULTS:/results" -- bash -euc "
            export OUT=/results FLASH_TEST_DRIVER=/driver/libcuda.so.1 FLASH_KIT_SLOW=6
            run() { bash /elsewhere/kit/run.sh \"\$@\"; }
            $SCRIPT"'
)

# ends STATUS RESULTS SCRIPT: on_node's status.
ends() {
    local status=0
    on_node "$2" "$3" || status=$?
    echo "status $status instead of $1"
    [[ $status == "$1" ]]
}

# sums RESULTS TEXT...: the summary has a line of each.
sums() {
    local text
    cat "$top/results/$1/summary.txt"
    for text in "${@:2}"; do
        grep -e "$text" "$top/results/$1/summary.txt" >/dev/null || {
            echo "no line of $text"
            return 1
        }
    done
}

is_empty() {
    # shellcheck disable=SC2016 # expanded there
    on_node nothing 'for program in mpirun cc gcc nvcc nvidia-smi python3; do ! type "$program" || exit 1; done
        ls /proc/sys/net/ipv4/conf && ! ls /proc/sys/net/ipv4/conf | grep -v -e all -e default -e lo'
}

fits_a_screen() {
    wc -l "$top/results/$1/summary.txt" && (($(wc -l <"$top/results/$1/summary.txt") <= 80))
}

keeps() {
    ls -l "$top/results/$1" && grep '^=== device' "$top/results/$1/details.txt" &&
        tar --list --file "$top/results/$1/traces.tar.gz" | grep 'traces/.'
}

mkdir -p "$scratch/empty"
remove "$top/results"
[[ -d $top/minimal ]] || {
    mkdir -p "$top"
    install_release "$release" "$top/minimal"
}
point 'the kit is packed, and of at most 60 MiB' pack kit
point "the driver's stand-in, and those of its libraries" copy_driver
make_tools
point 'the node has no MPI, compiler, Python, network' is_empty

# --- all of it ---

# A part of the last step is enough.
point 'run.sh, from start to end' ends 0 whole 'FLASH_KIT_LIMITS="device=150" run'
point 'node: what there is' sums whole '^flash .*Open MPI .*CUDA' ' cores, ' '^nvidia-smi does not answer' \
    '^shared memory: ' '^devices: 2' '^UCX: .*tcp' '^ok  *node'
point 'smoke: the tests' sums whole '^4 of 4 tests pass' '^ok  *smoke'
point 'rates: copies and sums' sums whole '^one plain copy ' '^segments of 256 KiB' '^segments of   1 MiB' \
    '^segments of   4 MiB' '^sums .* 256 KiB' '^ok  *rates'
point 'collectives: each segment' sums whole '^iallgather .* 256 ' '^iallgather .* 1024 ' '^iallgather .* 4096 ' \
    '^ireduce_scatter_block .* 4096 ' '^ok  *collectives'
point 'efficiency: each shape' sums whole '^AG fp32 .* 1 .* staged' '^AG fp32 .* 16 .* staged' \
    '^RS fp32 .* 16 .* staged' '^AG bf16 .* 16 .* staged' '^AG fp32 .* traced' '^ok  *efficiency'
point 'behind: each kind of stream' sums whole '^behind .* default stream: ' '^behind .* a blocking stream: ' \
    '^behind .* a non-blocking stream: ' '^ok  *behind'
point 'mps, sanitizer: not there' sums whole '^SKIPPED  mps' '^SKIPPED  sanitizer'
point 'device: points' sums whole '^[1-9][0-9]* points pass, 0 fail' '^ok  *device'
point 'the end of the summary' sums whole '^7 passed, 0 failed, 2 skipped, 0 not run'
point 'the summary is about a screen' fits_a_screen whole
point 'details, and an archive of traces' keeps whole

# --- parts of it ---

point 'a step alone' ends 0 alone 'run behind'
point 'a step alone: its line' sums alone '^behind .* ms' '^1 passed, 0 failed, 0 skipped, 0 not run'
# shellcheck disable=SC2016 # expanded there
point "the toolkit's programs" ends 0 tools 'PATH=/tools:$PATH run node mps sanitizer'
point "the toolkit's programs: lines" sums tools '^GPU, driver.*a stand-in' '^without MPS: ' '^with MPS: ' \
    '^AG fp32 .* with MPS' '^ERROR SUMMARY: 0' '^3 passed'
# No process of the one that hangs is left.
# shellcheck disable=SC2016 # expanded there
point 'a step that fails, and one that hangs' ends 1 fails \
    'mount -o remount,size=16m /dev/shm; status=0; FLASH_KIT_LIMITS="smoke=1" run node smoke behind || status=$?
    ! grep --files-with-matches "flash_devic[e]_tests" /proc/[0-9]*/cmdline || exit 9; exit $status'
point 'they do not end the others' sums fails '^FAILED   node' \
    '^PROBLEM: /dev/shm has less than 256 MiB free.*Remedy: ' \
    '^FAILED   smoke: stopped at its limit of 1 s' '^ok  *behind' '^1 passed, 2 failed'
point 'steps behind the time' ends 0 late 'FLASH_KIT_SLOW=1 FLASH_KIT_SECONDS=1 run smoke rates'
point 'steps behind the time are named' sums late '^NOT RUN  smoke' '^NOT RUN  rates' '2 not run'
point 'a node without a driver' ends 1 none 'unset FLASH_TEST_DRIVER; run'
point 'a node without a driver: what is in the way' sums none '^PROBLEM: there is no CUDA driver.*Remedy: ' \
    "^PROBLEM: CUDA's libraries are not found: .*Remedy: " '^FAILED   node' '^NOT RUN  smoke' '^NOT RUN  device'
packs_without_wheel() {
    PIP_NO_INDEX=1 PIP_FIND_LINKS=$scratch/empty pack without |& tee "$scratch/packing" &&
        grep 'pack.sh: pip finds no libucx-cu.*: the kit has no UCX that knows CUDA' "$scratch/packing"
}
point 'no wheel of a UCX that knows CUDA: said by pack.sh' packs_without_wheel
kit=without point 'no such wheel: the kit works' ends 0 without 'run node efficiency'
point 'no such wheel: said on the node' sums without '^this kit has no UCX that knows CUDA' '^2 passed'
point 'no such step' ends 2 nonsense 'run nonsense'
plan

summary="$((points - failures - skips)) passed, $failures failed"
((skips == 0)) || summary+=", $skips skipped"
echo "$summary"
((failures == 0))
