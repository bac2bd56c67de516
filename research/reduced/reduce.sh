#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/reduced/reduce.sh LESSON.cu [EXPRESSION]...
#
# Prints the reduced copy of a lesson: its sizes and sample counts made small by
# research/reduced/NAME.sed, then changed by each EXPRESSION of sed's, which is
# how a mutant is made. Every command must change something and keep the number
# of lines; one that does not is reported, nothing is printed, and the exit
# status is 1. Where the reader has turned a knob of the lesson, one of
# research/knobs.txt, the knobs stay as they are, for they must go together.
# With REDUCE=no only the EXPRESSIONs apply, at full size.
set -eu

fail() {
    printf 'reduce.sh: %s\n' "$1" >&2
    exit 1
}

[ $# -ge 1 ] || fail "name a lesson, as in reduce.sh atomics/atomics.cu."
lesson=$1
shift
name=$(basename "$lesson" .cu)
script=$(dirname "$0")/$name.sed
knobs=$(dirname "$0")/../knobs.txt
turned=
[ -r "$lesson" ] || fail "$lesson cannot be read: name a lesson's .cu file."
[ "${REDUCE-}" = no ] || [ -r "$script" ] ||
    fail "$script is not there: write the sed script that reduces $lesson."

work=$(mktemp -d) || fail "no temporary folder: set TMPDIR to one with room."
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cp "$lesson" "$work/now"

# Whether the command $1 sets a knob that the lesson has.
sets_knob() {
    constant=$(expr "$1" : 's/^constexpr int \([A-Za-z]*\) = [0-9]*;/') &&
        grep -qs "/$name :: $constant :: " "$knobs" &&
        grep -q "^constexpr int $constant = " "$lesson"
}

# Whether a knob has another value than the one that its command replaces.
knob_is_turned() {
    while IFS= read -r command; do
        if sets_knob "$command" &&
            sed -e "$command" "$lesson" | cmp -s - "$lesson"; then
            return 0
        fi
    done <"$script"
    return 1
}

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
    ! knob_is_turned || turned=yes
    while IFS= read -r command; do
        case $command in
        '' | '#'*) ;;
        *)
            if [ -z "$turned" ] || ! sets_knob "$command"; then
                apply "$command" "$script"
            fi
            ;;
        esac
    done <"$script"
fi
for expression in "$@"; do
    apply "$expression" "the expression"
done
cat "$work/now"
