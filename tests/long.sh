#!/usr/bin/env bash
#
# long.sh [--folder FOLDER] SLICE...: the long tier, which test.sh leaves out, by slices of some minutes.
#
#   tests/long.sh --list     the slices, and why they are long
#   tests/long.sh --today    the one that is due today, by the date: all of them come in turn; --due names it
#   tests/long.sh all        all of them
#
# FOLDER is where test.sh has built, build-test unless told otherwise; slices with tools of their own build
# in folders beside it. The last line sums up; FOLDER/long-summary has its numbers.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

slices='
engine          the engine and shared memory: all random cases: minutes of computation
orders-0        all orders of events of up to 4 ranks: a fifth of the cases, minutes of computation
orders-1        likewise
orders-2        likewise
orders-3        likewise
orders-4        likewise
devices         the memory of devices, on further ranks and with further settings
layers          the benchmarks and layers, on further ranks, types and sizes
rings           allgathers, reduce-scatters, allreduces, all-to-alls: all types and operations on up to 8 ranks
shm             calls through shared memory and by reading, likewise
recdbl          calls by recursive doubling and pairwise ones, likewise
extension       the calls of <mpix_flash.h>, on further ranks
requests        requests and memory, likewise
waits           deaths and faults, which are noticed after seconds; emulated hosts
mpich           the tests of collectives that MPICH has, with flash: 22 MB of sources
programs        PETSc, Quantum ESPRESSO and CP2K, with flash and without: 200 MB of packages
launchers       Slurm on emulated hosts; ranks in containers of all kinds: a job for each
random-0        100,000 random operations
random-1        another 100,000
large           more than 2^31 bytes: 11 GiB of memory
kit             the kit for a node with a GPU, in a minimal Debian
asan-units      AddressSanitizer and UBSan: a build of its own, and the unit tests
asan            likewise: calls around the ring
asan-shm        likewise: calls through shared memory, and by reading
asan-recdbl     likewise: calls by recursive doubling
tsan-units      ThreadSanitizer: a build of its own, and the unit tests
tsan            likewise: requests and threads
tsan-shm        likewise: calls through shared memory
tsan-requests   likewise: the requests of such calls
valgrind        the programs under valgrind
mutations-0     mutations of the library, each of which a test of the short tier must notice: every tenth
mutations-1     likewise
mutations-2     likewise
mutations-3     likewise
mutations-4     likewise
mutations-5     likewise
mutations-6     likewise
mutations-7     likewise
mutations-8     likewise
mutations-9     likewise
rdma-2x1        virtual machines with software RoCE: two with a rank each; everything there is emulated
rdma-2x2        likewise: two with two ranks each
rdma-rails      likewise: two with two RDMA devices each
rdma-3x1        likewise: three with a rank each
rdma-random     likewise: random operations
rdma-deaths     likewise: ranks that die
rdma-faults     likewise: machines and devices that go
'
names=$(awk 'NF { print $1 }' <<<"$slices")

due() {
    # shellcheck disable=SC2206 # a list of words
    local all=($names)
    echo "${all[$(($(date +%s) / 86400 % ${#all[@]}))]}"
}

folder='build-test'
if [[ ${1-} == --folder ]]; then
    folder=$2
    shift 2
fi
case ${1-} in
--list)
    printf '%s' "${slices#?}"
    exit 0
    ;;
--due)
    due
    exit 0
    ;;
--today) set -- "$(due)" ;;
all)
    # shellcheck disable=SC2086 # likewise
    set -- $names
    ;;
'' | -*)
    sed -n '3,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac

# in_folder FOLDER PLACE TEST...: these tests of tests/PLACE, of that build.
in_folder() {
    local build=$1 place=$2
    shift 2
    make --silent --directory "$build" -j"$(nproc)" >/dev/null
    make --silent --directory "$build/tests/$place" --keep-going -j"$(nproc)" check TESTS="$*"
}

# all_of PLACE TEST...: all points of these tests.
all_of() {
    FLASH_TEST_TIER=all in_folder "$folder" "$@"
}

# with_tool NAME PLACE TEST...: tests of tests/PLACE, of the short tier, in a build with that sanitizer.
with_tool() {
    local build=build-$1 place=$2
    shift 2
    ./build.sh "$build" --enable-werror "--enable-${build#build-}"
    make --silent --directory "$build" -j"$(nproc)" check TESTS= >/dev/null
    in_folder "$build" "$place" "$@"
}
units() {
    with_tool "$1" unit test_shm test_shm_failures test_shm_reading test_recdbl test_engine_errors \
        test_engine_peers test_engine_ring test_fake_transport test_leaks test_pool test_progress \
        test_progress_thread test_trace
}

