#!/usr/bin/env bash
#
# run.sh [--build FOLDER] [--list] [SUITE]...: the MPI tests in virtual machines that reach each other by software
# RoCE (see `lab`): one suite after another, all of them unless told otherwise.
#
# FOLDER is where test.sh has built, build-test unless told otherwise. Installs what the guests need, where that is
# allowed; without QEMU, a kernel or namespaces each suite is skipped. Everything in a guest is emulated and takes
# ten to forty times as long as on this machine. A point of TAP for each test; the last line sums up:
# `N passed, N failed[, N skipped]`.
#
#   tests/rdma/run.sh --debian RELEASE [SUITE]...   likewise in a Debian of its own, made by tests/debian.bash in
#                                                   build-debian-RELEASE, with its kernel, Open MPI and UCX: as root
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash

set -euo pipefail

top_srcdir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
self=$top_srcdir/tests/rdma/run.sh
lab=$top_srcdir/tests/rdma/lab
packages=(qemu-system-x86 busybox-static cpio socat kmod xz-utils ibverbs-providers)

suites='
2x1      results on two guests, and by which network
2x2      results on two guests with two ranks each
rails    two guests with two RDMA devices each
3x1      results on three guests
random   random operations on two guests with two ranks each
deaths   ranks that die on three guests
faults   devices and guests that go, and memory that cannot be registered
'
names=$(awk 'NF { print $1 }' <<<"$suites")

die() {
    echo "run.sh: $1" >&2
    exit 2
}

build=$top_srcdir/build-test release=''
while [[ ${1-} == -* ]]; do
    case $1 in
    --build)
        (($# > 1)) || die '--build needs a folder'
        build=$(realpath "$2")
        shift
        ;;
    --debian)
        (($# > 1)) || die '--debian needs the name of a release'
        release=$2
        shift
        ;;
    --list)
        printf '%s' "${suites#?}"
        exit 0
        ;;
    *)
        sed -n '3,/^$/s/^# \{0,1\}//p' "$self" >&2
        exit 2
        ;;
    esac
    shift
done
# shellcheck disable=SC2086 # a list of words
(($#)) || set -- $names
for suite in "$@"; do
    grep -q -x -- "$suite" <<<"$names" || die "there is no suite $suite: see run.sh --list"
done

# in_debian SUITE...: the files that git knows, built there once and brought up to date later.
in_debian() {
    local root=$top_srcdir/build-debian-$release
    cd "$top_srcdir"
    # shellcheck source=/dev/null
    source tests/debian.bash
    ((EUID == 0)) || die 'run as root: debootstrap must make device nodes and change owners'
    ./install-deps.sh debootstrap git
    [[ -d $root ]] || install_release "$release" "$root"
    mkdir -p "$root/src"
    copy_sources "$root/src"
    # shellcheck disable=SC2016 # expanded by the inner shell
    enter "$root" -- bash -euc '
        cd /src
        ./build.sh build-test --enable-werror
        make --silent -C build-test -j"$(nproc)" check TESTS=
        exec tests/rdma/run.sh "$@"' bash "$@"
}
[[ -z $release ]] || in_debian "$@"

# ------------------------------------------------------------ around the namespaces

if [[ ! -L /run/lab/lab ]]; then
    # Without the right to install, what is missing is the reason to skip.
    "$top_srcdir/install-deps.sh" "${packages[@]}" >&2 || :
    if ! reason=$("$lab" --probe 2>&1); then
        for suite in "$@"; do
            echo "ok $((skipped = ${skipped-0} + 1)) # SKIP $suite: ${reason#lab: }"
        done
        echo "1..$#"
        echo "0 passed, 0 failed, $# skipped"
        exit 0
    fi
    exec "$lab" enter "$self" --build "$build" "$@"
fi

# ------------------------------------------------------------ inside

export TMPDIR=/run/lab/shared MPIRUN=/run/lab/mpirun top_builddir=$build FLASH_TEST_TIMEOUT=${FLASH_TEST_TIMEOUT:-600}
# shellcheck source=/dev/null
source "$top_srcdir/tests/mpi/runner.bash"
# shellcheck source=/dev/null
source "$top_srcdir/tests/rdma/suites.bash"

for suite in "$@"; do
    "suite_$suite"
done
plan

summary="$((points - failures - skips)) passed, $failures failed"
((skips == 0)) || summary+=", $skips skipped"
echo "$summary"
((failures == 0))
