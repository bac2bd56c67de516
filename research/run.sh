#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/run.sh NAME...
#
# Runs the built lessons named as arguments, one after another, and says for
# each whether it passed, was skipped for want of hardware, or failed. Exit
# status 1 if one failed.

set -u
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || {
    echo "run.sh: name what to run, as in run.sh atomics, or use make run" >&2
    exit 1
}
failed=0
[ -e /dev/fd/1 ] || {
    echo "run.sh: stdout is closed: give it somewhere to write to" >&2
    exit 1
}
# Complaints pass through no file: a full disk must not swallow them.
exec 3>&1
for name; do
    complaints=$("./build/$name" 2>&1 >&3 3>&-)
    status=$?
    [ -z "$complaints" ] || printf '%s\n' "$complaints" >&2
    case $status in
        0) verdict=passed ;;
        77) verdict=skipped ;;
        *)
            verdict="failed (exit $status)"
            failed=1
            ;;
    esac
    echo "$name: $verdict" 2>/dev/null || {
        echo "run.sh: cannot write to stdout: is the disk full?" >&2
        failed=1
    }
    case $verdict/$complaints in failed*/"No CUDA GPU"*)
        echo "Running needs an NVIDIA GPU. Without one, make run-cpu runs the lessons' kernels on the CPU." >&2
        exit 1
        ;;
    esac
done
exit $failed
