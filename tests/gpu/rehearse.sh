#!/usr/bin/env bash
#
# rehearse.sh [--build FOLDER] [RELEASE]: packs the kit of FOLDER (default: build-test) for a node with a GPU, and runs
# it from start to end in a minimal Debian (trixie) without MPI, compiler and network, over the stand-in for CUDA's
# driver; then parts of it with programs that fail, hang, are killed and print wrong results. A point of TAP for each
# thing that is to be found; the last line sums up.
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
# shellcheck source=/dev/null
source tests/gpu/rehearsal.bash

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

# All that the kit's files are linked with is in it, in a minimal system, or comes with CUDA.
is_whole() {
    # shellcheck disable=SC2016 # expanded there
    on_node whole_kit 'mkdir /tmp/kit && cd /tmp/kit && gzip -dc /elsewhere/kit/kit.tar.gz | tar xf -
        { LD_LIBRARY_PATH=$PWD/lib:$PWD/flash/ompi_coll_flash/.libs:$PWD/flash/cuda/.libs:/driver \
            find . -path ./ucx-cuda -prune -o -type f \( -perm -u+x -o -name "*.so*" \) -exec ldd {} + || :
        LD_LIBRARY_PATH=$PWD/ucx-cuda/libucx/lib:/driver \
            find ./ucx-cuda -type f \( -perm -u+x -o -name "*.so*" \) -exec ldd {} + || :; } 2>/dev/null >/results/ldd
        grep -q "libopen-pal.so.40 => /tmp/kit/" /results/ldd
        ! grep "not found" /results/ldd | grep -v "libnvidia-ml\.so\.1\|libcuda\.so\.1"'
}

# How many times slower this host is than a node that is not busy with anything else, where a job begins within a second.
# Two readings, before and after.
slowness() {
    cat "$top"/results/{whole,alone}/summary.txt | sed -n 's/^a job of 2 ranks .*: \(.*\) s$/\1/p' |
        awk '$1 > slow { slow = $1 } END { print slow < 1 ? 1 : slow }'
}

# The steps' seconds, beside their limits. FLASH_TEST_LOADED=1 says that this host has other work: then no time is judged.
in_time() {
    local slow
    slow=$(slowness)
    bash "$top/kit/run.sh" --list >"$scratch/steps"
    awk -v slow="$slow" -v loaded="${FLASH_TEST_LOADED:-0}" 'BEGIN { print "times are divided by", slow }
        NR == FNR { limit[$1] = $2; next }
        $1 == "ok" && $2 != "device," {
            sub(",", "", $2)
            printf "%s: %d s, %.1f as on a node, of %d\n", $2, $3, $3 / slow, limit[$2]
            late += !loaded && $3 > limit[$2] * slow
            steps++
        }
        END { exit late > 0 || steps < 6 }' "$scratch/steps" "$top/results/whole/summary.txt"
}

# Rows of calls on host memory, whose size is a node's here, too: each has time enough.
rows_in_time() {
    awk -v slow="$(slowness)" -v loaded="${FLASH_TEST_LOADED:-0}" '/^the row .*(T\(host\)|own) took / {
            print
            late += !loaded && $(NF - 3) >= slow * $NF
            rows++
        }
        END { exit late > 0 || rows != 4 }' "$top/results/whole/details.txt"
}

# ends_within SECONDS RESULTS: all of it, as the last line of the summary tells.
ends_within() {
    tail -n 1 "$top/results/$2/summary.txt" | awk -v most="$1" '{ print } END { exit $(NF - 1) > most }'
}

# before RESULTS TEXT TEXT: lines of the summary, in that order.
before() {
    awk -v first="$2" -v second="$3" '$0 ~ first && !a { a = NR } $0 ~ second && !b { b = NR }
        END { exit !(a && b && a < b) }' "$top/results/$1/summary.txt"
}

