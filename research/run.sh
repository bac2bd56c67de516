#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the built lessons named as arguments, one after another, and says for
# each whether it passed, was skipped for want of hardware, or failed. Exit
# status 1 if one failed.

set -u
failed=0
for name; do
    complaints=build/$name.stderr
    "./build/$name" 2>"$complaints"
    status=$?
    cat "$complaints" >&2
    case $status in
        0) echo "$name: passed" ;;
        77) echo "$name: skipped" ;;
        *)
            echo "$name: failed (exit $status)"
            failed=1
            if grep -q '^No CUDA GPU' "$complaints"; then
                echo "Running needs an NVIDIA GPU. Without one, make run-cpu runs the lessons' kernels on the CPU." >&2
                exit 1
            fi
            ;;
    esac
done
exit $failed
