#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/check_gpu.sh LESSON.cu...
#
# Everything that only a GPU can test, as make check-gpu runs it. Of each lesson
#
#   native       as its Build line builds it, at full size
#   ptx          the PTX of its oldest architecture, compiled by the driver
#   no_gpu       with every GPU hidden, it says so and fails
#   full_stdout  where its output cannot be written, it says so and fails
#   sanitizers   the reduced copy under the tools of compute-sanitizer
#   variants     each line of research/mutants/LESSON.txt: a fault is planted in
#                the reduced copy and must be found: by the program itself, by
#                the time limit, by a tool of compute-sanitizer or by the
#                compiler. A variant that is no fault must pass.
#                Faults for the tests of host functions are not asked for, nor
#                those that research/mutants/not-on-gpu.txt lists
#
# then what the claims ledger says of machine code and counters, and that no
# process is left. Output is that of a lesson: sections, label: value, tables;
# stderr says more of what failed. The last line is N passed, N failed, N
# skipped: skipped is what this machine cannot run. Exit status 1 if any failed.
#
# Variants are built as many at a time as there are processors. GPU_JOBS of them
# run at a time, 8 unless set: nothing here is timed. Each may take GPU_SECONDS,
# 5 unless set. One that takes longer runs again at the end, alone: beside others
# that hang, a sound program is slow, too.

set -u
LC_ALL=C
export LC_ALL

cd "$(dirname "$0")/.." || exit 1
NVCC=${NVCC:-nvcc}
export NVCC

# What follows, up to "main", is for the jobs, each a start of this script:
# --lesson LESSON.cu 0 SLOT, --variant LESSON.cu LINE SLOT, or --alone for the
# same again. A job leaves in $work/NAME.LINE/result lines VERDICT|WHAT TO PRINT,
# or a file again in place of them.

# Runs a command on the card for at most so many seconds; then kills it.
card() {
    limit=$1
    shift
    flock -o "$work/card.$slot" timeout -s KILL "$limit" "$@"
}
# Notes a verdict. What failed is said on stderr, too.
result() {
    echo "$1|$2" >>"$dir/result"
    [ "$1" != failed ] || echo "$name: $2${3+: $3}" >&2
}

# How the run of $1 with status $2 went.
expect_pass() {
    if [ "$2" -eq 0 ] && [ ! -s "$dir/err" ] && [ "$(tail -n 1 "$dir/$1.out")" = "All checks passed." ]; then
        result passed "$1: passed"
    else
        result failed "$1: failed" "exits $2: $(head -n 1 "$dir/err")"
    fi
}
# The same for a run that must fail and say so in one line.
expect_complaint() {
    if [ "$2" -eq 1 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q "$3" "$dir/err"; then
        result passed "$1: passed"
    else
        result failed "$1: failed" "exits $2: $(head -n 1 "$dir/err")"
    fi
}

check_lesson() {
    if ! research/reduced/reduce.sh "$lesson" >"$dir/reduced.cu" || ! {
        # shellcheck disable=SC2086 # The flags of the Build line are words.
        "$NVCC" $flags -o "$dir/native" "$lesson" &&
            "$NVCC" $flags -lineinfo -o "$dir/reduced" "$dir/reduced.cu" &&
            "$NVCC" -std=c++17 -O3 -gencode "arch=compute_$minimum,code=compute_$minimum" -o "$dir/ptx" "$lesson"
    } >"$dir/log" 2>&1; then
        result failed "builds: failed" "$(research/reason.sh "$dir/log")"
        return
    fi
    card 120 "$dir/native" >"$dir/native.out" 2>"$dir/err"
    expect_pass native $?
    card 120 env CUDA_CACHE_DISABLE=1 "$dir/ptx" >"$dir/ptx.out" 2>"$dir/err"
    expect_pass ptx $?
    card 20 env CUDA_VISIBLE_DEVICES= "$dir/reduced" >"$dir/err" 2>&1
    expect_complaint no_gpu $? '^No CUDA GPU to run on'
    card 20 "$dir/reduced" >/dev/full 2>"$dir/err"
    expect_complaint full_stdout $? 'could not be written to stdout'
    reports=$(flock -o "$work/card.$slot" research/sanitize.sh "$lesson" "$dir/reduced.cu" "$dir/reduced" 2>"$dir/err")
    case $? in
        0) result passed "sanitizers: $reports" ;;
        2) result skipped "sanitizers: skipped, $(tail -n 1 "$dir/err")" ;;
        *) result failed "sanitizers: failed" "$(cat "$dir/err")" ;;
    esac
}

