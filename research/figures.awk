# SPDX-License-Identifier: MIT
#
# usage: awk -f research/figures.awk OUTPUT
#
# Prints a line for every figure of a lesson's output: its place and its value.
# A place is SECTION/ROW/COLUMN, or SECTION/LABEL for a line label: value.

/^== [^ ]+: .* ==$/ {
    section = substr($2, 1, length($2) - 1)
    columns = 0
    next
}
section == "" || NF == 0 || $0 == "All checks passed." { next }
/^[^ ]+: / {
    label = $1
    sub(/:$/, "", label)
    sub(/^[^ ]+: +/, "")
    print section "/" label, $0
    next
}
columns == 0 {
    columns = split($0, column)
    next
}
{ for (i = 2; i <= NF; ++i) print section "/" $1 "/" column[i], $i }
