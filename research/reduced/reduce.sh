#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/reduced/reduce.sh LESSON.cu [EXPRESSION]...
#
# Prints the reduced copy of a lesson: its sizes and sample counts made small by
# research/reduced/NAME.sed, then changed by each EXPRESSION of sed's, which is
# how a mutant is made. Every command must change something and keep the number
# of lines; one that does not is reported, nothing is printed, and the exit
# status is 1. With REDUCE=no only the EXPRESSIONs apply, at full size.
set -eu

fail() {
    printf 'reduce.sh: %s\n' "$1" >&2
    exit 1
}

[ $# -ge 1 ] || fail "name a lesson, as in reduce.sh atomics/atomics.cu."
lesson=$1
shift
script=$(dirname "$0")/$(basename "$lesson" .cu).sed
[ -r "$lesson" ] || fail "$lesson cannot be read: name a lesson's .cu file."
[ "${REDUCE-}" = no ] || [ -r "$script" ] ||
    fail "$script is not there: write the sed script that reduces $lesson."

work=$(mktemp -d) || fail "no temporary folder: set TMPDIR to one with room."
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cp "$lesson" "$work/now"

# Applies the one command $1, which came from $2.
apply() {
    sed -e "$1" "$work/now" >"$work/next" ||
        fail "$2: sed does not take the command: $1"
    if cmp -s "$work/now" "$work/next"; then
        fail "$2: the command no longer applies to $lesson: $1"
    fi
    [ "$(wc -l <"$work/now")" = "$(wc -l <"$work/next")" ] ||
        fail "$2: the command changes the number of lines of $lesson: $1"
    mv "$work/next" "$work/now"
}

if [ "${REDUCE-}" != no ]; then
    while IFS= read -r command; do
        case $command in
        '' | '#'*) ;;
        *) apply "$command" "$script" ;;
        esac
    done <"$script"
fi
for expression in "$@"; do
    apply "$expression" "the expression"
done
cat "$work/now"
