#!/usr/bin/env bash
#
# mpich-tests.sh FOLDER: MPICH's own tests of collectives, built in FOLDER for the Open MPI of mpicc. Prints where they
# are, for mpich.sh. Exit status 77: this machine cannot get the sources.
#
# The sources are those of Debian's package mpich, from where this machine's packages come from: 22 MB, which apt
# verifies. They are built without their use of CUDA, C++ and Fortran.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
source "$here/../debian.bash"

# die TEXT [STATUS]
die() {
    echo "mpich-tests.sh: $1" >&2
    exit "${2:-1}"
}

(($# == 1)) || die 'give a folder'
[[ -e /etc/debian_version ]] || die "this machine has no Debian whose sources could be asked for" 77
archive=$(mirror)
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
[[ $archive && $release ]] || die "apt knows no archive of Debian's: give one in /etc/apt" 77

# In lists of their own, so that this machine's stay as they are.
fetch_sources() {
    local key=/usr/share/keyrings/debian-archive-keyring.gpg options
    echo "deb-src [signed-by=$key] $archive $release main" >sources.list
    mkdir -p lists/partial
    options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$PWD/lists"
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root --quiet)
    apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only mpich
}

# Open MPI 4.1 has the persistent collectives of MPI 4 under names of its own, which the tests are told by macros.
persistent_names() {
    local name header
    header=$(mpicc --showme:incdirs | xargs -n 1 | sed 's|$|/mpi-ext.h|' | xargs ls 2>/dev/null | head -n 1)
    if [[ ! $header ]] || ! grep -q PCOLLREQ "$header"; then
        return
    fi
    printf '%s' '-include mpi.h -include mpi-ext.h'
    for name in Allgather Allgatherv Allreduce Alltoall Alltoallv Alltoallw Barrier Bcast Exscan Gather Gatherv \
        Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw Reduce \
        Reduce_scatter Reduce_scatter_block Scan Scatter Scatterv; do
        printf ' %s' "-DMPI_${name}_init=MPIX_${name}_init"
    done
}

build() {
    tar --extract --file mpich_*.orig.tar.* --strip-components=1 --wildcards '*/confdb' '*/test/mpi'
    cd test/mpi
    ./configure CC=mpicc MPICC=mpicc --disable-cxx --disable-fortran --without-cuda --without-hip --without-ze \
        CFLAGS='-w -O1'
    # Names that MPI 3 has removed, and that Open MPI has still.
    make -j"$(nproc)" -C dtpools/src CFLAGS='-w -O1 -DOMPI_OMIT_MPI1_COMPAT_DECLS=0 -DOMPI_REMOVED_USE_STATIC_ASSERT=0'
    make -j"$(nproc)" -C util
    # A test that calls what this Open MPI lacks does not link; mpich.sh skips it.
    make -j"$(nproc)" -C coll --keep-going all CFLAGS="-w -O1 $(persistent_names)" || :
}

rm -rf "$1"
mkdir -p "$1"
cd "$1"
log=$PWD/log
fetch_sources >"$log" 2>&1 || die "the sources of Debian's package mpich could not be fetched: see $log" 77
trap 'echo "mpich-tests.sh: the tests could not be built: see $log" >&2' ERR
set -E
build >>"$log" 2>&1
pwd
