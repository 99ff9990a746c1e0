#!/usr/bin/env bash
#
# debian.sh RELEASE [TEST.SH'S OPTION]...: runs test.sh in another release of Debian, and so with its
# versions of Open MPI and UCX. trixie has Open MPI 5.0.7 and UCX 1.18.1.
#
#   tests/debian.sh trixie CC=clang CXX=clang++
#
# The release is installed by debootstrap, from where this machine's packages come from, in
# build-debian-RELEASE, some 2 GB, and stays there: removing it is safe. The files that git knows, as
# they are, are copied into it; the CUDA Toolkit is this machine's. Needs root, as debootstrap does,
# and namespaces, in which all it mounts stays. Exit status, and last line: test.sh's.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=/dev/null
source tests/debian.bash

die() {
    echo "debian.sh: $1" >&2
    exit 1
}

if (($# == 0)) || [[ $1 == -* ]]; then
    sed -n '3,/^$/s/^# \{0,1\}//p' tests/debian.sh
    exit 2
fi
release=$1
shift
root=$PWD/build-debian-$release

((EUID == 0)) || die "run as root: debootstrap must make device nodes and change owners"
./install-deps.sh debootstrap git

[[ -d $root ]] || install_release "$release" "$root" clang

remove "$root/src"
mkdir -p "$root/src"
copy_sources "$root/src"

folders=()
cuda=$(readlink -f "${CUDA_HOME:-/usr/local/cuda}" || :)
[[ ! -d $cuda ]] || folders+=("$cuda:/usr/local/cuda:ro")
enter "$root" "${folders[@]}" -- /src/test.sh "$@"
