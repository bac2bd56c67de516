# SPDX-License-Identifier: MIT
#
# What the figures share. draw.sh sets title, gpu and svg, the file to
# write; $data, the table, in which each column of figures stands three times:
# as LABEL, and apart as LABEL.near, those within twice the launch floor, and
# LABEL.clear, the others; and each label: value line of the floor and of the
# table's section that is a number.
#
# The page behind a figure may be light or dark, so there is no background, and
# every colour keeps a contrast of at least 3.5 to white and to near black.

set terminal svg size 760,520 font "sans-serif,15"
set output svg

ink = "#7a7a7a"
blue = "#2f80d8"
orange = "#c96a00"
green = "#2e9150"
violet = "#c2459b"

set title title." (".gpu.")" textcolor rgb ink noenhanced
set border 3 linecolor rgb ink
set tics nomirror textcolor rgb ink
set grid linecolor rgb ink linewidth 0.3
set key below horizontal Left reverse maxcols 2 textcolor rgb ink noenhanced \
    samplen 3 spacing 1.2
set xlabel textcolor rgb ink noenhanced offset 0, 0.4
set ylabel textcolor rgb ink noenhanced
set format y "%g"
set logscale xy
unset mxtics
set rmargin 5
