#!/usr/bin/env bash
#
# package.sh [RELEASE]: builds the Debian packages in a clean Debian, of this machine's release unless
# told otherwise, and installs, uses and removes them in another that has Open MPI and no compiler.
# A point of TAP for each step; the last line sums up: `N passed, N failed[, N skipped]`.
#
#   tests/package.sh trixie
#
# Both are copies of a minimal system that debootstrap makes, from where this machine's packages come
# from, in build-package-RELEASE, and that stays there, with the packages: removing it is safe. Needs
# root, as debootstrap does, and namespaces; is skipped without.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=/dev/null
source tests/debian.bash

die() {
    echo "package.sh: $1" >&2
    exit 1
}

if [[ ${1-} == -* ]]; then
    sed -n '3,/^$/s/^# \{0,1\}//p' tests/package.sh
    exit 2
fi
if ((EUID != 0)) || ! unshare --mount --ipc --pid --fork true 2>/dev/null; then
    echo '1..0 # SKIP the packages were not tried: that needs root, and namespaces'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
release=${1:-$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)}
top=$PWD/build-package-$release
./install-deps.sh debootstrap git

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
output=$scratch/output
failures=0 skips=0 points=0
# shellcheck source=/dev/null
source tests/tap.bash

# within ROOT SCRIPT: by its shell, as root, with what is downloaded and what is built in common.
within() (
    mkdir -p "$top/archives" "$top/packages"
    enter "$top/$1" "$top/archives:/var/cache/apt/archives" "$top/packages:/packages" -- \
        bash -euo pipefail -c "
            export DEBIAN_FRONTEND=noninteractive
            install() {
                apt-get install --yes --quiet --no-install-recommends \"\$@\" </dev/null
            }
            $2"
)

# as_user ROOT SCRIPT: by an ordinary user, at home.
as_user() {
    within "$1" "runuser --user user -- bash -euo pipefail -c 'cd; $2'"
}

[[ -d $top/minimal ]] || {
    mkdir -p "$top"
    install_release "$release" "$top/minimal"
}
within minimal 'apt-get update --quiet; id -u user || useradd --create-home user' \
    >"$output" 2>&1 || die "apt-get update failed in $top/minimal: $(tail -n 3 "$output")"
remove "$top/build" "$top/clean" "$top/packages"
cp --archive "$top/minimal" "$top/build"
cp --archive "$top/minimal" "$top/clean"
mkdir "$top/build/home/user/flash"
copy_sources "$top/build/home/user/flash"

# --- Building ---

has_what_it_needs() {
    within build 'chown --recursive user: /home/user /packages
        apt-get build-dep --yes --quiet --no-install-recommends /home/user/flash/packaging </dev/null'
}

builds() {
    # test.sh has run the tests.
    if ! as_user build 'DEB_BUILD_OPTIONS=nocheck flash/packaging/debian/build /packages >build.log 2>&1'; then
        tail -n 40 "$top/build/home/user/build.log"
        return 1
    fi
    # Of the compilers; dpkg's flags, which harden, are others than ours.
    ! grep -E '^[^ ]+:[0-9]+:[0-9]+: warning: ' "$top/build/home/user/build.log"
}

# What configure took for it, and the packages.
of_one_version() {
    local version file
    version=$(dpkg-deb --fsys-tarfile "$top"/packages/libmpix-flash-dev_*.deb |
        tar --extract --to-stdout --wildcards '*/mpix_flash.pc' | sed -n 's/^Version: //p')
    for file in "$top"/packages/*.deb; do
        [[ $version && $(dpkg-deb --field "$file" Version) == "$version-1" ]] || {
            echo "$file is not of ${version:-a version that is told}"
            return 1
        }
    done
}

lintian_finds_nothing() {
    within build 'install lintian' &&
        as_user build 'lintian --fail-on error /packages/*.changes'
}

# Programs that are compiled against the packages, one of them without knowing flash.
compiles() {
    cat >"$top/build/home/user/plain.c" <<'END'
#include <mpi.h>
#include <stdio.h>

int main(void)
{
    int rank, size, sum;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        puts(sum == size * (size - 1) / 2 ? "the sum is right" : "the sum is wrong");
    }
    MPI_Finalize();
    return 0;
}
END
    # shellcheck disable=SC2016 # expanded by the user's shell
    within build 'install /packages/libmpix-flash1_*.deb /packages/libmpix-flash-dev_*.deb' &&
        as_user build 'mpicc -o plain plain.c
            mpicc -Wall -Werror -o mlp flash/examples/tensor_parallel_mlp.c \
                $(pkg-config --cflags --libs mpix_flash) -lm' &&
        cp "$top/build/home/user/plain" "$top/build/home/user/mlp" "$top/clean/home/user"
}

point 'build dependencies, those of the control file' has_what_it_needs
point 'packages, by an ordinary user, hardened, without warnings' builds
point 'their version is that of configure.ac' of_one_version
point 'programs, one by pkg-config' compiles
point 'lintian finds no error' lintian_finds_nothing

# --- Using ---

mpirun='mpirun -n 2 --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_tcp_disable_family 6'

# state FILE: all files, links and their contents where packages put theirs, but for the dynamic
# linker's cache.
state() {
    # shellcheck disable=SC2016 # find's
    within clean 'find /usr /etc /opt -not -type d -not -path /etc/ld.so.cache -printf "%M %u %g %p -> %l\n" | sort
        find /usr /etc /opt -type f -not -path /etc/ld.so.cache -exec sha256sum {} + | sort' >"$1"
}

gets_open_mpi() {
    within clean 'install openmpi-bin' && state "$scratch/before" && [[ -s $scratch/before ]]
}

installs() {
    # shellcheck disable=SC2016 # expanded there
    within clean 'install $(ls /packages/*.deb | grep -v -e -dev_ -e -dbgsym_)' && state "$scratch/installed"
}

# Of Open MPI's files none is changed, and one is new.
adds_a_file() {
    diff "$scratch/before" "$scratch/installed" >"$scratch/changes" || :
    grep '^<' "$scratch/changes" && return 1
    grep '^> -.*/openmpi.*/' "$scratch/changes" | grep -v ' /usr/share/doc/' >"$scratch/added"
    cat "$scratch/added"
    [[ $(wc -l <"$scratch/added") == 1 ]] && grep '/openmpi/lib/openmpi[0-9]*/mca_coll_flash.so ' "$scratch/added"
}

