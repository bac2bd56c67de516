# SPDX-License-Identifier: MIT
# title: What each rung reaches of the limit

unset logscale
unset key
set style fill solid
set boxwidth 0.6
set xlabel "rung"
set ylabel "% of what a kernel that only reads reaches"
set xrange [-0.6:]
set yrange [0:110]
plot $data using 0:"limit_%.clear":xtic(1) with boxes linecolor rgb blue, \
    "" using 0:"limit_%.near" with boxes fillstyle empty linecolor rgb blue, \
    "" using 0:"limit_%":(sprintf("%.1f", column("limit_%"))) with labels \
        offset 0, 0.6 textcolor rgb ink
