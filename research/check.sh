#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/check.sh TEST[:SHARDS]...
#
# Runs GoogleTest programs, two at a time, those with SHARDS in so many parts,
# and sums up: a line each, what failed in full, and last `N passed, N failed`.
# A program that crashes, runs no test or skips one counts as failed, too. Exit
# status 1 if anything failed, nothing passed, or that could not be written. What
# each printed stays in build/tests/logs.

set -u
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || {
    echo "check.sh: name the test programs, or use make check" >&2
    exit 1
}
logs=build/tests/logs
rm -rf "$logs"
mkdir -p "$logs" || exit 1

# Each part leaves in $logs NAME.PART.log, .status, and .xml unless it crashed.
for argument; do
    shards=1
    case $argument in *:*) shards=${argument##*:} ;; esac
    part=0
    while [ "$part" -lt "$shards" ]; do
        echo "${argument%:*} $shards $part"
        part=$((part + 1))
    done
done | xargs -n 3 -P 2 sh -c '
    log=$0/$(basename "$1").$3
    GTEST_TOTAL_SHARDS=$2 GTEST_SHARD_INDEX=$3 GTEST_OUTPUT=xml:$log.xml \
        "./$1" </dev/null >"$log.log" 2>&1
    echo $? >"$log.status"
' "$logs"

# A count in the first line of a report that has it.
count() {
    sed -n "s/.*<testsuites .*$2=\"\([0-9]*\)\".*/\1/p" "$1" | head -n 1
}

passed=0
failed=0
for argument; do
    name=$(basename "${argument%:*}")
    tests=0
    faults=0
    for log in "$logs/$name".*.log; do
        report=${log%.log}.xml
        status=$(cat "${log%.log}.status" 2>/dev/null || echo unknown)
        wrong=0
        if [ -s "$report" ]; then
            ran=$(count "$report" tests)
            wrong=$(count "$report" failures)
            wrong=$((wrong + $(grep -c 'result="skipped"' "$report")))
            tests=$((tests + ran))
        fi
        if [ "$wrong" -eq 0 ] && [ "$status" != 0 ]; then
            echo "$name: ended with status $status."
            tests=$((tests + 1))
            wrong=1
        fi
        [ "$wrong" -eq 0 ] || grep -v '^\[ RUN  \|^\[       OK' "$log"
        faults=$((faults + wrong))
    done
    if [ "$tests" -eq 0 ]; then
        echo "$name: ran no test."
        tests=1
        faults=1
    fi
    echo "$name: $((tests - faults)) passed, $faults failed"
    passed=$((passed + tests - faults))
    failed=$((failed + faults))
done
echo "$passed passed, $failed failed" && [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
