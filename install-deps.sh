#!/usr/bin/env bash
#
# install-deps.sh [PACKAGE]...: installs what building, testing and running coll/flash needs and this
# machine lacks, and the packages named, from the distribution (Debian, Ubuntu). Does nothing if nothing
# is missing. FLASH_SKIP_DEPS=1 makes it do nothing in any case.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

# Each line: a package, and others that do as well.
packages='
    g++
    gcc
    gfortran
    libc6-dev
    make
    autoconf
    automake
    libtool
    pkg-config pkgconf
    openmpi-bin
    libopenmpi-dev
    libucx-dev
    ucx-utils
    libhwloc-dev
    cmake
    libopenblas-pthread-dev libopenblas-openmp-dev libopenblas-serial-dev
    iproute2
    util-linux
    mount
    hostname
    procps
    tcl
    python3-mpi4py
    python3-numpy
    python3-matplotlib
'$(printf '\n%s' "$@")

die() {
    echo "install-deps.sh: $1" >&2
    exit 1
}

if [[ ${FLASH_SKIP_DEPS:-} ]]; then
    exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    die "this is no Debian or Ubuntu. Install what these Debian packages hold:
$(awk '{ print $1 }' <<<"$packages" | xargs)
Then run this again with FLASH_SKIP_DEPS=1 in the environment."
fi

# A package that dpkg does not know only makes dpkg-query fail.
# shellcheck disable=SC2016,SC2086 # dpkg-query's own variables; a list of words
installed=$(dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' $packages 2>/dev/null |
    sed -n 's/^installed //p') || true

missing=()
while read -r -a alternatives; do
    ((${#alternatives[@]})) || continue
    for package in "${alternatives[@]}"; do
        if grep -qx "$package" <<<"$installed"; then
            continue 2
        fi
    done
    missing+=("${alternatives[0]}")
done <<<"$packages"
if ((${#missing[@]} == 0)); then
    exit 0
fi

root=()
if ((EUID != 0)); then
    command -v sudo >/dev/null || die "run as root: apt-get install ${missing[*]}"
    root=(sudo)
fi

install() {
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --quiet --no-install-recommends "${missing[@]}" </dev/null
}

update() {
    "${root[@]}" apt-get update --quiet || die "apt-get update failed; still missing: ${missing[*]}"
}

echo "installing ${missing[*]}"
updated=no
if ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then # a new machine has no package lists
    update
    updated=yes
fi
if ! install; then
    [[ $updated == no ]] || die "apt-get could not install ${missing[*]}"
    echo "trying again with new package lists"
    update
    install || die "apt-get could not install ${missing[*]}"
fi
