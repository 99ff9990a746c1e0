#!/usr/bin/env bash
# The rooms of docs/internals/architecture.md: which file may see which, by the sources' includes and by the
# objects' calls; that no more than two files of a room go round in a circle; and the states of a slot
# and of a request.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034 # tap.bash's
# shellcheck disable=SC2154 # of the makefile's environment
# shellcheck disable=SC2016 # backquotes of Markdown
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
output=$scratch/output
# shellcheck source=/dev/null
source "$top_srcdir/tests/tap.bash"

page=$top_srcdir/docs/internals/architecture.md

# ROOM SEEN..., for each row of the first table.
sed -n '/^## /q; s/^| `\([a-z_]*\)` |.*|\([^|]*\)|$/\1 \2/p' "$page" | tr -d '`' >"$scratch/rooms"

# FILE SEEN, by the names of the sources, room and all, without their ends.
sources() {
    # The public header, and stand-ins for headers of Open MPI's that Debian lacks, are in no room.
    (cd "$top_srcdir/ompi_coll_flash" && find . -name '*.[ch]' ! -path './compat/o*' ! -name mpix_flash.h | sed 's|^\./||')
    (cd "$top_srcdir" && find ucx_backend -name '*.[ch]')
}
includes() {
    local file path
    for file in $(sources); do
        path=$top_srcdir/ompi_coll_flash/$file
        [[ -e $path ]] || path=$top_srcdir/$file
        sed -n "s|^ *# *include *\"\([^\"]*\)\.h\".*|${file%.*} \1|p" "$path"
    done
}
# The same of calls, from the objects: each defines some names, and wants others.
calls() {
    local object name
    for object in "$top_builddir"/ompi_coll_flash/*/.libs/*.o "$top_builddir"/ucx_backend/.libs/*.o; do
        name=${object%/.libs/*}
        name=${name##*/}/$(basename "$object" .o | sed 's/^\(lib[a-z_]*_la\|component\)-//')
        # Of a source that is gone, a build may still have the object.
        [[ -e $top_srcdir/ompi_coll_flash/$name.c || -e $top_srcdir/$name.c ]] || continue
        nm "$object" | sed -n "s|^[0-9a-f]* [TDBRVWC] \(.*\)|defines \1 $name|p; s|^ *U \(.*\)|wants \1 $name|p"
    done | awk '
        $1 == "defines" { where[$2] = $3 }
        $1 == "wants" { wanted[$3 " " $2] }
        END {
            for (pair in wanted) {
                split(pair, part, " ")
                if (part[2] in where && where[part[2]] != part[1]) {
                    print part[1], where[part[2]]
                }
            }
        }' | sort -u
}

# Prints what the table does not allow, and fails if there is any.
allowed() {
    awk '
        function room(file) { sub("/.*", "", file); return file }
        NR == FNR { rooms[$1]; for (k = 2; k <= NF; k++) sees[$1, $k]; next }
        !(room($1) in rooms) { print $1 " is in no room that the page names"; bad = 1; next }
        # Of the transport; and of Open MPI, which compat alone may include.
        $2 ~ /^flash_ucx/ { $2 = "ucx_backend/" $2 }
        $2 ~ /^(mpi|ompi_config|(ompi|opal)\/.*)$/ { $2 = "compat/" $2 }
        $2 == "mpix_flash" || $2 == "none" { next }
        !(room($2) in rooms) || (room($1) != room($2) && !((room($1), room($2)) in sees)) {
            print $1 " sees " $2; bad = 1
        }
        END { exit bad }' "$scratch/rooms" "$1"
}

every_file_is_in_a_room() {
    sources | sed 's/\..$//; s/$/ none/' >"$scratch/files"
    [[ -s $scratch/rooms && -s $scratch/files ]] && allowed "$scratch/files"
}
includes_go_one_way() {
    includes >"$scratch/includes"
    [[ -s $scratch/includes ]] && allowed "$scratch/includes"
}
calls_go_one_way() {
    calls >"$scratch/calls"
    [[ -s $scratch/calls ]] && allowed "$scratch/calls"
}

# Which files reach which, inside a room; those that reach each other are a circle.
no_large_circles() {
    awk '
        { split($1, a, "/"); split($2, b, "/") }
        a[1] == b[1] { reach[$1, $2] = 1; files[$1]; files[$2] }
        END {
            for (via in files) for (from in files) if ((from, via) in reach) {
                for (to in files) if ((via, to) in reach) reach[from, to] = 1
            }
            for (file in files) {
                circle = ""; count = 0
                for (other in files) {
                    if (other != file && (file, other) in reach && (other, file) in reach) {
                        circle = circle " " other; count++
                    }
                }
                if (count > 1) { print file " goes round with" circle; bad = 1 }
            }
            exit bad
        }' "$scratch/calls"
}