# Builds the variant in $dir/$name.cu, unless that is done, and runs it; prints how
# that ended.
ending() {
    # shellcheck disable=SC2086 # The flags of the Build line are words.
    [ "$job" = --alone ] || "$NVCC" $flags -lineinfo -o "$dir/$name" "$dir/$name.cu" >"$dir/log" 2>&1 || {
        echo compiler
        return
    }
    card "$GPU_SECONDS" "$dir/$name" >/dev/null 2>"$dir/log"
    status=$?
    case $status in
        0) [ "$outcome" != holds ] || { echo passes; return; } ;;
        124 | 137) echo time-limit; return ;;
        1) if [ -s "$dir/log" ]; then echo program; else echo silent; fi; return ;;
        *) echo "exit-$status"; return ;;
    esac
    for tool in memcheck racecheck synccheck initcheck; do
        flock -o "$work/card.$slot" research/sanitize.sh "$lesson" "$dir/$name.cu" "$dir/$name" $tool >/dev/null 2>&1
        case $? in
            0) ;;
            1) echo $tool; return ;;
            3) echo time-limit; return ;;
            *) echo no-tool; return ;;
        esac
    done
    echo survives
}

check_variant() {
    line=$(sed -n "${number}p" "research/mutants/$name.txt")
    variant=${line%% :: *}
    outcome=${line##* :: }
    expression=${line#* :: }
    expression=${expression% :: *}
    if [ "$capability" -lt "$minimum" ]; then
        ended=no-hardware
    elif [ "${outcome%%:*}" = unseen ] || [ "${outcome%%:*}" = host ] || grep -q "^$name/$variant :: " research/mutants/not-on-gpu.txt; then
        ended=not-asked
    elif research/reduced/reduce.sh "$lesson" "$expression" >"$dir/$name.cu"; then
        ended=$(ending)
    else
        ended=does-not-apply
    fi
    rm -f "$dir/again"
    if [ "$job/$ended" = --variant/time-limit ]; then
        : >"$dir/again"
        return
    fi
    of=failed
    case ${outcome%%:*}/$ended in
        */not-asked) of=none ;;
        */no-hardware | */no-tool) of=skipped ;;
        holds/passes) of=passed ;;
        compile/compiler) ! grep -qE "${outcome#*: }" "$dir/log" || of=passed ;;
        plain/* | asan/* | tsan/*)
            case $ended in program | time-limit | *check) of=passed ;; esac
            ;;
    esac
    result $of "$(printf '%-44s %s' "$variant" "$ended")"
}

case ${1-} in
    --lesson | --variant | --alone)
        job=$1
        lesson=$2
        number=$3
        slot=$(($4 % GPU_JOBS))
        name=$(basename "$lesson" .cu)
        dir=$work/$name.$number
        [ "$job" = --alone ] || mkdir "$dir" || exit 1
        flags=$(evidence/capture.sh --build-line "$lesson") || exit 1
        flags=${flags#nvcc }
        flags=${flags% -o *}
        minimum=$(sed -n 's|^// Needs: compute capability \([0-9]*\)\.\([0-9]\).*|\1\2|p' "$lesson")
        if [ "$job" != --lesson ]; then
            check_variant
        elif [ "$capability" -lt "$minimum" ]; then
            result skipped "builds: skipped, it needs a newer GPU than this"
        else
            check_lesson
        fi
        # Programs are large.
        [ -e "$dir/again" ] || rm -f "$dir/native" "$dir/ptx" "$dir/reduced" "$dir/$name"
        exit 0
        ;;
esac

# main

die() {
    echo "check_gpu.sh: $*" >&2
    exit 1
}
[ $# -gt 0 ] || die "name the lessons, or run make check-gpu"
[ -x build/check_claims ] || die "no build/check_claims: run make check-gpu, which builds it"
command -v "$NVCC" >/dev/null ||
    die "no CUDA compiler $NVCC: install the CUDA Toolkit, or set NVCC to where it is"
command -v nvidia-smi >/dev/null ||
    die "no nvidia-smi, which comes with the driver of an NVIDIA GPU: make check is what runs without one"
gpu=${CUDA_VISIBLE_DEVICES:-0}
gpu=${gpu%%,*}
ask_gpu() { nvidia-smi -i "$gpu" --format=csv,noheader,nounits --query-gpu="$1" 2>/dev/null; }
capability=$(ask_gpu compute_cap | tr -d .) && [ -n "$capability" ] ||
    die "nvidia-smi finds no GPU $gpu: make check is what runs without one"
memory=$(ask_gpu memory.used)
work=$(mktemp -d build/check-gpu.XXXXXX) || die "cannot make a folder in build/"
GPU_JOBS=${GPU_JOBS:-8}
GPU_SECONDS=${GPU_SECONDS:-5}
export work GPU_JOBS GPU_SECONDS capability
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

{
    for lesson; do echo "--lesson $lesson 0"; done
    for lesson; do
        awk -v lesson="$lesson" '!/^#/ && NF {print "--variant", lesson, FNR}' \
            "research/mutants/$(basename "$lesson" .cu).txt"
    done
} | awk '{print $0, NR}' >"$work/jobs"
xargs -n 4 -P "$(nproc)" research/check_gpu.sh <"$work/jobs" || die "a job could not be run"
while read -r _ lesson line slot; do
    [ ! -e "$work/$(basename "$lesson" .cu).$line/again" ] ||
        research/check_gpu.sh --alone "$lesson" "$line" "$slot" </dev/null || die "a job could not be run"
done <"$work/jobs"

# Prints results and counts them.
conclude() {
    cut -d '|' -f 2- "$@"
    cut -d '|' -f 1 "$@" >>"$work/verdicts"
}

echo "What only a GPU can test"
echo
cat "$work"/*/native.out | sed -n '/^== device: /,/^$/{p;/^$/q;}' | sed '$d'
for lesson; do
    name=$(basename "$lesson" .cu)
    printf '\n== %s: builds, sanitizers, variants ==\n' "$name"
    conclude "$work/$name.0/result"
    printf '%-44s %s\n' variant ended
    awk -v lesson="$lesson" '$1 == "--variant" && $2 == lesson {print $3}' "$work/jobs" |
        while read -r number; do conclude "$work/$name.$number/result"; done
