#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/figures/draw.sh
#
# Draws evidence/figures/LESSON-SECTION.svg for every LESSON-SECTION.gp in this
# folder, from the table of that section in the transcript that the lesson's
# status block names, and from nothing else. The SVG names the transcript, its
# checksum and the fingerprint of the source. A lesson that is UNVERIFIED has no
# figure yet. What goes wrong is said in one sentence, the exit status is 1, and
# the figures that stood there before still stand.

set -u
LC_ALL=C
export LC_ALL

die() {
    echo "draw.sh: $*" >&2
    exit 1
}

cd "$(dirname "$0")/../.." || die "cannot enter the project's folder"
command -v gnuplot >/dev/null ||
    die "no gnuplot to draw the figures with: install it (in Debian, gnuplot-nox) or put it on PATH"
mkdir -p build evidence/figures ||
    die "cannot make build/ and evidence/figures/"
work=$(mktemp -d build/figures.XXXXXX) || die "cannot make a folder in build/"
partial=evidence/figures/.partial.$$
trap 'rm -rf "$work" "$partial"' EXIT
trap 'exit 1' HUP INT TERM

# draw LESSON SECTION: one figure.
draw() {
    name=$1-$2
    svg=evidence/figures/$name.svg
    source=
    for candidate in */"$1.cu"; do source=$candidate; done
    [ -r "$source" ] || die "$name.gp belongs to no lesson: there is no $1.cu"
    transcript=$(awk '
        $1 == "//" && ($2 == "UNVERIFIED:" || $2 == "Verified:") { on = 1 }
        $1 != "//" { on = 0 }
        on { for (i = 2; i <= NF; ++i)
                if (sub(/\.txt\.$/, ".txt", $i)) print $i }' "$source")
    if [ -z "$transcript" ]; then
        echo "$svg: not drawn, $source is not yet recorded"
        return
    fi
    [ -r "$transcript" ] || die "$source names $transcript, which is not there"
    fingerprint=$(sed -n 's/^fingerprint: //p;/^-- stdout --/q' "$transcript")
    [ "$fingerprint" = "$(evidence/capture.sh --fingerprint "$source")" ] ||
        die "$transcript is of an earlier $source: record it again (make evidence-$1)"
    checksum=$(sed -n '$s/^-- end \([0-9a-f]*\) --$/\1/p' "$transcript")
    [ -n "$checksum" ] || die "$transcript is not whole: its checksum is missing"
    title=$(sed -n 's/^# title: //p' "research/figures/$name.gp")

    # The table and the label: value lines, as gnuplot takes them.
    awk -v section="$2" -v title="$title" -v svg="$work/svg" '
        function quoted(text) {
            gsub(/\047/, "\047\047", text)
            return "\047" text "\047"
        }
        /^gpu: / && gpu == "" { gpu = substr($0, 6) }
        /^== / { now = substr($2, 1, length($2) - 1) }
        now != "floor" && now != section { next }
        /^[a-z]+[a-z_]*: [0-9.]+$/ { print substr($1, 1, length($1) - 1), "=", $2 }
        now == section && (NF == columns || !columns && NF > 2 && !/:/) {
            columns = NF
            row = $1
            for (i = 2; i <= NF; ++i) {
                value = $i
                near = sub(/\*$/, "", value)
                if (!count)
                    row = row " " $i " " $i ".clear " $i ".near"
                else if (value !~ /^[0-9.]+$/)
                    row = row " NaN NaN NaN"
                else
                    row = row " " value (near ? " NaN " value : " " value " NaN")
            }
            rows[++count] = row
        }
        END {
            print "title =", quoted(title)
            print "svg =", quoted(svg)
            print "gpu =", quoted(gpu)
            print "$data << end_of_data"
            for (i = 1; i <= count; ++i) print rows[i]
            print "end_of_data"
            exit count < 2
        }' "$transcript" >"$work/data.gp" ||
        die "$transcript has no table in section $2, or $work cannot be written"

    gnuplot "$work/data.gp" research/figures/style.gp \
        "research/figures/$name.gp" 2>"$work/log" && [ ! -s "$work/log" ] ||
        die "gnuplot does not draw $name: $(grep '[a-z]' "$work/log" | tail -n 1)"
    # Title and description are what a reader hears who does not see it.
    awk -v title="$title" -v run="$transcript" -v checksum="$checksum" \
        -v fingerprint="$fingerprint" '
        /^<title>/ { print "<title>" title "</title>"; next }
        /^<desc>/ {
            print "<desc>Drawn from " run ", fingerprint " fingerprint "</desc>"
            print "<!-- drawn from " run " " checksum " -->"
            next
        }
        NF' "$work/svg" >"$work/figure" &&
        [ "$(tail -n 1 "$work/figure")" = '</svg>' ] &&
        cp "$work/figure" "$partial" && mv "$partial" "$svg" ||
        die "cannot write $svg: is the disk full, or the folder read-only?"
    echo "$svg"
}

for figure in research/figures/*-*.gp; do
    figure=$(basename "$figure" .gp)
    draw "${figure%%-*}" "${figure#*-}"
done
