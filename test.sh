#!/usr/bin/env bash
#
# test.sh [CONFIGURE OPTION]...: installs what is missing, builds coll/flash in ./build-test, warnings
# being errors, and runs all of its tests: half an hour on two cores. The last line sums up.
# Exit status 0 if some passed and none failed. ./build.sh build-test --help lists configure's options.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
folder=build-test

if [[ " $* " == *' --help '* || " $* " == *' -h '* ]]; then
    sed -n '3,/^#$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]##*/}"
    exit 0
fi

./install-deps.sh
./build.sh "$folder" --enable-werror "$@"
# The test programs first, all at once; then the tests, which want the machine for themselves.
make --directory "$folder" --silent -j"$(nproc)" check TESTS= >/dev/null
find "$folder" \( -name '*.trs' -o -name '*.log' \) -path '*/tests/*' -delete
checked=0
make --directory "$folder" --silent --keep-going check || checked=$?

passed=0 failed=0 skipped=0
while IFS= read -r -d '' results; do
    while read -r field result _; do
        [[ $field == :test-result: ]] || continue
        case $result in
        PASS | XFAIL) passed=$((passed + 1)) ;;
        SKIP) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) ;;
        esac
    done <"$results"
    if grep -Eq '^:test-result: (FAIL|XPASS|ERROR)' "$results"; then
        printf '\n=== %s ===\n' "${results%.trs}"
        cat "${results%.trs}.log"
    fi
done < <(find "$folder/tests" -name '*.trs' -print0 | sort -z)

# Whatever stopped make apart from a test.
if ((checked != 0 && failed == 0)); then
    echo "make check failed outside of the tests: see above"
    failed=1
fi

summary="$passed passed, $failed failed"
if ((skipped)); then
    summary+=", $skipped skipped"
fi
echo
echo "$summary"
((passed > 0 && failed == 0))
