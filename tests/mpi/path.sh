#!/usr/bin/env bash
# path.sh: the files on the stack between MPI_Iallgather and UCX are those that the architecture page names as the path of
# one segment, at most seven.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

page=$top_srcdir/docs/internals/architecture.md
most=7

# The files that begin the items of the page's list.
files_of_page() {
    sed -n '/^## The path of one segment/,/^## The states/s/^[0-9]*\. `\([^`]*\.c\)`.*/\1/p' "$page" | sort
}

# The files of flash's functions among LIBRARY OFFSET on standard input, with those that were inlined.
files_of_stack() {
    local library offset
    while read -r library offset; do
        case $library in
        */libmpix_flash.so* | */flash_ucx.so*) addr2line --inlines --exe="$library" "$offset" ;;
        esac
    done | sed -n 's#.*/\(ompi_coll_flash/\|\(ucx_backend/\)\)\([^:]*\.c\):.*#\2\3#p' | sort -u
}

has_lines() { # whether the library was built with -g
    [[ $(readelf --sections "$top_builddir/ompi_coll_flash/.libs/libmpix_flash.so") == *.debug_line* ]]
}

is_the_page_s() {
    run 2 --mca coll_flash_algorithm ring --mca coll_flash_progress off -- "$programs/test_path" >"$scratch/stack" || return
    files_of_stack <"$scratch/stack" >"$scratch/of_stack"
    files_of_page >"$scratch/of_page"
    # Calls at a function's end may leave no frame.
    (($(wc -l <"$scratch/of_stack") >= 4 && $(wc -l <"$scratch/of_page") <= most)) &&
        [[ -z $(comm -23 "$scratch/of_stack" "$scratch/of_page") ]] && return
    head "$scratch/stack" "$scratch/of_stack" "$scratch/of_page"
    return 1
}

name="from MPI_Iallgather to UCX: the page's files, at most $most"
if ! command -v addr2line >/dev/null || ! command -v readelf >/dev/null; then
    skip "$name" 'there is no addr2line or readelf: install binutils'
elif ! has_lines; then
    skip "$name" 'the library was built without -g'
else
    point "$name" is_the_page_s
fi
plan
