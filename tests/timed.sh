#!/usr/bin/env bash
#
# timed.sh DRIVER [ARGUMENT]...: what `make check` runs a test with, and notes how long it took: the file
# beside the test's log has the seconds that went by, and those of processor time.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

results=
for ((k = 1; k < $#; k++)); do
    [[ ${!k} != --trs-file ]] || results=${*:k+1:1}
done
status=0
export LC_ALL=C # a decimal point
TIMEFORMAT='%R %U %S'
{ time "$@" 2>&3; } 3>&2 2>"${results%.trs}.time" || status=$?
exit "$status"
