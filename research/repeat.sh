#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/repeat.sh NAME...
#
# Runs each build/NAME five times, in fresh processes, and prints its tables
# again, of every figure the median over the processes, and behind ~ the spread
# over them in percent of it. * stands behind a figure that the program marks, in
# one process at least, as near the launch floor, ? behind another that not every
# process told, and ! behind any else that spreads by more than 3 percent and by
# more than the program printed. That is the last column, where the table has a
# column spread_%; a table named spread is the spread of each figure at the same
# place of the others. A program that wants for hardware is skipped. Exit status 1
# if a run fails, takes over two minutes, or prints no figure.

set -u
LC_ALL=C
export LC_ALL

die() {
    echo "repeat.sh: $*" >&2
    exit 1
}

cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || die "name what to run, as in repeat.sh atomics, or use make repeat"
command -v flock >/dev/null || die "no flock: install it (it is part of util-linux)"
mkdir -p build && work=$(mktemp -d build/repeat.XXXXXX) || die "cannot make a folder in build/"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
exec 9>build/capture.lock && flock -n 9 ||
    die "a capture, make check-gpu or another make repeat is running: two at once would disturb each other's times"

for name; do
    for run in 1 2 3 4 5; do
        # Complaints pass through no file: a full disk must not swallow them.
        complaints=$(timeout --foreground -k 10 120 "build/$name" 2>&1 >"$work/$run" 9>&-)
        status=$?
        [ $status/$run != 77/1 ] || break
        [ $status -eq 0 ] ||
            die "$name fails: $(printf '%s\n' "${complaints:-exit status $status}" | head -n 1)"
        awk -f research/figures.awk "$work/$run" || die "cannot write to build/: is the disk full?"
    done >"$work/figures"
    [ "$status" -ne 77 ] || {
        echo "$name: skipped"
        continue
    }
    awk -v name="$name" '
        # Sorts n numbers of v in place.
        function sort(v, n,    i, j, x) {
            for (i = 2; i <= n; ++i) {
                x = v[i]
                for (j = i - 1; j > 0 && v[j] > x; --j) v[j + 1] = v[j]
                v[j + 1] = x
            }
        }
        # The median of the figure at a place; sets spread.
        function median(place,    v, i, n) {
            n = split(values[place], v, " ")
            for (i = 1; i <= n; ++i) v[i] += 0
            sort(v, n)
            i = v[int((n + 1) / 2)]
            spread = i == 0 ? 0 : 100 * (v[n] - v[1]) / (i < 0 ? -i : i)
            return i
        }
        # Numbers in tables, by section, row and column.
        split($1, part, "/") > 2 && $2 ~ /^-?[0-9.]+\*?$/ {
            section = part[1]
            row = part[2]
            label = substr($1, length(section) + length(row) + 3)
            if (!(section in rows)) sections = sections " " section
            if (!((section, row) in seen)) rows[section] = rows[section] " " row
            seen[section, row] = 1
            if (!((section, label) in known)) columns[section] = columns[section] " " label
            known[section, label] = 1
            values[$1] = values[$1] " " $2
            if ($2 ~ /\*$/) starred[$1] = 1
        }
        END {
            numSections = split(sections, s, " ")
            for (i = 1; i <= numSections; ++i) {
                if (s[i] == "spread") continue
                printf "\n== %s-%s: medians of five processes, and their spread ==\n", name, s[i]
                numColumns = split(columns[s[i]], column, " ")
                numRows = split(rows[s[i]], r, " ")
                line = sprintf("%16s", "row")
                for (k = 1; k <= numColumns; ++k)
                    if (column[k] != "spread_%") line = line sprintf(" %15s", column[k])
                print line "  printed_%"
                for (j = 1; j <= numRows; ++j) {
                    line = sprintf("%16s", r[j])
                    place = s[i] "/" r[j] "/"
                    all = (place "spread_%") in values ? median(place "spread_%") : "-"
                    for (k = 1; k <= numColumns; ++k) {
                        if (column[k] == "spread_%") continue
                        printed = all
                        if (("spread/" r[j] "/" column[k]) in values)
                            printed = median("spread/" r[j] "/" column[k])
                        cell = "-"
                        if ((place column[k]) in values) {
                            cell = sprintf("%.6g", median(place column[k]))
                            mark = spread > 3 && spread > printed + 0 ? "!" : ""
                            if (split(values[place column[k]], told, " ") < 5) mark = "?"
                            if ((place column[k]) in starred) mark = "*"
                            cell = cell sprintf("~%.1f%s", spread, mark)
                            ++figures
                            marked += mark == "!" || mark == "?"
                        }
                        line = line sprintf(" %15s", cell)
                    }
                    print line sprintf(" %10s", all)
                }
            }
            if (figures == 0) {
                print "repeat.sh: " name " prints no figure in a table" >"/dev/stderr"
                exit 1
            }
            printf "\n%s: %d figures, %d marked\n", name, figures, marked
        }' "$work/figures" || exit 1
done
