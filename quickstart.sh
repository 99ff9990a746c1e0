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
program=("$prefix/bin/flash_gemm")
options=(--compute=offload --bytes=8M "--pieces=8")

if [[ " $* " == *' --help '* || " $* " == *' -h '* ]]; then
    sed -n '3,/^#$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]##*/}"
    echo "The benchmark gets \`${options[*]}\` first. Its options, once it is built:"
    [[ ! -x ${program[0]} ]] || exec "${program[@]}" --help
    echo "  (not built yet: ./quickstart.sh builds it)"
    exit 0
fi

./install-deps.sh
./build.sh build --prefix="$prefix"
# Only if something is new, or nothing installed. Of a relink libtool warns in any case.
if [[ -n $(find build/ompi_coll_flash/.libs build/fortran build/mpi_bench ompi_coll_flash/*.txt \
    -newer "$prefix/lib/pkgconfig/mpix_flash.pc" -print -quit 2>&1) ]]; then
    make --directory build --silent install 2>&1 >/dev/null |
        sed '/libtool: warning: relinking/d' >&2
fi

installed() {
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --variable="$1" mpix_flash
}
components=$(installed componentdir):$(ompi_info --path pkglibdir --parsable | cut -d: -f3)
mpi_options=(--mca opal_mca_base_component_path "$components" --mca coll flash)

if ! [[ -x ${program[0]} ]]; then
    echo "quickstart.sh: built without OpenBLAS, so without the benchmark flash_gemm" >&2
    exit 1
fi

echo "Your own programs: mpirun ${mpi_options[*]} ./app"
if reason=$(tests/cluster/hosts --probe 2>&1); then
    echo "flash_gemm on four emulated hosts, links of 2 Gbit/s, computing off the CPU:"
    exec tests/cluster/hosts -n 4 -r 2gbit "${mpi_options[@]}" -- \
        "${program[@]}" "${options[@]}" "$@"
fi
echo "flash_gemm on this host alone, because hosts cannot be emulated ($reason):"
if ((EUID == 0)); then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
exec mpirun -np 4 --oversubscribe --bind-to none "${mpi_options[@]}" --mca coll_flash_on_node yes \
    "${program[@]}" "${options[@]}" "$@"