# every_tenth_mutation K: from the Kth on.
every_tenth_mutation() {
    local every
    mapfile -t every < <(tests/mutate.sh --list | awk -v k="$1" 'NR % 10 == k { print $1 }')
    # What hangs counts as noticed: not what merely waits for a core.
    FLASH_TEST_TIMEOUT=${FLASH_TEST_LOADED:+150} tests/mutate.sh "${every[@]}"
}

run_slice() {
    case $1 in
    engine)
        all_of unit test_shm test_engine_errors test_engine_gives_up test_engine_peers test_engine_ring test_leaks
        ;;
    orders-*) FLASH_TEST_PART=${1#*-}/5 all_of unit test_engine_interleavings ;;
    devices) all_of mpi device.sh device_failures.sh device_paths.sh device_scratch.sh ;;
    layers) all_of mpi benchmarks.sh device_layers.sh layers.sh verdict.sh && all_of mpi install.sh ;;
    rings) all_of mpi allgather.sh allreduce.sh alltoall.sh blocking.sh chains.sh gatherv.sh merge.sh reduce_scatter.sh ;;
    shm) all_of mpi shm.sh shm_requests.sh read.sh rights.sh ;;
    recdbl) all_of mpi pairwise.sh pairwise_small.sh recdbl.sh recdbl_requests.sh ;;
    extension) all_of mpi callback_thread.sh extension.sh fallback.sh pending.sh ;;
    requests) all_of mpi components.sh failures.sh growth.sh life.sh persistent.sh requests.sh setup.sh sizes.sh spawn.sh starting.sh ;;
    waits) all_of mpi faults.sh lost.sh messages.sh no_memory.sh releases.sh && all_of cluster cluster.sh networks.sh turns.sh ;;
    launchers)
        # Without the right to install Slurm, its script skips what it cannot start.
        ./install-deps.sh munge slurmctld slurmd slurm-client || :
        all_of cluster slurm.sh && all_of mpi containers.sh
        ;;
    mpich)
        # Where the sources cannot be reached, its script skips them.
        local tests=${MPICH_TESTS-}
        [[ $tests ]] || tests=$(tests/mpi/mpich-tests.sh "$folder/mpich-tests") || (($? == 77)) || return
        MPICH_TESTS=$tests all_of mpi mpich.sh
        ;;
    programs)
        # Without the right to install packages, its script skips what is not there.
        ./install-deps.sh python3-petsc4py quantum-espresso quantum-espresso-data cp2k || :
        all_of mpi programs.sh
        ;;
    rdma-*) tests/rdma/run.sh --build "$folder" "${1#*-}" ;;
    random-*) FLASH_RANDOM_OPERATIONS=100000 FLASH_TEST_SEED=2026112${1#*-} all_of mpi random.sh ;;
    large) all_of mpi large.sh ;;
    kit) tests/gpu/rehearse.sh --build "$folder" ;;
    asan-units) units asan ;;
    asan) with_tool asan mpi extension.sh failures.sh persistent.sh requests.sh sizes.sh ;;
    asan-shm) with_tool asan mpi shm.sh shm_requests.sh read.sh ;;
    asan-recdbl) with_tool asan mpi recdbl.sh recdbl_requests.sh ;;
    tsan-units) units tsan ;;
    tsan) with_tool tsan mpi pending.sh persistent.sh requests.sh ;;
    tsan-shm) with_tool tsan mpi shm.sh ;;
    tsan-requests) with_tool tsan mpi shm_requests.sh ;;
    valgrind) ./install-deps.sh valgrind && make --silent --directory "$folder" check-valgrind ;;
    mutations-*) every_tenth_mutation "${1#*-}" ;;
    esac
}

for slice in "$@"; do
    grep -q -x -- "$slice" <<<"$names" || {
        echo "long.sh: there is no slice $slice: see tests/long.sh --list" >&2
        exit 2
    }
done
mkdir -p "$folder"
rm -f "$folder/long-summary"
passed=0 failed=0 skipped=0
log=$folder/long.log
for slice in "$@"; do
    echo "=== long tier: $slice ==="
    SECONDS=0 status=0
    run_slice "$slice" 2>&1 | tee "$log" || status=$?
    ok=$(grep -v '^ok .*# SKIP' "$log" | grep -c '^PASS: \|^ok ' || :)
    not_ok=$(grep -c '^\(FAIL\|ERROR\): \|^not ok ' "$log" || :)
    skips=$(grep -c '^SKIP: \|^ok .*# SKIP' "$log" || :)
    if ((ok + skips == 0 || (status != 0 && not_ok == 0))); then
        echo "FAIL: $slice ended with status $status: see above"
        not_ok=$((not_ok + 1))
    fi
    echo "=== $slice: $ok passed, $not_ok failed, $skips skipped, $SECONDS s ==="
    passed=$((passed + ok)) failed=$((failed + not_ok)) skipped=$((skipped + skips))
done
echo "$passed $failed $skipped" >"$folder/long-summary"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
