#!/usr/bin/env bash
#
# quickstart.sh [BENCHMARK OPTION]...: installs what is missing, builds coll/flash in ./build,
# installs it into ./install (or $PREFIX) and measures it: a distributed matrix product that
# communicates while it computes, on four emulated hosts, or on this one where hosts cannot be made.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
prefix=${PREFIX:-$PWD/install}

./install-deps.sh
./build.sh build --prefix="$prefix"
make --directory build --silent LIBTOOLFLAGS=--no-warnings install >/dev/null

installed() {
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --variable="$1" mpix_flash
}
components=$(installed componentdir):$(ompi_info --path pkglibdir --parsable | cut -d: -f3)
mpi_options=(--mca mca_base_component_path "$components" --mca coll flash)
program=("$prefix/bin/flash_gemm")

if ! [[ -x ${program[0]} ]]; then
    echo "quickstart.sh: built without OpenBLAS, so without the benchmark flash_gemm" >&2
    exit 1
fi

if reason=$(tests/cluster/hosts --probe 2>&1); then
    echo "flash_gemm on four emulated hosts, links of 2 Gbit/s, computing off the CPU:"
    exec tests/cluster/hosts -n 4 -r 2gbit "${mpi_options[@]}" -- \
        "${program[@]}" --compute=offload --bytes=8M --pieces=1,2 "$@"
fi
echo "flash_gemm on this host alone, because hosts cannot be emulated ($reason):"
if ((EUID == 0)); then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
exec mpirun -np 4 --oversubscribe --bind-to none "${mpi_options[@]}" \
    "${program[@]}" --compute=offload --bytes=8M --pieces=1,2 "$@"
