#!/usr/bin/env bash
#
# build.sh FOLDER [CONFIGURE OPTION]...
#
# Builds coll/flash in FOLDER, apart from the sources. Generates, configures and compiles only what
# is out of date.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if (($# == 0)) || [[ $1 == -* ]]; then
    echo "usage: $0 FOLDER [CONFIGURE OPTION]..." >&2
    exit 2
fi
folder=$1
shift
if [[ $top == *[[:space:]]* ]]; then
    echo "$0: Autoconf cannot build in a folder whose path has a space: $top" >&2
    exit 1
fi

# From here on make itself notices what has changed.
if ! [[ -e $top/configure && -e $top/ucx_backend/Makefile.in ]]; then
    "$top/autogen.sh"
fi

mkdir -p "$folder"
cd "$folder"
wanted="$PWD: $top/configure $*"
if ! [[ -e .configured && $(<.configured) == "$wanted" ]]; then
    rm -f .configured
    "$top/configure" --quiet "$@"
fi
# make does not notice objects of other flags.
if ! [[ -e .configured ]] ||
    [[ $(find "$top/configure.ac" "$top/common.mk" "$top"/m4/flash_*.m4 -newer .configured) ]]; then
    make --silent --no-print-directory clean >/dev/null
    printf '%s\n' "$wanted" >.configured
fi
make --silent --no-print-directory -j"$(nproc)"
