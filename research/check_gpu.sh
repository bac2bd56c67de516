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
# 5 unless set, and SANITIZER_SECONDS, 60 unless set, under a tool. One that takes
# longer, that gets no GPU or memory, or of which a tool gives no summary, runs
# again at the end, alone: beside others that hang, a sound program is slow, too.
# If it then takes too long under a tool, it has failed: no fault was shown. No
# summary is skipped only where the tools do not run the lesson's own reduced copy
# either, and failed otherwise. program-under-TOOL: under the tool, which reported
# nothing, the program itself told its fault; without, it had not.

set -u
LC_ALL=C
export LC_ALL

cd -P "$(dirname "$0")/.." || exit 1
NVCC=${NVCC:-nvcc}
export NVCC

# What follows, up to "main", is for the jobs, each a start of this script:
# --lesson LESSON.cu 0 SLOT, --variant LESSON.cu LINE SLOT, or --alone for the
# same again. A job leaves in $work/NAME.LINE/result lines VERDICT|WHAT TO PRINT,
# none where it could not write all of them, or a file again in place of them.

# Runs a command on the card for at most so many seconds; then kills it.
card() {
    limit=$1
    shift
    flock -o "$work/card.$slot" research/limit.sh "$limit" "$@"
}
# Notes a verdict, or leaves none. What failed is said on stderr, too.
result() {
    echo "$1|$2" >>"$dir/result" || { rm -rf "$dir"; exit 0; }
    [ "$1" != failed ] || echo "$name: $2: $3" >&2
}
# Whether a log says that the GPU or its memory was not to be had, which is no
# fault that was found.
lacks_card() {
    grep -qE 'out of memory|busy or unavailable|No CUDA GPU|system not yet|no kernel image' "$1"
}

# Whether a program said on stdout, in $1, that all held, and nothing on stderr, in $2.
all_held() { [ "$(tail -n 1 "$1")" = "All checks passed." ] && [ ! -s "$2" ]; }

