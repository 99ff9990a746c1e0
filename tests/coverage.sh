#!/bin/sh
# coverage.sh, for `make coverage`: runs the unit and the MPI tests, and tells which lines of the
# library they ran, by gcov alone. Run in the build folder.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -eu

if [ -z "${GCOV:-}" ]; then
    echo 'coverage: configure with --enable-coverage (which needs gcov)' >&2
    exit 2
fi
folders='ompi_coll_flash ucx_backend cuda'
tests='tests/unit tests/mpi'

# shellcheck disable=SC2086 # a list of words
find $folders -name '*.gcda' -exec rm -f {} +
status=0
export FLASH_COVERAGE=yes
for folder in $tests; do
    ${MAKE:-make} -C "$folder" check || status=$?
done

# shellcheck disable=SC2016,SC2086 # awk's own variables; a list of words
# All objects' annotated sources, one after the other. A line of a header counts once, however many
# sources include it.
find $folders -name '*.gcno' | while IFS= read -r notes; do
    "$GCOV" --stdout --object-file "$notes" "$notes" 2>/dev/null
done | ${AWK:-awk} -F: -v folders="$folders" '
    $2 == 0 && $3 == "Source" {
        part = split($4, parts, "/")
        # From the top-level folder on.
        wanted = 0
        for (at = 1; at < part && !wanted; at++) {
            wanted = index(" " folders " ", " " parts[at] " ") > 0
        }
        name = parts[at - 1]
        for (; at <= part; at++) {
            name = name "/" parts[at]
        }
        next
    }
    wanted && $1 !~ /^ *-$/ && $2 > 0 {
        line = $2 + 0
        if (!((name, line) in ran)) {
            ran[name, line] = 0
            lines[name]++
            if (line > last[name]) {
                last[name] = line
            }
        }
        if ($1 ~ /[0-9]/) {
            ran[name, line] = 1
        }
    }
    # The lines that did not run, as ranges.
    function missed(name, line, text, from, to) {
        for (line = 1; line <= last[name] + 1; line++) {
            if ((name, line) in ran && !ran[name, line]) {
                from = from ? from : line
                to = line
            } else if (from && ((name, line) in ran || line > last[name])) {
                text = text " " (from == to ? from : from "-" to)
                from = 0
            }
        }
        return text
    }
    END {
        for (key in ran) {
            split(key, parts, SUBSEP)
            done[parts[1]] += ran[key]
        }
        sort = "LC_ALL=C sort"
        for (name in lines) {
            printf "%-46s %5d of %5d %6.1f %% %s\n", name, done[name], lines[name],
                100 * done[name] / lines[name], (done[name] < lines[name] ? " not:" : "") \
                missed(name) | sort
            total += lines[name]
            covered += done[name]
        }
        close(sort)
        if (total == 0) {
            print "coverage: no lines found"
            exit 1
        }
        printf "coverage: %.1f %% of %d lines\n", 100 * covered / total, total
        if (covered < 0.9 * total) {
            print "coverage: 90 % at least are wanted"
            exit 1
        }
    }'
exit "$status"
