#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs a lesson, or a set of runs, on this machine's GPU and records the output.
#
#   evidence/capture.sh atomics/atomics.cu       write evidence/atomics/GPU-DATE.txt
#   evidence/capture.sh knobs-barrier_pipeline   a lesson at every value of its knobs
#   evidence/capture.sh check-gpu LESSON.cu...   what only a GPU can test
#   evidence/capture.sh peers                    kernels beside the libraries' own
#   evidence/capture.sh --fingerprint FILE       print the fingerprint of a source
#   evidence/capture.sh --build-line FILE        print the Build command in its header
#
# A lesson is built by the Build line of its own header, in an empty folder.
# Its reduced copy (research/reduced) runs under the four tools of
# compute-sanitizer first. A transcript appears whole, or not at all: whatever
# goes wrong is said in one sentence, the exit status is 1, and what stood
# there before still stands. CUDA_VISIBLE_DEVICES chooses the GPU.
# What the fields mean: research/REVIEW-PROCESS.md.

set -u
LC_ALL=C
export LC_ALL

die() {
    echo "capture.sh: $*" >&2
    exit 1
}

# The sha256 of a source: in C++ and CUDA without // comments, trailing blanks and
# empty lines; of a ledger of claims what can be checked; in scripts and lists
# without the lines that are comments or empty.
fingerprint() {
    [ -r "$1" ] && [ ! -d "$1" ] || die "cannot read $1: name a source file"
    case $1 in
        *.cu | *.cc | *.h) without_comments "$1" ;;
        *.md) grep -E '^(## |- (file|source|ptx|sass|counter|racecheck|for): )' "$1" ;;
        *) grep -vE '^[[:blank:]]*(#|$)' "$1" ;;
    esac | sha256sum | cut -c 1-64
}
# A // inside a string or character literal is no comment.
without_comments() {
    awk '{
        sub(/\r$/, "")
        quote = ""
        for (i = 1; i <= length($0); ++i) {
            c = substr($0, i, 1)
            if (quote != "") {
                if (c == "\\") ++i
                else if (c == quote) quote = ""
            } else if (c == "\"") {
                quote = c
            } else if (c == "\047") {
                # Between digits it separates thousands.
                if (i == 1 || substr($0, i - 1, 1) !~ /[0-9A-Za-z_]/) quote = c
            } else if (substr($0, i, 2) == "//") {
                $0 = substr($0, 1, i - 1)
            }
        }
        sub(/[ \t]+$/, "")
        if ($0 != "") print
    }' "$1"
}

# The Build command of a lesson; it stands on the line of the word or alone on
# the next.
build_line() {
    [ -f "$1" ] && [ -r "$1" ] || die "there is no source $1: name one, as in atomics/atomics.cu"
    base=$(basename "$1" .cu)
    line=$(sed -n '/^\/\/ Build:/{s|^// Build: *||;/./!{n;s|^// *||;};p;q;}' "$1")
    case $line in
        "nvcc "*" -o $base $base.cu") echo "$line" ;;
        *) die "$1 needs a line '// Build: nvcc FLAGS -o $base $base.cu' in its header" ;;
    esac
}

