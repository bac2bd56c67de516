#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs a lesson on this machine's GPU and records what it printed.
#
#   evidence/capture.sh atomics/atomics.cu       write evidence/atomics/GPU-DATE.txt
#   evidence/capture.sh --fingerprint FILE       print the fingerprint of a source
#
# The lesson is built by the Build line of its own header, in an empty folder.
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

# The sha256 of a source without // comments, trailing blanks and empty lines.
# A // inside a string or character literal is no comment.
fingerprint() {
    [ -r "$1" ] && [ ! -d "$1" ] || die "cannot read $1: name a source file"
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
    }' "$1" | sha256sum | cut -c 1-64
}

if [ "${1-}" = --fingerprint ] && [ $# -eq 2 ]; then
    fingerprint "$2"
    exit
fi
[ $# -eq 1 ] || die "usage: evidence/capture.sh LESSON.cu, or --fingerprint FILE"

cd "$(dirname "$0")/.." || die "cannot enter the project's folder"
lesson=$1
name=$(basename "$lesson" .cu)
reduction=research/reduced/$name.sed
[ -r "$lesson" ] || die "there is no lesson $lesson: name it as in atomics/atomics.cu"
[ -r "$reduction" ] || die "there is no $reduction to make the reduced copy with"

NVCC=${NVCC:-nvcc}
nvcc() { command "$NVCC" "$@"; }
command -v "$NVCC" >/dev/null ||
    die "no CUDA compiler $NVCC: install the CUDA Toolkit, or set NVCC to where it is"
command -v nvidia-smi >/dev/null ||
    die "no nvidia-smi: a transcript needs an NVIDIA GPU and its driver"
command -v compute-sanitizer >/dev/null ||
    die "no compute-sanitizer: install it (it is part of the CUDA Toolkit) or put it on PATH"

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
flock -n 9 || die "another capture is running: two at once would disturb each other's times"
work=$(mktemp -d build/capture.XXXXXX) || die "cannot make a folder in build/"
final=evidence/$name/$(echo "$gpu" | tr 'A-Z ' 'a-z-')-$(date -u +%Y-%m-%d).txt
partial=$final.partial
trap 'rm -rf "$work" "$partial"' EXIT
trap 'exit 1' HUP INT TERM

# Builds $work/$1/$name.cu by the lesson's Build line, with more flags in $2.
# The Build command stands on the line of the word or alone on the next.
build_line=$(sed -n '/^\/\/ Build:/{s|^// Build: *||;/./!{n;s|^// *||;};p;q;}' "$lesson")
case $build_line in
    "nvcc "*" -o $name $name.cu") ;;
    *) die "$lesson needs a line '// Build: nvcc FLAGS -o $name $name.cu' in its header" ;;
esac
build() {
    # shellcheck disable=SC2086 # The build line is a list of words.
    (cd "$work/$1" && $build_line $2) >"$work/log" 2>&1 ||
        die "$lesson does not build by its Build line: $(head -n 1 "$work/log")"
}
mkdir "$work/full" "$work/reduced" || die "cannot write to build/"
cp "$lesson" "$work/full/$name.cu" || die "cannot copy $lesson"
sed -f "$reduction" "$lesson" >"$work/reduced/$name.cu" || die "$reduction does not apply to $lesson"
build full ""
build reduced -lineinfo

sanitizer=
for tool in memcheck racecheck synccheck initcheck; do
    compute-sanitizer --tool $tool "$work/reduced/$name" >"$work/log" 2>&1
    status=$?
    reports=$(sed -n 's/^=* *[A-Z]* SUMMARY: \([0-9]*\) .*/\1/p' "$work/log")
    [ -n "$reports" ] || die "compute-sanitizer --tool $tool cannot run here: $(head -n 1 "$work/log")"
    [ "$reports" = 0 ] || {
        grep '^=' "$work/log" | head -n 40 >&2
        die "$tool reports $reports faults in the reduced copy of $lesson"
    }
    [ $status -eq 0 ] || die "the reduced copy of $lesson exits $status under $tool"
    sanitizer=$sanitizer${sanitizer:+, }$tool' 0'
done

(cd "$work/full" && ./"$name" >stdout 2>stderr)
status=$?
out=$work/full/stdout
[ $status -eq 0 ] ||
    die "$lesson exits $status and nothing is recorded: $(head -n 1 "$work/full/stderr")"
[ ! -s "$work/full/stderr" ] ||
    die "$lesson complains and nothing is recorded: $(head -n 1 "$work/full/stderr")"
[ "$(tail -n 1 "$out")" = "All checks passed." ] ||
    die "$lesson does not end with 'All checks passed.': its output is not complete"
grep -qxF "gpu: $gpu" "$out" ||
    die "$lesson did not run on the $gpu: $(grep '^gpu:' "$out")"

(
    set -e
    echo "lesson: $lesson"
    echo "fingerprint: $(fingerprint "$lesson")"
    echo "build: $build_line"
    echo "toolkit: $(nvcc --version | sed -n 's/.*, V\([0-9.]*\)$/\1/p')"
    echo "host compiler: g++ $("${NVCC_CCBIN:-g++}" -dumpfullversion)"
    echo "gpu: $gpu"
    echo "compute capability: $(gpu_field 3)"
    echo "sms: $(sed -n 's/^sms: //p' "$out")"
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