# How the run of $1 with status $2 went.
expect_pass() {
    if [ "$2" -eq 0 ] && all_held "$dir/$1.out" "$dir/err"; then
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
    if ! {
        # shellcheck disable=SC2086 # The flags of the Build line are words.
        research/reduced/reduce.sh "$lesson" >"$dir/reduced.cu" &&
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
    card "$GPU_SECONDS" "$dir/$name" >"$dir/out" 2>"$dir/log"
    status=$?
    case $status in
        0)
            [ "$outcome" != holds ] || {
                if all_held "$dir/out" "$dir/log"; then echo passes; else echo incomplete; fi
                return
            }
            ;;
        124) echo time-limit; return ;;
        1)
            if lacks_card "$dir/log"; then echo no-card; elif [ -s "$dir/log" ]; then echo program; else echo silent; fi
            return
            ;;
        *) echo "exit-$status"; return ;;
    esac
    for tool in memcheck racecheck synccheck initcheck; do
        flock -o "$work/card.$slot" research/sanitize.sh "$lesson" "$dir/$name.cu" "$dir/$name" $tool >/dev/null 2>"$dir/log"
        case $? in
            0) ;;
            1) if lacks_card "$dir/$name.log"; then echo no-card; else echo $tool; fi; return ;;
            3) echo $tool-limit; return ;;
            4)
                if lacks_card "$dir/$name.log"; then
                    echo no-card
                elif grep -q "exits 1 under" "$dir/log" && grep -qE "^FAILED: | failed: .* \(cuda" "$dir/$name.log"; then
                    echo program-under-$tool
                else
                    echo $tool-exit
                fi
                return
                ;;
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
    elif research/reduced/reduce.sh "$lesson" "$expression" >"$dir/$name.cu" 2>"$dir/log"; then
        ended=$(ending)
    else
        ended=does-not-apply
    fi
    rm -f "$dir/again"
    case $job/$ended in
        --variant/*-limit | --variant/no-card | --variant/no-tool)
            : >"$dir/again"
            return
            ;;
    esac
    of=failed
    reason=
    case ${outcome%%:*}/$ended in
        */not-asked) of=none ;;
        */no-hardware) of=skipped ;;
        */no-tool) ! grep -q '^skipped|sanitizers' "$work/$name.0/result" || of=skipped ;;
        holds/passes) of=passed ;;
        compile/compiler) ! grep -qE "${outcome#*: }" "$dir/log" || of=passed ;;
        plain/* | asan/* | tsan/*)
            case $ended in program | time-limit | *check) of=passed ;; esac
            ;;
    esac
    [ $of != failed ] || reason=$(research/reason.sh "$dir/log")
    result $of "$(printf '%-44s %s' "$variant" "$ended")" "$reason"
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
for lesson; do
    faults=research/mutants/$(basename "$lesson" .cu).txt
    [ -r "$faults" ] || die "there is no $faults: list there the faults that $lesson must find"
done
[ -x build/check_claims ] || die "no build/check_claims: run make check-gpu, which builds it"
command -v "$NVCC" >/dev/null ||
    die "no CUDA compiler $NVCC: install the CUDA Toolkit, or set NVCC to where it is"
for tool in flock:util-linux timeout:coreutils nproc:coreutils xargs:findutils find:findutils; do
    command -v "${tool%:*}" >/dev/null || die "no ${tool%:*}: install it (it is part of ${tool#*:})"
done
command -v nvidia-smi >/dev/null ||
    die "no nvidia-smi, which comes with the driver of an NVIDIA GPU: make check is what runs without one"
gpu=${CUDA_VISIBLE_DEVICES:-0}
gpu=${gpu%%,*}
ask_gpu() { nvidia-smi -i "$gpu" --format=csv,noheader,nounits --query-gpu="$1" 2>/dev/null; }
capability=$(ask_gpu compute_cap) ||
    die "nvidia-smi finds no GPU $gpu: make check is what runs without one"
capability=$(echo "$capability" | tr -d .)
is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }
is_number "$capability" || die "nvidia-smi gives no compute capability of GPU $gpu, but '$capability'"
GPU_JOBS=${GPU_JOBS:-8}
GPU_SECONDS=${GPU_SECONDS:-5}
SANITIZER_SECONDS=${SANITIZER_SECONDS:-60}
for number in "$GPU_JOBS" "$GPU_SECONDS" "$SANITIZER_SECONDS"; do
    is_number "$number" && [ "${number#0}" = "$number" ] ||
        die "GPU_JOBS, GPU_SECONDS and SANITIZER_SECONDS are whole numbers of at least 1, not '$number'"
done
mkdir -p build || die "cannot make build/"
# Where capture.sh runs this, it has the lock.
[ -n "${CAPTURING-}" ] || { exec 9>build/capture.lock && flock -n 9; } ||
    die "a capture, or another make check-gpu, is running: both at once would disturb its times"
# MiB in use on the card, or nothing where nvidia-smi cannot tell.
in_use() {
    used=$(ask_gpu memory.used) && is_number "$used" && echo "$used"
}
before=$(in_use)
started=$(date +%s)
work=$(mktemp -d build/check-gpu.XXXXXX) || die "cannot make a folder in build/"
export work GPU_JOBS GPU_SECONDS SANITIZER_SECONDS capability
group=
trap 'rm -rf "$work"' EXIT
trap '{ kill $group; wait $group; } 2>/dev/null; research/left.sh "$work" | xargs -r kill -s KILL; exit 1' HUP INT TERM
# Runs a command in a process group of its own, all of which a signal then ends.
grouped() {
    timeout -k 10 0 "$@" 9>&- &
    group=$!
    wait $group
}
full() { die "cannot write to build/: is the disk full?"; }

echo "What only a GPU can test" 2>/dev/null || die "cannot write to stdout: is it closed, or the disk full?"
{
    for lesson; do echo "--lesson $lesson 0"; done
    for lesson; do
        awk -v lesson="$lesson" '!/^#/ && NF {print "--variant", lesson, FNR}' \
            "research/mutants/$(basename "$lesson" .cu).txt"
    done
} | awk '{print $0, NR}' >"$work/jobs" || full
grouped xargs -a "$work/jobs" -n 4 -P "$(nproc)" research/check_gpu.sh || die "a job could not be run"
again=0
while read -r _ lesson line slot; do
    [ -e "$work/$(basename "$lesson" .cu).$line/again" ] || continue
    again=$((again + 1))
    grouped research/check_gpu.sh --alone "$lesson" "$line" "$slot" || die "a job could not be run"
done <"$work/jobs"

# Prints a job's results and counts them; $2 is what failed if they were lost.
conclude() {
    results=$(cat "$1" 2>/dev/null)
    [ -n "$results" ] || {
        echo "$name: $2: the verdict was lost: is the disk full?" >&2
        results="failed|$2: lost"
    }
    echo "$results" | cut -d '|' -f 2-
    echo "$results" | cut -d '|' -f 1 >>"$work/verdicts" || full
}

echo
cat "$work"/*/native.out 2>/dev/null | sed -n '/^== device: /,/^$/{p;/^$/q;}' | sed '$d'
for lesson; do
    name=$(basename "$lesson" .cu)
    printf '\n== %s: builds, sanitizers, variants ==\n' "$name"
    conclude "$work/$name.0/result" "the lesson itself"
    printf '%-44s %s\n' variant ended
    awk -v lesson="$lesson" '$1 == "--variant" && $2 == lesson {print $3}' "$work/jobs" |
        while read -r number; do conclude "$work/$name.$number/result" "line $number"; done || exit 1
done

grouped env TMPDIR="$PWD/$work" build/check_claims "sm_$capability" >"$work/claims"
status=$?
cat "$work/claims"
awk '$NF ~ /^(passed|failed|skipped)$/ {print $NF}' "$work/claims" >>"$work/verdicts" || full
[ $status -eq 0 ] || grep -q ' failed$' "$work/claims" || echo failed >>"$work/verdicts" || full

# The driver may take a moment to clear up behind a process that was killed.
printf '\n== left: behind all these runs ==\n'
cleared() {
    processes=unknown
    left=$(research/left.sh "$work" 2>/dev/null) || return 1
    processes=$(echo "$left" | grep -c .)
    after=$(in_use)
    [ "$processes" -eq 0 ] && { [ -z "$before" ] || { [ -n "$after" ] && [ $((after - before)) -le 64 ]; }; }
}
of=failed
for _ in 1 2 3 4 5 6 7 8 9 10; do
    ! cleared || { of=passed; break; }
    sleep 1
done
echo "processes: $processes"
echo "card: $of"
[ $of = passed ] || echo "left: $processes processes; MiB in use on the card: ${before:-unknown} before, ${after:-unknown} now" >&2
echo $of >>"$work/verdicts" || full

count() { grep -c "^$1\$" "$work/verdicts"; }
printf '\n== total: all of the above ==\n'
echo "passed: $(count passed)"
echo "failed: $(count failed)"
echo "skipped: $(count skipped)"
echo "not_asked: $(count none)"
echo "asked_again: $again"
echo "time_limit_s: $GPU_SECONDS"
echo "seconds: $(($(date +%s) - started))"
printf '\n%s passed, %s failed, %s skipped\n' "$(count passed)" "$(count failed)" "$(count skipped)" || exit 1
[ "$(count failed)" -eq 0 ] && [ "$(count passed)" -gt 0 ]
