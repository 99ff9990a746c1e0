#!/usr/bin/env bash
#
# run.sh [CONFIGURE OPTION]...: the tests that want a real GPU, on a node that has one, with Open MPI, UCX and
# hwloc (in PATH, or named by the options) and the CUDA Toolkit. Builds in ./build-gpu. No network is needed; where
# there are no autotools, bring `configure` and what autogen.sh makes beside it. The last line sums up.
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
FLASH_TEST_DRIVER=libcuda.so.1 make --silent -C tests/mpi check TESTS=device.sh || status=$?
count() {
    grep -c "^:test-result: $1" tests/mpi/device.trs || true
}
((status == 0)) || cat tests/mpi/device.log
echo "$(count PASS) passed, $(count '\(FAIL\|ERROR\|XPASS\)') failed, $(count SKIP) skipped"
exit "$status"