is_listed() {
    as_user clean 'ompi_info --param coll flash --level 9' | grep 'parameter "coll_flash_priority"'
}

serves() {
    as_user clean "$mpirun --mca coll flash --mca coll_flash_on_node yes flash_iallgather -m 1M:1M -i 3 -x 1 --no-own </dev/null" |&
        tee "$scratch/served" && grep '^1048576 .* ring *$' "$scratch/served" &&
        grep 'results: all right' "$scratch/served"
}

tests_itself() {
    as_user clean "flash_info ${mpirun#mpirun}" | tee "$scratch/info" && grep '^go: ' "$scratch/info"
}

extends() {
    as_user clean "$mpirun --mca coll flash ./mlp </dev/null" | grep 'by flash'
}

open_mpi_works() {
    as_user clean "$mpirun ./plain </dev/null" | grep 'the sum is right'
}

# upgrade VERSION: what apt would do if Open MPI's library came in that one.
upgrade() {
    local package
    package=$(dpkg-deb --field "$top"/packages/openmpi-coll-flash_*.deb Depends |
        grep -o 'libopenmpi[0-9a-z]* (<<' | sed 's/ .*//')
    within clean "
        mkdir -p /tmp/new/DEBIAN
        dpkg-query --show --showformat 'Package: \${Package}\nArchitecture: \${Architecture}\nMulti-Arch: same
Depends: \${Depends}\nProvides: \${Provides}\nVersion: $1\nMaintainer: nobody <nobody@coll-flash.invalid>\nDescription: none\n' \
            $package | sed '/^[A-Za-z-]*: \$/d' >/tmp/new/DEBIAN/control
        dpkg-deb --build /tmp/new /tmp/new.deb
        apt-get install --simulate /tmp/new.deb"
}

# A rebuilt Open MPI is the same to it. For another version it was not built.
goes_with_its_open_mpi() {
    local version rebuilt=$scratch/rebuilt newer=$scratch/newer
    version=$(within clean "dpkg-query --show --showformat '\${source:Upstream-Version}' openmpi-bin")
    upgrade "$version-99" >"$rebuilt" 2>&1 || :
    upgrade "${version%.*}.$((${version##*.} + 1))-1" >"$newer" 2>&1 || :
    cat "$rebuilt" "$newer"
    grep '^Inst libopenmpi.*-99' "$rebuilt" && ! grep '^Remv.*flash' "$rebuilt" &&
        grep -E '^Remv openmpi-coll-flash|openmpi-coll-flash : Depends: libopenmpi' "$newer"
}

# --- Removing ---

removes() {
    within clean 'apt-get purge --yes --quiet --auto-remove "*mpix-flash*" openmpi-coll-flash </dev/null
        ! dpkg --list | grep flash'
}

as_before() {
    state "$scratch/after" && diff "$scratch/before" "$scratch/after"
}

flash_is_gone() {
    as_user clean 'ompi_info --param coll flash --level 9' >"$scratch/gone" 2>&1 || :
    ! grep coll_flash "$scratch/gone"
}

point 'Open MPI, in another Debian' gets_open_mpi
point 'it runs a program' open_mpi_works
point 'the packages are installed' installs
point "to Open MPI's files a component is added, and no other is touched" adds_a_file
point 'ompi_info knows it' is_listed
point 'mpirun --mca coll flash: flash serves, and results are right' serves
point 'flash_info: the self-test' tests_itself
point 'a program with the extension' extends
point 'its Open MPI may be rebuilt, and no other version may replace it' goes_with_its_open_mpi
point 'the packages are removed' removes
point 'all files are as before' as_before
point 'ompi_info knows flash no more' flash_is_gone
point 'Open MPI runs a program as before' open_mpi_works
plan

if ((failures == 0)); then
    remove "$top/build" "$top/clean"
fi
summary="$((points - failures - skips)) passed, $failures failed"
((skips == 0)) || summary+=", $skips skipped"
echo "$summary"
((failures == 0))
