#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/sanitize.sh LESSON.cu SOURCE PROGRAM [TOOL]...
#
# Runs PROGRAM, built from SOURCE with -lineinfo, which is a copy of LESSON.cu,
# under the tools of compute-sanitizer, all four if none is named. Prints what a
# transcript's sanitizer field says: each tool and its number of reports, and
# behind a number other than 0 the record of research/CLAIMS.md that explains
# them. Exit status 1 if reports are not explained, 2 if a tool is not there or
# does not run here, 3 if it takes more than SANITIZER_SECONDS, 60 unless set, 4 if
# the program fails though nothing is reported, 5 if a tool breaks down; the last
# line on stderr then says why.

set -u
LC_ALL=C
export LC_ALL

[ $# -ge 3 ] || {
    echo "usage: research/sanitize.sh LESSON.cu SOURCE PROGRAM [TOOL]..." >&2
    exit 1
}
lesson=$1
source=$2
program=$3
shift 3
[ $# -gt 0 ] || set -- memcheck racecheck synccheck initcheck

command -v compute-sanitizer >/dev/null || {
    echo "no compute-sanitizer: install it (it is part of the CUDA Toolkit) or put it on PATH" >&2
    exit 2
}
seconds=${SANITIZER_SECONDS:-60}
log=$program.log
line=
for tool; do
    research/limit.sh "$seconds" compute-sanitizer --tool "$tool" "$program" >"$log" 2>&1
    status=$?
    reports=$(sed -n 's/^=* *[A-Z]* SUMMARY: \([0-9]*\) .*/\1/p' "$log" | head -n 1)
    if [ $status -eq 124 ]; then
        echo "the reduced copy of $lesson takes more than $seconds s under $tool" >&2
        exit 3
    fi
    if [ -z "$reports" ]; then
        # Where another tool ran, or this was ended, the machine lacks nothing.
        if [ -n "$line" ] || [ $status -gt 128 ]; then
            echo "compute-sanitizer --tool $tool breaks down, exit status $status: $(head -n 1 "$log")" >&2
            exit 5
        fi
        echo "compute-sanitizer --tool $tool cannot run here: $(head -n 1 "$log")" >&2
        exit 2
    fi
    claim=
    if [ $status -eq 0 ] && [ "$tool" = racecheck ] && [ "$reports" != 0 ]; then
        claim=$(awk -v lesson="$lesson" -f research/racecheck.awk research/CLAIMS.md "$source" "$log") || {
            echo "$claim" >&2
            claim=
        }
    fi
    if [ "$reports" != 0 ] && [ -z "$claim" ]; then
        grep '^=' "$log" | head -n 40 >&2
        echo "$tool reports $reports faults in the reduced copy of $lesson" >&2
        exit 1
    fi
    if [ $status -ne 0 ]; then
        echo "the reduced copy of $lesson exits $status under $tool" >&2
        exit 4
    fi
    line="$line${line:+, }$tool $reports${claim:+ ($claim)}"
done
echo "$line"
