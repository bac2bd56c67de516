# SPDX-License-Identifier: MIT
#
# usage: awk -v lesson=atomics/atomics.cu -f research/racecheck.awk \
#            research/CLAIMS.md SOURCE LOG
#
# Prints the name of the claim that explains every report of compute-sanitizer's
# racecheck in LOG, made from a program that was built from SOURCE with
# -lineinfo. Prints what is not explained, and exits 1, if there is none.
#
# A report names two accesses, an access a function and a line:
#
#     ========= Error: Race reported between Write access at f(int)+0x70 in x.cu:3
#     =========     and Read access at void g<(int)4>(T1 *)+0x90 in x.cu:9 [12 hazards]
#
# Line numbers move, so a claim about the lesson names the line by its text:
#
#     - racecheck: f: `tile[i] = x;`; g: `x = tile[j];`
#
# without its comment and the blanks around it, or, where it is not in the
# lesson, by its file: `memcpy_async_tx.h`. ? is an access without a line.

function trim(text) {
    sub(/^[ \t]+/, "", text)
    sub(/[ \t\r]+$/, "", text)
    return text
}

# Takes in the field of a claim that has been read to its end.
function endField(    part) {
    if (field == "file: " lesson) about[claim] = 1
    if (sub(/^racecheck: /, "", field) && split(field, part, "`") == 5) {
        gsub(/[;: ]/, "", part[1])
        gsub(/[;: ]/, "", part[3])
        explained[claim, part[1] ": " part[2], part[3] ": " part[4]] = 1
        explained[claim, part[3] ": " part[4], part[1] ": " part[2]] = 1
    }
    field = ""
}

# What stands behind "access at": a function, and where it is.
function access(text,    name, file, number) {
    sub(/^.* access at /, "", text)
    sub(/ \[[0-9]+ hazards?\]$/, "", text)
    name = text
    while (sub(/<[^<>]*>/, "", name)) {}
    sub(/[(+].*/, "", name)
    sub(/^.*[ :]/, "", name)
    if (text !~ /\+0x[0-9a-f]+ in .*:[0-9]+$/) return name ": ?"
    number = text
    sub(/^.*:/, "", number)
    file = text
    sub(/:[0-9]+$/, "", file)
    sub(/^.*\+0x[0-9a-f]+ in /, "", file)
    sub(/^.*\//, "", file)
    return name ": " (file == source ? lines[number] : file)
}

BEGIN {
    source = ARGV[2]
    sub(/^.*\//, "", source)
}
FNR == 1 { ++file }

# The ledger.
file == 1 && /^(## |- )/ { endField() }
file == 1 && /^## / { claim = substr($0, 4) }
file == 1 && /^- / { field = trim(substr($0, 3)) }
file == 1 && /^  / { field = field " " trim($0) }

# The source.
file == 2 && FNR == 1 { endField() }
file == 2 {
    sub(/\/\/.*/, "")
    lines[FNR] = trim($0)
}

# The log.
file == 3 && /Race reported between .* access at / {
    first = access($0)
    next
}
file == 3 && /^=+ +and .* access at / {
    pairs[first, access($0)] = 1
    ++reports
    next
}
file == 3 && /^=+ (Error|Warning)/ { unknown[trim($0)] = 1 }

END {
    for (claim in about) {
        all = reports > 0
        for (line in unknown) all = 0
        for (pair in pairs) all = all && (claim SUBSEP pair) in explained
        if (!all) continue
        print claim
        exit 0
    }
    for (pair in pairs) {
        known = 0
        for (claim in about) known = known || (claim SUBSEP pair) in explained
        split(pair, part, SUBSEP)
        if (!known) print "unexplained: " part[1] " and " part[2]
    }
    for (line in unknown) print line
    exit 1
}
