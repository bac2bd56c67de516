#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/cpu_runner/build.sh BUILD LESSON.cu PROGRAM [EXPRESSION]...
#        research/cpu_runner/build.sh BUILD
#
# Compiles the reduced copy of a lesson for the CPU runner; BUILD is plain, asan
# (with UBSan) or tsan. The EXPRESSIONs, and REDUCE=no, go to reduce.sh. With
# TEST=FILE.cc it compiles instead a test of the lesson's functions, which
# includes the lesson as LESSON. Without a lesson it only prepares what all
# programs of BUILD share, the precompiled header and the runner itself. CXX and
# NVCC name the compilers; of nvcc only the headers are used. Run from the top
# of the repository. The exit status is that of the first step that failed.
set -eu

fail() {
    printf 'build.sh: %s\n' "$1" >&2
    exit 1
}

here=research/cpu_runner
cxx=${CXX:-g++}
nvcc=${NVCC:-nvcc}
build=${1-}
# Contraction to FMA is off: a reference must round as it is written. Frames are
# kept so that a deadlock's report finds the waiting lines.
flags='-std=c++17 -O1 -g1 -fPIE -ffp-contract=off
    -fno-optimize-sibling-calls -fsanitize-coverage=trace-pc -fdata-sections'
case $build in
plain) ;;
asan)
    flags="$flags -fsanitize=address,undefined -fno-sanitize-recover=all"
    ;;
tsan) flags="$flags -fsanitize=thread" ;;
*) fail "BUILD is \"$build\": it must be plain, asan or tsan." ;;
esac

[ -r $here/cpu_runner.h ] || fail "run this from the top of the repository."
command -v "${cxx%% *}" >/dev/null ||
    fail "no C++ compiler $cxx: install g++ 11 or newer, or set CXX."
! $cxx --version | grep -q clang ||
    fail "$cxx is clang: the CPU runner needs g++ 11 or newer; set CXX."
command -v "$nvcc" >/dev/null ||
    fail "no CUDA compiler $nvcc: install the CUDA Toolkit (its headers are\
 needed), or name it: make NVCC=..."
shared=build/cpu_runner
folder=$shared/$build
mkdir -p "$folder"
work=$(mktemp -d "$folder/tmp.XXXXXX") || fail "$folder cannot be written to."
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The toolkit's include folders, as nvcc itself names them, and the flags, in a
# file for g++ to read, which keeps paths with spaces whole.
dryrun=$("$nvcc" --dryrun -x cu /dev/null -o /dev/null 2>&1) || true
includes=$(printf '%s\n' "$dryrun" |
    sed -n 's/^#\$ \(SYSTEM_\)\{0,1\}INCLUDES=//p' |
    sed -e 's/"-isystem"/-isystem/g' -e 's/"-I/-isystem "/g')
[ -n "$includes" ] ||
    fail "$nvcc --dryrun names no include folder; it says:\
 $(printf '%s\n' "$dryrun" | tail -n 1)"
printf '%s\n' "$flags" "$includes" >"$work/flags"
cmp -s "$work/flags" "$folder/flags" || mv "$work/flags" "$folder/flags"
header=$folder/cpu_runner.h.gch
if ! [ "$header" -nt $here/cpu_runner.h ] || ! [ "$header" -nt "$folder/flags" ]
then
    $cxx "@$folder/flags" -x c++-header $here/cpu_runner.h -o "$work/header"
    # What g++ takes where it does not trust a precompiled header.
    echo '#include "../../../research/cpu_runner/cpu_runner.h"' \
        >"$folder/cpu_runner.h"
    mv "$work/header" "$header"
fi
runner=$shared/cpu_runner.o
if ! [ "$runner" -nt $here/cpu_runner.cc ] ||
    ! [ "$runner" -nt $here/cpu_runner.h ]; then
    printf '%s\n' "$includes" >"$work/includes"
    $cxx -std=c++17 -O2 -g1 -fPIE -Wall -Wextra "@$work/includes" \
        -c $here/cpu_runner.cc -o "$work/runner.o"
    mv "$work/runner.o" "$runner"
fi
[ $# -gt 1 ] || exit 0

[ $# -gt 2 ] || fail "name the program to write, after the lesson."
lesson=$2
program=$3
shift 3
research/reduced/reduce.sh "$lesson" "$@" >"$work/reduced"
{
    printf '#line 1 "%s"\n' "$lesson"
    sed -f $here/launches.sed "$work/reduced"
} >"$work/source.cc"
set -- "@$folder/flags" -include "$folder/cpu_runner.h"
if [ -n "${TEST-}" ]; then
    set -- "$@" "-DLESSON=\"$PWD/$work/source.cc\"" "$TEST" \
        -lgtest -lgtest_main
else
    set -- "$@" "$work/source.cc"
fi
$cxx "$@" "$runner" -pie -T $here/shared.ld -o "$work/program"
mv "$work/program" "$program"