# The table itself: no room sees one that sees it.
table_goes_one_way() {
    awk '
        { rooms[$1]; for (k = 2; k <= NF; k++) reach[$1, $k] }
        END {
            for (via in rooms) for (from in rooms) if ((from, via) in reach) {
                for (to in rooms) if ((via, to) in reach) reach[from, to]
            }
            for (room in rooms) if ((room, room) in reach) { print room " sees itself"; bad = 1 }
            exit bad
        }' "$scratch/rooms"
}
# Each source has an object, and none is older.
objects_are_new() {
    local file object old=0
    for file in $(sources | grep '\.c$'); do
        local path=$top_srcdir/ompi_coll_flash/$file folder=$top_builddir/ompi_coll_flash/${file%/*}
        [[ -e $path ]] || path=$top_srcdir/$file folder=$top_builddir/${file%/*}
        object=$(find "$folder/.libs" -name "*$(basename "$file" .c).o" -newer "$path" | grep -E "[/-]$(basename "$file" .c)\.o$" || :)
        [[ $object ]] || {
            echo "$file: no object, or an older one: make -C build-test"
            old=1
        }
    done
    ((old == 0))
}

# What the engine is made of includes nothing else.
engine_is_alone() {
    ! grep -n -E '#include [<"](mpi|ucp|ucs|cuda|ompi|opal|hwloc)' "$top_srcdir"/ompi_coll_flash/engine/*.[ch]
}

# The public header is longer: it is one contract.
files_are_short() {
    (cd "$top_srcdir" &&
        find ompi_coll_flash ucx_backend cuda fortran tests mpi_bench docs examples \
            -name '*.[ch]' -o -name '*.cu' -o -name '*.f90' -o -name '*.sh' -o -name '*.bash' -o -name '*.py' -o -name '*.awk' |
        grep -v -x ompi_coll_flash/mpix_flash.h | xargs awk 'FNR == 401 { print FILENAME; long = 1 } END { exit long }')
}

states_of_page() {
    sed -n '/^## The states of a slot/,$s/^| `\([A-Z]*\)` |.*|\([^|]*\)|$/\1 \2/p' "$page" | tr -d '`' | awk '{ $1 = $1; print }'
}
states_of_code() {
    sed -n '/^static const unsigned followers/,/};/p' "$top_srcdir/ompi_coll_flash/engine/flash_op_state.c" |
        tr '\n' ' ' | sed 's/\[FLASH_SLOT_/\n/g' | awk 'NR > 1 { gsub(/MAY|[][()|=,};]/, ""); $1 = $1; print }'
}
states_are_the_same() {
    [[ $(states_of_code | wc -l) == 7 ]] && diff <(states_of_page) <(states_of_code)
}

# The functions of both headers that change a request's state, and the rooms that call them.
requests_of_page() {
    sed -n '/^## The life of a request/,/^## The path/s/^| `\([a-z_]*\)` |.*|\([^|]*\)|$/\1 \2/p' "$page" | tr -d '`' |
        awk '{ $1 = $1; print }' | sort
}
requests_of_code() {
    local name
    (cd "$top_srcdir/ompi_coll_flash" &&
        grep -Eoh 'mca_coll_flash_(handle|request)_(init|begin|complete|leave|new|start|refuse|fail|ended)\(' \
            request/coll_flash_handle.h request/coll_flash_request.h | sed 's/^mca_coll_flash_//; s/($//' | sort -u |
        while read -r name; do
            # A call, unlike a definition, is indented.
            echo "$name $(grep -El "^ .*\bmca_coll_flash_$name\(" ./*/*.c | grep -v coll_flash_handle.c |
                cut -d/ -f2 | sort -u | tr '\n' ' ')"
        done | awk '{ $1 = $1; print }')
}
lives_are_the_same() {
    [[ $(requests_of_code | wc -l) == 9 ]] && diff <(requests_of_page) <(requests_of_code)
}
# Open MPI's functions for it are in compat's headers.
one_writes_requests() {
    [[ $(cd "$top_srcdir/ompi_coll_flash" && grep -El 'req_state = |req_complete = |ompi_request_complete\(' ./*/*.c) == \
        ./request/coll_flash_handle.c ]]
}

point 'every source is in a room' every_file_is_in_a_room
point 'includes point to rooms that may be seen' includes_go_one_way
point 'the table of rooms goes one way' table_goes_one_way
point 'objects are of these sources' objects_are_new
point 'calls point to rooms that may be seen' calls_go_one_way
point 'no circle of more than two files' no_large_circles
point 'the engine includes no MPI, UCX, CUDA' engine_is_alone
point 'no source has more than 400 lines, but the public header' files_are_short
point 'the states of a slot, on the page and in the code' states_are_the_same
point 'what changes the state of a request, on the page and in the code' lives_are_the_same
point 'one source writes the state of requests' one_writes_requests
plan
