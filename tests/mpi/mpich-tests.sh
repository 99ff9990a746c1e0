#!/usr/bin/env bash
#
# mpich-tests.sh FOLDER: MPICH's own tests of collectives, built in FOLDER for the Open MPI of mpicc. Prints where they
# are, for mpich.sh. Exit status 77: this machine cannot reach the sources.
#
# The sources are those of Debian's package mpich, by the archive that apt knows here: 22 MB, which apt verifies. They
# are built without their use of CUDA, C++ and Fortran.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
source "$here/../debian.bash"

exec 3>&2 # for messages: standard error goes to the log while sources are fetched and built

# die TEXT [STATUS]
die() {
    echo "mpich-tests.sh: $1" >&3
    exit "${2:-1}"
}

(($# == 1)) || die 'give a folder'
folder=$(realpath -m "$1")
[[ ! -e $folder || -e $folder/log ]] || die "$folder is there, and not of this script: give another"
[[ -e /etc/debian_version ]] || die 'the sources are those of Debian, which this machine does not run' 77
archive=$(mirror) || archive=''
release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
[[ $archive && $release ]] || die "apt knows no archive of Debian's: give one in /etc/apt" 77

# In lists of their own, so that this machine's stay as they are.
fetch_sources() {
    local key=/usr/share/keyrings/debian-archive-keyring.gpg options
    echo "deb-src [signed-by=$key] $archive $release main" >sources.list
    mkdir -p lists/partial
    options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$PWD/lists"
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root --quiet)
    apt-get "${options[@]}" update || die "$archive cannot be reached" 77
    compgen -G 'lists/*Sources*' || die "$archive cannot be reached" 77
    apt-get "${options[@]}" source --download-only mpich || die "there are no sources of mpich in $archive"
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
    # Two tests keep datatypes as int, which they are in MPICH; later releases of MPICH mend that.
    sed -i 's/^\( *\)int \(\*\(send\|recv\)types\b\)/\1MPI_Datatype \2/' coll/nonblocking[23].c
    ./configure CC=mpicc MPICC=mpicc --disable-cxx --disable-fortran --without-cuda --without-hip --without-ze \
        CFLAGS='-w -O1'
    # Names that MPI 3 has removed, and that Open MPI has still.
    make -j"$(nproc)" -C dtpools/src CFLAGS='-w -O1 -DOMPI_OMIT_MPI1_COMPAT_DECLS=0 -DOMPI_REMOVED_USE_STATIC_ASSERT=0'
    make -j"$(nproc)" -C util
    # What calls a function that this Open MPI lacks is not linked: mpich.sh knows it, and fails for all else.
    make -j"$(nproc)" -C coll --keep-going all CFLAGS="-w -O1 $(persistent_names)" || :
}

rm -rf "$folder.new"
mkdir -p "$folder.new"
cd "$folder.new"
(fetch_sources) >log 2>&1 || exit
rm -rf "$folder"
mv "$folder.new" "$folder"
cd "$folder"
log=$folder/log
trap 'echo "mpich-tests.sh: the tests were not built: see $log" >&3' ERR
set -E
build >>"$log" 2>&1
pwd
