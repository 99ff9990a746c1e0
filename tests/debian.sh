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
PATH=$PATH:/usr/sbin:/sbin

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

[[ $release =~ ^[a-z]+$ ]] || die "$release is no name of a release: give trixie, for instance"
((EUID == 0)) || die "run as root: debootstrap must make device nodes and change owners"
[[ -e /etc/debian_version ]] || die "this machine has no Debian whose archive could be asked"
./install-deps.sh debootstrap git

# The archive that this machine itself installs from.
mirror() {
    # shellcheck disable=SC2016 # apt's variables
    apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' |
        awk -F '|' '$1 == "Debian" && $2 ~ /^https?:/ && $2 !~ /security/ { print $2; exit }'
}

# Nothing is mounted beneath these any more, whatever became of the namespaces.
remove() {
    rm -rf --one-file-system "$@"
}

install_release() {
    local archive
    archive=$(mirror)
    [[ $archive ]] || die "apt knows no archive of Debian's: give one in /etc/apt"
    remove "$root.new"
    # What it mounts goes with the namespaces, however it ends.
    unshare --mount --pid --fork --kill-child debootstrap --variant=minbase \
        --include=ca-certificates,clang "$release" "$root.new" "$archive" >"$root.log" 2>&1 ||
        die "debootstrap failed: see $root.log"
    # As this machine reaches the archive, so does the release.
    cp -a /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf "$root.new/etc/apt/apt.conf.d/" \
        2>/dev/null || :
    mv "$root.new" "$root"
}

[[ -d $root ]] || install_release

remove "$root/src"
mkdir -p "$root/src"
git ls-files -z |
    while IFS= read -r -d '' file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done |
    tar --create --null --files-from - | tar --extract --directory "$root/src"

cuda=$(readlink -f "${CUDA_HOME:-/usr/local/cuda}" || :)
environment=(HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin)
for name in http_proxy https_proxy no_proxy FLASH_TEST_TIMEOUT; do
    [[ ${!name-} ]] && environment+=("$name=${!name}")
done

# Not chroot: in one, no further namespaces can be made, as the emulated hosts need.
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --mount --ipc --pid --fork --kill-child env -i "${environment[@]}" bash -euc '
    root=$1 cuda=$2
    shift 2
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    # What earlier runs left there has the same process numbers.
    mount -t tmpfs tmpfs "$root/tmp"
    mount -t tmpfs tmpfs "$root/dev/shm"
    if [[ -d $cuda ]]; then
        mkdir -p "$root/usr/local/cuda"
        mount --bind "$cuda" "$root/usr/local/cuda"
        mount -o remount,bind,ro "$root/usr/local/cuda"
    fi
    mkdir -p "$root/mnt/old"
    cd "$root"
    pivot_root . mnt/old
    umount -l /mnt/old
    cd /src
    exec ./test.sh "$@"
' bash "$root" "$cuda" "$@"
