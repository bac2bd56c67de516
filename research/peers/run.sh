#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/peers/run.sh
#
# Builds and runs research/peers/NAME_peers.cu, one after another, and prints
# what they print as one output: a section's name begins with NAME-.

set -u
LC_ALL=C
export LC_ALL

die() {
    echo "peers/run.sh: $*" >&2
    exit 1
}

cd "$(dirname "$0")/../.." || exit 1
mkdir -p build && work=$(mktemp -d build/peers.XXXXXX) || die "cannot make a folder in build/"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "The lessons' best kernels beside the libraries"
for source in research/peers/*_peers.cu; do
    peer=$(basename "$source" _peers.cu)
    build_line=$(evidence/capture.sh --build-line "$source") || exit 1
    build_line=${build_line#nvcc }
    # shellcheck disable=SC2086 # The build line is a list of words.
    "${NVCC:-nvcc}" ${build_line% -o *} -o "$work/$peer" "$source" >"$work/log" 2>&1 ||
        die "$source does not build: $(research/reason.sh "$work/log")"
    timeout --foreground -k 10 120 "$work/$peer" >"$work/stdout" || die "$source exits $?"
    [ "$(tail -n 1 "$work/stdout")" = "All checks passed." ] ||
        die "$source does not end with 'All checks passed.'"
    echo
    sed "/^== /,\$!d; s/^== /&$peer-/; \$d" "$work/stdout" | sed '$d'
done
printf '\nAll checks passed.\n'