case ${1-} in
    --fingerprint | --build-line)
        [ $# -eq 2 ] || die "usage: evidence/capture.sh $1 FILE"
        if [ "$1" = --fingerprint ]; then fingerprint "$2"; else build_line "$2"; fi
        exit
        ;;
esac

[ $# -ge 1 ] || die "usage: evidence/capture.sh LESSON.cu, knobs-LESSON, check-gpu LESSON.cu..., or peers"
cd "$(dirname "$0")/.." || die "cannot enter the project's folder"
# A lesson as a transcript names it, by no path of this machine.
from_top() {
    path=${1#"$PWD"/}
    path=${path#./}
    echo "$path" | grep -qx '[[:alnum:]_-]*/[[:alnum:]_-]*\.cu' ||
        die "$1 is no lesson: name one as FOLDER/NAME.cu, as in atomics/atomics.cu"
    echo "$path"
}
# What to run, and for the transcript: the source, further ones, the command
# that builds it, and what the last line of the output must be.
name=$1
sanitizer="not applicable"
more=
complete='All checks passed.'
case $name in
    knobs-?*)
        lesson=$(sed -n "s|^\([^#]*/${name#knobs-}\) :: .*|\1.cu|p" research/knobs.txt | head -n 1)
        [ -n "$lesson" ] || die "research/knobs.txt has no knob of ${name#knobs-}: add it there"
        build=$(build_line "$lesson") || exit 1
        build="$build with $(awk -F ' :: ' -v lesson="${lesson%.cu}" '
            $1 == lesson {printf "%s%s = KNOB", sep, $2; sep = " or "}' research/knobs.txt)"
        program="0 research/knobs.sh ${name#knobs-}"
        ;;
    check-gpu)
        shift
        [ $# -gt 0 ] || die "check-gpu needs the lessons: make evidence-check-gpu names them"
        lessons=$(for argument; do from_top "$argument" || exit 1; done) || exit 1
        lesson=research/check_gpu.sh
        more="$lessons research/sanitize.sh research/limit.sh research/left.sh research/racecheck.awk
            research/CLAIMS.md research/gate/read.cc research/gate/read.h research/tests/shell.h
            evidence/capture.sh
            $(ls research/claims/* research/reduced/* research/mutants/*.txt)"
        build="nvcc -std=c++17 -O3 -arch=native -o LESSON LESSON.cu"
        program="0 env CAPTURING=yes research/check_gpu.sh $lessons"
        complete='[0-9]* passed, 0 failed, [0-9]* skipped'
        ;;
    peers)
        set -- research/peers/*_peers.cu
        lesson=$1
        [ -r "$lesson" ] || die "there is no $lesson to run"
        build=$(build_line "$lesson") || exit 1
        shift
        more="$* $(sed -n 's|^#include "../../\(.*\.cu\)"$|\1|p' research/peers/*_peers.cu | sort -u)"
        program="0 research/peers/run.sh"
        ;;
    *)
        lesson=$(from_top "$name") || exit 1
        name=$(basename "$lesson" .cu)
        build=$(build_line "$lesson") || exit 1
        program=
        ;;
esac

NVCC=${NVCC:-nvcc}
nvcc() { command "$NVCC" "$@"; }
command -v "$NVCC" >/dev/null ||
    die "no CUDA compiler $NVCC: install the CUDA Toolkit, or set NVCC to where it is"
command -v nvidia-smi >/dev/null ||
    die "no nvidia-smi: a transcript needs an NVIDIA GPU and its driver"
for tool in flock:util-linux timeout:coreutils find:findutils; do
    command -v "${tool%:*}" >/dev/null || die "no ${tool%:*}: install it (it is part of ${tool#*:})"
done
[ -z "${NVCC_APPEND_FLAGS-}${NVCC_PREPEND_FLAGS-}" ] ||
    die "NVCC_APPEND_FLAGS or NVCC_PREPEND_FLAGS changes the build, and no field would say so: unset it"
toolkit=$(nvcc --version | sed -n 's/.*, V\([0-9.]*\)$/\1/p')
[ -n "$toolkit" ] || die "$NVCC --version names no version"
host=${NVCC_CCBIN:-g++}
[ ! -d "$host" ] || host=$host/g++
host=$("$host" -dumpfullversion) && [ -n "$host" ] ||
    die "the host compiler gives no version: install g++, or set NVCC_CCBIN to where it is"

# One GPU, by its UUID, so that the run and the fields below are of the same.
gpu_index=${CUDA_VISIBLE_DEVICES:-0}
gpu_index=${gpu_index%%,*}
gpu_fields=$(nvidia-smi -i "$gpu_index" --format=csv,noheader \
    --query-gpu=uuid,name,compute_cap,mig.mode.current,ecc.mode.current,driver_version) ||
    die "nvidia-smi finds no GPU $gpu_index: check the driver, or set CUDA_VISIBLE_DEVICES"
gpu_field() { echo "$gpu_fields" | awk -F ', *' -v field="$1" 'NR == 1 {print $field}'; }
on_off() { case $1 in Enabled) echo on ;; Disabled) echo off ;; *) echo none ;; esac; }
CUDA_VISIBLE_DEVICES=$(gpu_field 1)
export CUDA_VISIBLE_DEVICES
gpu=$(gpu_field 2)

mkdir -p build "evidence/$name" || die "cannot make build/ and evidence/$name/"
exec 9>build/capture.lock || die "cannot write build/capture.lock"
flock -n 9 || die "another capture, or make check-gpu, is running: two at once would disturb each other's times"
work=$(mktemp -d build/capture.XXXXXX) || die "cannot make a folder in build/"
final=evidence/$name/$(echo "$gpu" | tr 'A-Z ' 'a-z-')-$(date -u +%Y-%m-%d).txt
partial=$final.partial
group=
trap 'rm -rf "$work" "$partial"; rmdir "evidence/$name" 2>/dev/null' EXIT
trap '{ kill $group; wait $group; } 2>/dev/null; research/left.sh "$work" | xargs -r kill -s KILL; exit 1' HUP INT TERM
# Runs a command for at most so many seconds, 0 for as long as it takes, in a
# process group of its own, all of which a signal then ends.
grouped() {
    timeout -k 10 "$@" 9>&- &
    group=$!
    wait $group
}

# The sources, each with its fingerprint.
fingerprints() {
    for source in "$lesson" $more; do
        hash=$(fingerprint "$source") || exit 1
        echo "fingerprint: $hash $source"
    done
}
fingerprints=$(fingerprints) || exit 1

# Builds $work/$1/$name.cu by the lesson's Build line, with more flags in $2.
build_copy() {
    # shellcheck disable=SC2086 # The build line is a list of words.
    (cd "$work/$1" && $build $2) >"$work/log" 2>&1 ||
        die "$lesson does not build by its Build line: $(research/reason.sh "$work/log")"
}
mkdir "$work/full" "$work/reduced" || die "cannot write to build/"
if [ -z "$program" ]; then
    cp "$lesson" "$work/full/$name.cu" || die "cannot copy $lesson"
    research/reduced/reduce.sh "$lesson" >"$work/reduced/$name.cu" 2>"$work/log" || die "$(tail -n 1 "$work/log")"
    build_copy full ""
    build_copy reduced -lineinfo
    program="120 env -C $work/full ./$name"
    grouped 0 research/sanitize.sh "$lesson" "$work/reduced/$name.cu" "$work/reduced/$name" >"$work/sanitizer" 2>"$work/log" || {
        sed '$d' "$work/log" >&2
        die "$(tail -n 1 "$work/log")"
    }
    sanitizer=$(cat "$work/sanitizer")
fi

out=$work/full/stdout
# shellcheck disable=SC2086 # The program and its arguments.
grouped $program >"$out" 2>"$work/full/stderr"
status=$?
[ $status -ne 124 ] || die "$lesson takes more than two minutes and nothing is recorded"
[ $status -eq 0 ] || {
    sed 1d "$work/full/stderr" >&2
    die "$lesson exits $status and nothing is recorded: $(head -n 1 "$work/full/stderr")"
}
after=$(fingerprints) || exit 1
[ "$after" = "$fingerprints" ] ||
    die "$(echo "$after" | grep -vxF "$fingerprints" | cut -d ' ' -f 3 | xargs) changed during the run: capture again"
[ ! -s "$work/full/stderr" ] ||
    die "$lesson complains and nothing is recorded: $(head -n 1 "$work/full/stderr")"
tail -n 1 "$out" | grep -qx "$complete" ||
    die "$lesson does not end with '$complete': its output is not complete"
grep -qxF "gpu: $gpu" "$out" ||
    die "$lesson did not run on the $gpu: $(grep '^gpu:' "$out")"

(
    set -e
    echo "lesson: $lesson"
    echo "$fingerprints" | sed '1s/ [^ ]*$//'
    echo "build: $build"
    echo "toolkit: $toolkit"
    echo "host compiler: g++ $host"
    echo "gpu: $gpu"
    echo "compute capability: $(gpu_field 3)"
    echo "sms: $(sed -n '/^sms: /{s///;p;q;}' "$out")"
    echo "mig: $(on_off "$(gpu_field 4)")"
    echo "ecc: $(on_off "$(gpu_field 5)")"
    echo "driver: $(gpu_field 6)"
    echo "date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "exit: $status"
    echo "sanitizer: $sanitizer"
    echo "-- stdout --"
    cat "$out"
    echo "-- stderr --"
) >"$partial"
[ $? -eq 0 ] && echo "-- end $(sha256sum <"$partial" | cut -c 1-64) --" >>"$partial" && mv "$partial" "$final" ||
    die "cannot write $final: is the disk full, or the folder read-only?"
echo "$final"
