#!/usr/bin/env bash
#
# pack.sh [--build FOLDER] [--libucx VERSION] [KIT]: makes a folder to copy to a node that has a GPU, its driver and CUDA's
# libraries, but neither MPI, a compiler nor a network. There, `run.sh` in it runs the tests and benchmarks.
#
# KIT (default: build-kit) then has run.sh and an archive: flash's build of FOLDER (default: build-test, which is
# built if it is not there), Open MPI, UCX, hwloc and OpenBLAS as they are installed here, and a UCX that knows
# CUDA, from the Python package libucx-cuN for CUDA N, if pip finds it: that VERSION, or the one that was tried. No
# path in it matters. An earlier kit gives way; a folder that holds anything else is left alone.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
most=$((56 << 20)) # bytes of the kit, which may have to travel beside the sources

die() {
    echo "pack.sh: $1" >&2
    exit 1
}

build="build-test"
libucx=1.22.0
while [[ ${1-} == --build || ${1-} == --libucx ]]; do
    case $1 in
    --build) build=${2:?a folder} ;;
    --libucx) libucx=${2:?a version} ;;
    esac
    shift 2
done
if [[ ${1-} == -* ]] || (($# > 1)); then
    sed -n '3,/^$/s/^# \{0,1\}//p' tests/gpu/pack.sh
    exit 2
fi
kit=${1:-build-kit}
if [[ -e $kit && ! -e $kit/kit.tar.gz ]] && [[ ! -d $kit || $(ls -A "$kit") ]]; then
    die "$kit is no kit, and not empty: give another name"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/kit
mkdir -p "$root/lib" "$root/bin" "$root/flash"

# ------------------------------------------------------------------ flash

build_flash() {
    local place
    # A folder that is configured stays as it is.
    if [[ -e $build/config.status ]]; then
        make --silent --directory "$build" -j"$(nproc)"
    else
        ./build.sh "$build"
    fi
    for place in tests/gpu tests/mpi; do
        make --silent --directory "$build/$place" -j"$(nproc)" check TESTS= >"$work/make.log" 2>&1 || {
            cat "$work/make.log" >&2
            die "the tests in $build/$place do not build: see above"
        }
    done
    [[ -e $build/cuda/flash_kernels.fatbin ]] ||
        die "$build is built without CUDA's kernels: install the CUDA Toolkit with nvcc, and configure again"
    [[ -e $build/mpi_bench/.libs/flash_cublas ]] ||
        die "$build is built without cuBLASLt: install it, and configure again"
}

# put FILE FOLDER: that file, or what libtool's script of that name runs.
put() {
    local file=$1
    [[ ! -e ${file%/*}/.libs/${file##*/} ]] || file=${file%/*}/.libs/${file##*/}
    mkdir -p "$root/flash/$2"
    cp --no-dereference --preserve=mode "$file" "$root/flash/$2"
}

# What the scripts of tests/mpi look for, where they look for it: sources and build in one folder.
copy_flash() {
    local file
    for file in "$build"/{ompi_coll_flash,cuda}/.libs/*.so* "$build/tests/mpi/.libs/libmessages.so"; do
        file=${file#"$build/"}
        put "$build/$file" "${file%/*}"
    done
    for file in cuda/flash_kernels.fatbin mpi_bench/layer_kernels.fatbin tests/gpu/{facts,node,rates,waits} \
        tests/mpi/flash_device_tests tests/mpi/test_device_gemm; do
        put "$build/$file" "${file%/*}"
    done
    for file in "$build"/mpi_bench/flash_*; do
        # gcc's dependencies lie there, too.
        [[ ! -x $file || -d $file || $file == *.* ]] || put "$file" mpi_bench
    done
    for file in tests/tap.bash tests/mpi/{runner.bash,device.bash} \
        tests/mpi/{device.sh,device_paths.sh,device_scratch.sh,device_layers.sh} \
        tests/mpi/{two_nodes.xml,flash_tests.c,flash_device_tests.c} tests/mpi/costs/* \
        ompi_coll_flash/help-mpi-coll-flash.txt LICENSE; do
        cp --parents "$file" "$root/flash"
    done
}

# ------------------------------------------------------------------ Open MPI, UCX and the rest

# Open MPI's folder of that kind: prefix, bindir, pkglibdir, pkgdatadir.
folder_of() {
    "${OMPI_INFO:-ompi_info}" --path "$1" --parsable | cut -d: -f3
}

copy_open_mpi() {
    local file
    mkdir -p "$root$(folder_of bindir)" "$root$(folder_of pkglibdir)" "$root$(folder_of pkgdatadir)"
    for file in mpirun ompi_info; do
        cp --dereference "$(folder_of bindir)/$file" "$root$(folder_of bindir)/$file"
    done
    cp --recursive "$(folder_of pkgdatadir)/." "$root$(folder_of pkgdatadir)"
    # Without what is for other networks, and for schedulers, none of which the node needs.
    for file in "$(folder_of pkglibdir)"/mca_*.so; do
        [[ $file =~ _(ofi|openib|psm|psm2|slurm|gridengine|flux|jsm)\.so$ ]] || cp "$file" "$root$file"
    done
    folder_of prefix >"$root/prefix"
    folder_of pkglibdir >"$root/pkglibdir"
}

# What PMIx and UCX load lies in a folder beside their library.
copy_modules() {
    local library folder
    library=$(realpath "$(library_of libpmix.so.2)")
    folder=${library%/*}/pmix
    if [[ -d $folder ]]; then
        mkdir -p "$root$folder"
        cp "$folder"/*.so "$root$folder"
    fi
    folder=$(realpath --canonicalize-missing "${library%/*}/../share/pmix")
    if [[ -d $folder ]]; then
        mkdir -p "$root$folder"
        cp "$folder"/help-*.txt "$root$folder"
    fi
    library=$(realpath "$(library_of libucs.so.0)")
    mkdir -p "$root/lib/ucx"
    cp --dereference "${library%/*}"/ucx/libuct_cma.so.0 "$root/lib/ucx"
    cp --dereference "$(command -v ucx_info)" "$root/bin/ucx_info"
    cp --dereference "$(library_of libopenblas.so.0)" "$root/lib/libopenblas.so.0"
}

# library_of SONAME: where the dynamic linker finds it here.
library_of() {
    /sbin/ldconfig -p | awk -v name="$1" '$1 == name && !found { print $NF; found = 1 } END { exit !found }' ||
        die "there is no $1 here"
}

# All that those files are linked with, but for flash itself, for CUDA's libraries and those of the C and C++
# compilers, which the node has.
copy_libraries() {
    local name path
    while read -r name path; do
        case $name in
        libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libutil.so* | libresolv.so* | ld-linux*) ;;
        libgcc_s.so* | libstdc++.so* | libcu* | libnvidia* | libmpix_flash*) ;;
        *) cp --dereference --update "$path" "$root/lib/$name" ;;
        esac
    done < <(find "$root" -type f \( -perm -u+x -o -name '*.so*' \) -not -path "$root/ucx-cuda/*" \
        -exec ldd {} + 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort --unique)
}

# The wheel's libraries come three times each; tools and headers are of no use there. What these libraries need besides
# has a folder and names of its own, to which they hold the way.
copy_cuda_ucx() {
    local package=libucx-cu$cuda_major from=$work/wheel/libucx to=$root/ucx-cuda/libucx file
    if ! python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$work/wheel" "$package==$libucx" \
        >"$work/pip.log" 2>&1; then
        echo "pack.sh: pip finds no $package $libucx: the kit has no UCX that knows CUDA" >&2
        return
    fi
    python3 -m zipfile --extract "$work"/wheel/libucx_*.whl "$work/wheel"
    mkdir -p "$to/bin" "$to/lib/ucx"
    cp "$from/bin/ucx_info" "$to/bin"
    chmod +x "$to/bin/ucx_info"
    cp "$from"/lib/*.so.0 "$to/lib"
    for file in "$from"/lib/ucx/*.so.0; do
        [[ $file == *perftest* ]] || cp "$file" "$to/lib/ucx"
    done
    for file in "$from"_cu*.libs/libcudart-*; do
        [[ ! -e $file ]] || (cd "$work/wheel" && cp --parents "${file#"$work/wheel/"}" "$root/ucx-cuda")
    done
}

# Without the driver's libraries, which the node has.
check_cuda_ucx() {
    local lib=$root/ucx-cuda/libucx/lib missing
    [[ -d $lib ]] || return 0
    missing=$(LD_LIBRARY_PATH=$lib ldd "$lib"/*.so.0 "$lib"/ucx/*.so.0 2>&1 |
        awk '/=> not found/ && $1 !~ /^libcuda[.]so|^libnvidia-ml[.]so/ { print $1 }' | sort -u | xargs)
    [[ ! $missing ]] || die "libucx-cu$cuda_major $libucx needs what it does not bring: $missing"
}

# What the kit was made of, which its first step tells.
describe() {
    local known=none
    [[ ! -d $root/ucx-cuda ]] || known=$(basename "$work"/wheel/libucx_*.whl | cut -d- -f2)
    printf 'flash %s, Open MPI %s, UCX %s, UCX that knows CUDA %s, CUDA %s\n' \
        "$(git describe --always --dirty 2>/dev/null || echo 'of an unknown commit')" \
        "$("${OMPI_INFO:-ompi_info}" --version | sed -n 's/^Open MPI v//p')" \
        "$(ucx_info -v | sed -n 's/^# .*[Vv]ersion:\? *//p' | sed -n 1p)" "$known" "$cuda_major"
}

build_flash
cuda_major=$(sed -n 's/^CUDA_MAJOR = //p' "$build/cuda/Makefile")
copy_flash
copy_open_mpi
copy_modules
copy_libraries
copy_cuda_ucx
check_cuda_ucx
find "$root" -type f \( -perm -u+x -o -name '*.so*' \) -exec strip --strip-unneeded {} + 2>/dev/null || :
describe >"$root/description"
echo "$cuda_major" >"$root/cuda-major"

mkdir -p "$kit"
rm -f "$kit"/*.bash
cp tests/gpu/{run.sh,kit.bash,checks.bash,figures.bash} "$kit"
tar --create --owner=0 --group=0 --directory "$root" . | gzip -9 >"$kit/kit.tar.gz"
bytes=$(du --bytes --total "$kit"/{run.sh,*.bash,kit.tar.gz} | awk 'END { print $1 }')
echo "$kit: $((bytes >> 20)) MiB"
((bytes <= most)) || die "that is more than $((most >> 20)) MiB"