done

build/check_claims "sm_$capability" >"$work/claims"
status=$?
cat "$work/claims"
awk '$NF ~ /^(passed|failed|skipped)$/ {print $NF}' "$work/claims" >>"$work/verdicts"
[ $status -eq 0 ] || grep -q ' failed$' "$work/claims" || echo failed >>"$work/verdicts"

# The driver may take a moment to clear up behind a process that was killed.
printf '\n== left: behind all these runs ==\n'
for _ in 1 2 3 4 5 6 7 8 9 10; do
    processes=$(readlink /proc/[0-9]*/exe 2>/dev/null | grep -cF "$PWD/$work/")
    more=$(($(ask_gpu memory.used) - memory))
    [ "$processes" -ne 0 ] || [ "$more" -gt 64 ] || break
    sleep 1
done
echo "processes: $processes"
of=passed
[ "$processes" -eq 0 ] && [ "$more" -le 64 ] || of=failed
echo "card: $of"
[ $of = passed ] || echo "left: $processes processes, $more MiB more in use on the card than before" >&2
echo $of >>"$work/verdicts"

count() { grep -c "^$1\$" "$work/verdicts"; }
printf '\n== total: all of the above ==\n'
echo "passed: $(count passed)"
echo "failed: $(count failed)"
echo "skipped: $(count skipped)"
echo "not_asked: $(count none)"
echo "time_limit_s: $GPU_SECONDS"
printf '\n%s passed, %s failed, %s skipped\n' "$(count passed)" "$(count failed)" "$(count skipped)"
[ "$(count failed)" -eq 0 ] && [ "$(count passed)" -gt 0 ]
