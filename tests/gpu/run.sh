#!/usr/bin/env bash
#
# run.sh [CONFIGURE OPTION]...: the tests that want a real GPU, on a node that has one, with Open MPI, UCX and
# hwloc (in PATH, or named by the options) and the CUDA Toolkit; and figures, which go to build-gpu/results.txt, with
# traces beside it. Builds in ./build-gpu. No network is needed; where there are no autotools, bring `configure` and
# what autogen.sh makes beside it. The last line sums up.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=build-gpu

if ! nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; then
    echo "run.sh: no GPU: nvidia-smi does not answer" >&2
    exit 1
fi
[[ -x configure ]] || ./autogen.sh
mkdir -p "$folder"
cd "$folder"
../configure --enable-werror --with-cuda --without-mpich "$@" >/dev/null
make --silent -j"$(nproc)"
for tests in tests/gpu tests/mpi; do
    make --silent -j"$(nproc)" -C "$tests" check TESTS= >/dev/null
done

# The same tests as everywhere, by the real driver.
status=0
FLASH_TEST_DRIVER=libcuda.so.1 make --silent -C tests/mpi check TESTS="device.sh device_paths.sh device_layers.sh" || status=$?
count() {
    cat tests/mpi/device.trs tests/mpi/device_paths.trs tests/mpi/device_layers.trs | grep -c "^:test-result: $1" || true
}
((status == 0)) || cat tests/mpi/device.log tests/mpi/device_paths.log tests/mpi/device_layers.log

# Figures, of two and four ranks on this node.
launch() {
    timeout 120 mpirun -n "$1" --oversubscribe --mca mpi_yield_when_idle 1 \
        --mca opal_mca_base_component_path "$PWD/ompi_coll_flash/.libs:$(ompi_info --path pkglibdir --parsable | cut -d: -f3)" \
        --mca coll flash --mca coll_flash_on_node yes --mca coll_flash_cuda_plugin "$PWD/cuda/.libs/flash_cuda.so" \
        "${@:2}" || echo "run.sh: $* ends with status $?"
}
{
    date --utc +%F
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    timeout 120 tests/gpu/rates cuda/.libs/flash_cuda.so || echo "run.sh: rates ends with status $?"
    for collective in flash_iallgather flash_ireduce_scatter_block; do
        launch 2 "mpi_bench/$collective" -d cuda -m 1M:64M --seconds=1 --compute=sleep -f
    done
    components=$(ucx_info -d 2>/dev/null || true)
    if [[ $components == *'Component: cuda'* ]]; then # the same without UCX's own way
        for collective in flash_iallgather flash_ireduce_scatter_block; do
            launch 2 --mca coll_flash_cuda_direct no "mpi_bench/$collective" -d cuda -m 1M:64M --seconds=1 --compute=sleep -f
        done
    fi
    launch 2 --mca coll_flash_cuda_reduce 0 mpi_bench/flash_ireduce_scatter_block -d cuda -m 1M:64M --seconds=1
    if [[ -e mpi_bench/flash_cublas ]]; then
        for rows in 64 512 1024 2048 4096 8192; do
            for type in fp32 bf16; do
                launch 2 mpi_bench/flash_cublas -m "$rows" -n 4096 -k 4096 -t "$type" -p 2
            done
        done
        launch 4 mpi_bench/flash_cublas -m 8192 -n 2048 -k 4096 -t bf16
        # Opens in Perfetto, and by flash_timeline where matplotlib is.
        launch 2 --mca coll_flash_trace "$PWD/trace" mpi_bench/flash_cublas -m 2048 -n 4096 -k 4096 -t bf16 -p 2
        ls trace.* || echo "run.sh: no trace"
    fi
    if [[ -e mpi_bench/layer_kernels.fatbin ]]; then
        for type in fp32 bf16; do
            launch 2 mpi_bench/flash_mlp -m 4096 -k 1024 -n 4096 --compute=cublas --type="$type" -i 5
            launch 2 mpi_bench/flash_dp -m 256 -k 256 --compute=cublas --type="$type" -i 5
            launch 2 mpi_bench/flash_attention -m 512 -k 256 --heads=8 --causal --compute=cublas --type="$type" -i 5
            launch 2 mpi_bench/flash_ulysses -m 512 -k 256 --heads=8 --causal --compute=cublas --type="$type" -i 5
            launch 4 mpi_bench/flash_block -m 512 -k 256 --heads=8 --causal --compute=cublas --type="$type" -i 5
        done
    fi
} 2>&1 | tee results.txt
if command -v compute-sanitizer >/dev/null; then
    launch 2 compute-sanitizer --error-exitcode 9 tests/mpi/flash_device_tests test_device_stream allgather \
        reduce_scatter >sanitizer.txt 2>&1
    if grep '^run\.sh:' sanitizer.txt || ! grep 'ERROR SUMMARY' sanitizer.txt; then
        status=1
        cat sanitizer.txt
    fi
fi
echo "$(count PASS) passed, $(count '\(FAIL\|ERROR\|XPASS\)') failed, $(count SKIP) skipped"
exit "$status"
