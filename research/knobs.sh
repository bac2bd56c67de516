#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/knobs.sh LESSON
#
# Runs a lesson on the GPU at every value of its knobs (research/knobs.txt) and
# prints a section a knob, with a row a value. Every run must pass its checks.

set -u
LC_ALL=C
export LC_ALL

die() {
    echo "knobs.sh: $*" >&2
    exit 1
}

cd "$(dirname "$0")/.." || die "cannot enter the project's folder"
name=${1-}
grep "^[^#]*/$name :: " research/knobs.txt >/dev/null ||
    die "no knob of '$name' in research/knobs.txt: add it there"
mkdir -p build && work=$(mktemp -d build/knobs.XXXXXX) || die "cannot make a folder in build/"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# The knobs, a word for each field.
grep "^[^#]*/$name :: " research/knobs.txt | sed 's/ :: /\t/g' >"$work/knobs"
tab=$(printf '\t')
lesson=$(head -n 1 "$work/knobs" | cut -f 1).cu
build=$(evidence/capture.sh --build-line "$lesson") || exit 1
build=${build#nvcc }
NVCC=${NVCC:-nvcc}
command -v "$NVCC" >/dev/null ||
    die "no CUDA compiler $NVCC: install the CUDA Toolkit, or set NVCC to where it is"
export NVCC build

# A copy of the lesson a value, each in a folder of its own; all built at once.
while IFS=$tab read -r _ constant values _; do
    pattern="^\\(constexpr [a-z]* $constant = \\)[0-9][0-9]*;"
    [ "$(grep -c "$pattern" "$lesson")" = 1 ] ||
        die "$lesson needs one line 'constexpr TYPE $constant = N;'"
    for value in $values; do
        mkdir "$work/$constant.$value" &&
            sed "s/$pattern/\\1$value;/" "$lesson" >"$work/$constant.$value/$name.cu" ||
            die "cannot write to build/"
    done
done <"$work/knobs"
# shellcheck disable=SC2016 # The inner shell expands it.
printf '%s\n' "$work"/*.* | xargs -P "$(nproc)" -I COPY sh -c '
    (cd COPY && "$NVCC" $build) >COPY/log 2>&1 || {
        echo "knobs.sh: $(basename COPY) does not build: $(research/reason.sh COPY/log)" >&2
        exit 1
    }' || exit 1

# Prints words as a table, aligned to the right.
align() {
    awk 'NR == 1 {for (i = 1; i <= NF; ++i) width[i] = length($i) > 9 ? length($i) : 9}
        {for (i = 1; i <= NF; ++i) printf "%" width[i] "s%s", $i, i < NF ? " " : "\n"}' "$1"
}

# One run after another.
while IFS=$tab read -r _ constant values _ figures; do
    printf '\n== %s: %s at each value ==\n' "$constant" "$name"
    sed -n "s/^constexpr [a-z]* $constant = \\([0-9]*\\);.*/lesson: \\1/p" "$lesson"
    row=$constant
    for figure in $figures; do row="$row ${figure%%=*}"; done
    echo "$row" >"$work/table"
    for value in $values; do
        copy=$work/$constant.$value
        timeout --foreground -k 10 120 "$copy/$name" >"$copy/stdout" 2>"$copy/stderr" </dev/null
        status=$?
        [ $status -eq 0 ] && [ ! -s "$copy/stderr" ] &&
            [ "$(tail -n 1 "$copy/stdout")" = "All checks passed." ] ||
            die "$name does not pass with $constant = $value (exit $status): $(head -n 1 "$copy/stderr")"
        awk -f research/figures.awk "$copy/stdout" >"$copy/figures"
        row=$value
        for figure in $figures; do
            cell=$(awk -v place="${figure#*=}" '$1 == place {print $2}' "$copy/figures")
            [ -n "$cell" ] || die "$name prints no figure ${figure#*=}"
            row="$row $cell"
        done
        echo "$row" >>"$work/table"
    done
    align "$work/table"
done <"$work/knobs" >"$work/sections" || exit 1

echo "$name: the knobs turned"
echo
sed -n '/^== device: /,/^$/p' "$copy/stdout" | sed '$d'
cat "$work/sections"
printf '\nAll checks passed.\n'