# What an earlier run has left is there, and what the new one has is apart.
keeps_runs() {
    cmp "$top/results/whole/traces.tar.gz" "$scratch/traces.tar.gz" && [[ -s $top/results/whole/traces-2.tar.gz ]] &&
        grep -c '^##### coll/flash .* run [12]: ' "$top/results/whole/details.txt" | grep -x 2 &&
        sums whole '^coll/flash .* run 1: node ' '^coll/flash .* run 2: efficiency$' '^8 passed' '^1 passed'
}

refuses_folder() {
    mkdir -p "$scratch/own"
    : >"$scratch/own/file"
    ! tests/gpu/pack.sh --build "$build" "$scratch/own" 2>"$scratch/packing" && cat "$scratch/packing" &&
        grep "^pack.sh: $scratch/own is no kit" "$scratch/packing" && [[ -e $scratch/own/file ]]
}

# A wheel without the libraries that it has under names of its own.
refuses_wheel() {
    local package=libucx-cu
    package+=$(<"$scratch/cuda-major")
    mkdir -p "$scratch/wheel" "$scratch/poor"
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$scratch/wheel" "$package==1.22.0" || return
    python3 - "$scratch"/wheel/*.whl "$scratch/poor" <<'END'
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as whole, \
        zipfile.ZipFile(os.path.join(sys.argv[2], os.path.basename(sys.argv[1])), "w") as poor:
    for info in whole.infolist():
        if ".libs/" not in info.filename:
            poor.writestr(info, whole.read(info))
END
    ! PIP_NO_INDEX=1 PIP_FIND_LINKS=$scratch/poor tests/gpu/pack.sh --build "$build" "$top/poor" 2>"$scratch/packing" &&
        cat "$scratch/packing" && grep 'needs what it does not bring: libcudart' "$scratch/packing" && [[ ! -e $top/poor ]]
}

# Of device.sh, device_scratch.sh, device_paths.sh and device_layers.sh, of which not all has time here: a pattern of the
# names of points.
few='@(the pairwise schedule is taken|np 3 *pairwise* test_device bounded|np 2 *test_device_persistent rounds*'
few+='|np 3 flash_mlp -m 33 *bf16*)'

has_points() {
    local text
    for text in 'the pairwise schedule is taken' 'np 3 .*pairwise.* test_device bounded' \
        'np 2 .*test_device_persistent rounds' 'np 3 flash_mlp'; do
        grep "^ok .*$text" "$top/results/$1/details.txt" || return
    done
    sums "$1" '^[1-9][0-9]* points pass, 0 fail'
}

# Messages of Open MPI and PMIx, whose files are in the kit.
no_sorry() {
    ! grep --recursive --count 'Sorry!' "$top/results" | grep -v ':0$'
}

has_kernels() {
    lists_kernels kit | tee "$scratch/devices"
    [[ $(grep -c ' sm_80 sm_90 compute_90$' "$scratch/devices") == 2 ]]
}

is_empty() {
    # shellcheck disable=SC2016 # expanded there
    on_node nothing 'for program in mpirun cc gcc nvcc nvidia-smi python3; do ! type "$program" || exit 1; done
        ls /proc/sys/net/ipv4/conf && ! ls /proc/sys/net/ipv4/conf | grep -v -e all -e default -e lo'
}

fits_a_screen() {
    wc -l "$top/results/$1/summary.txt" && (($(wc -l <"$top/results/$1/summary.txt") <= 90))
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
point 'kernels for 8.0 and 9.0, and PTX for later devices' has_kernels
point "the driver's stand-in, and those of its libraries" copy_driver
make_tools
point 'the node has no MPI, compiler, Python, network' is_empty
point 'the kit has all that its files are linked with' is_whole
break_kit

# --- all of it ---

# A part of the last step is enough.
point 'run.sh, from start to end' ends 0 whole 'FLASH_KIT_LIMITS="device=150" run'
point 'node: what there is' sums whole '^flash .*Open MPI .*CUDA' ' cores, ' '^nvidia-smi does not answer' \
    '^shared memory: ' '^devices: 2' '^UCX: .*tcp' '^a job of 2 ranks that does nothing: ' '^ok  *node'
point 'smoke: the tests' sums whole '^4 of 4 tests pass' '^ok  *smoke'
point 'rates: copies and sums' sums whole '^one plain copy ' '^segments of 256 KiB' '^segments of   1 MiB' \
    '^segments of   4 MiB' '^sums .* 256 KiB' '^ok  *rates'
number='  *[0-9][0-9.]*'
numbers=$number$number$number$number none='  *-  *-  *-  *-$'
point 'collectives: each segment' sums whole "^iallgather, T(host)$numbers\$" \
    "^iallgather, Open MPI's own$number\$" "^ireduce_scatter_block, Open MPI's own$number\$" \
    "^iallgather, T(device), staged$numbers\$" "^ireduce_scatter_block, T(host)$numbers\$" \
    "^ireduce_scatter_block, T(device), staged$numbers\$" '^ok  *collectives'
point "collectives: UCX does not move the stand-in's memory" sums whole \
    "^no figures of flash_iallgather by CUDA's UCX: it has no transport cuda_copy here" \
    "^ireduce_scatter_block, T(device), by CUDA's UCX$none" "^no efficiency by CUDA's UCX"
point 'efficiency: each shape' sums whole '^AG fp32 .* 1 .* staged' '^AG fp32 .* 16 .* staged' \
    '^RS fp32 .* 16 .* staged' '^AG bf16 .* 16 .* staged' '^AG fp32 .* traced' '^ok  *efficiency'
point 'behind: each kind of stream' sums whole '^behind .* default stream: ' '^behind .* a blocking stream: ' \
    '^behind .* a non-blocking stream: ' '^ok  *behind'
point 'facts: lines' sums whole "^cuMemAlloc's memory: its context: CUDA_SUCCESS" \
    "^malloc's memory, the kind of it: CUDA_ERROR_INVALID_VALUE" '^a copy from ordinary memory .* takes ' '^ok  *facts'
point 'direct, waits, mps, sanitizer: not there' sums whole '^there is no UCX here that knows CUDA and moves' '^SKIPPED  direct' \
    '^the driver has no cuStream' '^SKIPPED  waits' '^SKIPPED  mps' '^SKIPPED  sanitizer'
point 'device: points' sums whole '^[1-9][0-9]* points pass, 0 fail' '^ok  *device'
point 'the end of the summary' sums whole '^8 passed, 0 failed, 4 skipped, 0 not run'
point 'the summary is about a screen' fits_a_screen whole
point 'details, and an archive of traces' keeps whole
point 'a step alone' ends 0 alone 'run behind node'
point "each step's seconds, and its limit" in_time
point "rows of host memory, and their time" rows_in_time

# --- parts of it ---

point 'device: a few points of each script' ends 0 scripts \
    "export FLASH_TEST_ONLY='$few'; FLASH_KIT_LIMITS=device=300 run device"
point 'device: each script, and nothing fails' has_points scripts
point 'steps alone: lines' sums alone '^behind .* ms' '^2 passed, 0 failed, 0 skipped, 0 not run'
cp "$top/results/whole/traces.tar.gz" "$scratch" || :
point 'a step again' ends 0 whole 'run efficiency'
point 'a step again: what was there' keeps_runs
# shellcheck disable=SC2016 # expanded there
point "the toolkit's programs" ends 0 tools 'PATH=/tools:$PATH run node mps sanitizer'
point "the toolkit's programs: lines" sums tools '^GPU, driver.*a stand-in' '^iallgather, without MPS, staged .*[0-9]' \
    '^iallgather, with MPS, staged .*[0-9]' '^AG fp32 .* with MPS' '^ERROR SUMMARY: 0' '^3 passed'
point 'what may hang comes last' before tools '^devices: ' '^GPU, driver'
# No process of the one that hangs is left.
# shellcheck disable=SC2016 # expanded there
point 'a step that fails, and one that hangs' ends 1 fails \
    'mount -o remount,size=16m /dev/shm; status=0; FLASH_KIT_LIMITS="collectives=1" run node collectives behind || status=$?
    ! grep --files-with-matches "flash_i[ar]" /proc/[0-9]*/cmdline || exit 9; exit $status'
point 'they do not end the others' sums fails '^FAILED   node' \
    '^PROBLEM: /dev/shm has less than 256 MiB free.*Remedy: ' \
    '^FAILED   collectives: stopped at its limit of 1 s' '^ok  *behind' '^1 passed, 2 failed'
point 'steps behind the time' ends 0 late 'FLASH_KIT_SLOW=1 FLASH_KIT_SECONDS=1 run smoke rates'
point 'steps behind the time are named' sums late '^NOT RUN  smoke' '^NOT RUN  rates' '2 not run'
point 'a node without a driver' ends 1 none 'unset FLASH_TEST_DRIVER; run'
point 'a node without a driver: what is in the way' sums none '^PROBLEM: there is no CUDA driver.*Remedy: ' \
    "^PROBLEM: CUDA's libraries are not found: .*Remedy: " '^FAILED   node' '^NOT RUN  smoke' '^NOT RUN  device'

# --- programs that fail, hang and lie ---

kit=broken
# broken NAME RESULTS STATUS BREAK SCRIPT: with lines of the summary in "$lines".
broken() {
    point "$1" ends "$3" "$2" "export BREAK='$4' PATH=/tools:\$PATH; $5"
    point "$1: lines" sums "$2" "${lines[@]}"
}
lines=('^1 of 4 tests pass' '^failed: flash_device_tests test_device many, status 1$' '^FAILED   smoke, ')
broken 'three tests fail' three 1 flash_device_tests=fails 'run smoke'
lines=('^iallgather, T(host)  *WRONG  *WRONG  *WRONG  *WRONG$' '^FAILED   collectives, ' '^AG fp32 .* WRONG RESULTS staged'
    '^AG fp32 .* WRONG RESULTS traced' '^RS fp32 .* WRONG RESULTS staged' '^FAILED   efficiency, ')
broken 'results are wrong' wrong 1 'flash_cublas=wrong flash_iallgather=wrong' 'run collectives efficiency'
lines=("^iallgather, T(host)$numbers\$" '^failed: ireduce_scatter_block, T(host), status 1$'
    "^ireduce_scatter_block, T(host)$none" '^FAILED   collectives, ')
broken 'a collective fails' failing 1 flash_ireduce_scatter_block=fails 'run collectives'
lines=('^one plain copy ' '^sums .* 256 KiB' '^FAILED   rates: stopped at its limit of 20 s'
    '^AG fp32 .* 1 .* staged' '^AG fp32 .* 16 .* staged' '^FAILED   efficiency: stopped at its limit of 30 s')
broken 'the limit of a step: the rows before it' limit 1 'rates=hangs flash_cublas=hangs' \
    'FLASH_KIT_LIMITS="rates=20 efficiency=30" run rates efficiency'
lines=('^behind .* a non-blocking stream: ' '^failed: behind, status 124, time was up' '^FAILED   behind, .*: status 1, ')
broken 'the limit of a job: the rows before it' job 1 flash_behind=hangs \
    'FLASH_KIT_SLOW=2 FLASH_KIT_LIMITS=behind=90 run behind'
lines=('^failed: rates, status 137$' '^FAILED   rates, .*: status 1, ' '^failed: behind, status 137$')
broken 'a program is killed' killed 1 'rates=killed flash_behind=killed' 'run rates behind'
lines=('^FAILED   rates, [^:]*: status [0-9]*, ' '^ok  *behind')
broken 'a step is killed' ended 1 rates=ends 'run rates behind'
lines=('^FAILED   rates: stopped at its limit of ')
broken 'a step that does not end when it is told to' stays 1 rates=stays 'FLASH_KIT_SLOW=1 FLASH_KIT_SECONDS=40 run rates'
point 'the time for all steps holds there, too' ends_within 40 stays
lines=('^failed: compute-sanitizer, status 124, time was up' '^FAILED   sanitizer, ')
broken 'a limit of next to nothing' least 1 flash_device_tests=hangs \
    'FLASH_KIT_SLOW=10 FLASH_KIT_LIMITS=sanitizer=30 run sanitizer'
lines=('^there was no time for a point' '^SKIPPED  device, ')
broken 'no time for a point' no_point 0 flash_device_tests=hangs 'FLASH_KIT_LIMITS=device=10 run device'
lines=('^failed: all places, all lengths: allgather, status 1$' '^FAILED   device, ')
broken 'a test of devices fails' device 1 flash_device_tests=fails 'FLASH_KIT_LIMITS=device=30 run device'
# Without the step `node`, too, a run says what it is and where.
lines=('^flash .*Open MPI .*CUDA' ' cores, ' '^GPU, driver.*a stand-in' '^the daemon of MPS does not start' '^FAILED   mps, ')
broken 'MPS does not start' daemon 1 mps 'run mps'
lines=('^failed: iallgather, without MPS, staged, status 1' "^iallgather, with MPS, staged$none" '^FAILED   mps, ')
broken 'figures of MPS fail' mps 1 flash_iallgather=fails 'run mps'
lines=('^the results of efficiency could not be kept' '^2 passed')
broken 'results that cannot be kept' unkept 0 none 'mkdir /results/traces.tar.gz; run efficiency behind'
if [[ -d $top/broken && $(tar --list --file "$top/broken/kit.tar.gz" ./ucx-cuda 2>/dev/null) ]]; then
    lines=("^no figures of flash_iallgather by CUDA's UCX: flash does not tell" "^iallgather, T(device), by CUDA's UCX  *-")
    broken 'UCX has cuda_copy, and does not move' unmoved 0 ucx_info=cuda_copy 'run collectives'
    # Staged, in truth.
    lines=('^16 of 16 tests pass' '^ok  *direct')
    broken 'UCX has cuda_copy, and moves: its tests' direct 0 'ucx_info=cuda_copy flash_iallgather=moved' 'run direct'
    lines=("^iallgather, T(device), by CUDA's UCX$numbers\$"
        "^ireduce_scatter_block, T(device), by CUDA's UCX  *-")
    broken 'UCX has cuda_copy, and moves' moved 0 'ucx_info=cuda_copy flash_iallgather=moved' 'run collectives'
else
    skip 'UCX has cuda_copy' 'this kit has no UCX that knows CUDA'
fi
# shellcheck disable=SC2034 # rehearsal.bash's
kit=kit

# --- pack.sh ---

packs_without_wheel() {
    PIP_NO_INDEX=1 PIP_FIND_LINKS=$scratch/empty pack without |& tee "$scratch/packing" &&
        grep 'pack.sh: pip finds no libucx-cu.* 1.*: the kit has no UCX that knows CUDA' "$scratch/packing"
}
point 'no wheel of a UCX that knows CUDA: said by pack.sh' packs_without_wheel
kit=without point 'no such wheel: the kit works' ends 0 without 'run node efficiency'
point 'no such wheel: said on the node' sums without '^this kit has no UCX that knows CUDA' '^2 passed'
point 'no such step' ends 2 nonsense 'run nonsense'
point 'a folder that is no kit' refuses_folder
sed -n 's/^CUDA_MAJOR = //p' "$build/cuda/Makefile" >"$scratch/cuda-major"
point 'a wheel that lacks libraries' refuses_wheel
point 'help files of Open MPI and PMIx are found' no_sorry
plan

summary="$((points - failures - skips)) passed, $failures failed"
((skips == 0)) || summary+=", $skips skipped"
echo "$summary"
((failures == 0))
