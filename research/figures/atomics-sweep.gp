# SPDX-License-Identifier: MIT
# title: One sum of n floats, three ways

array labels[3] = ["global", "shared", "tree"]
array titles[3] = ["global atomics", "shared atomics", "tree"]
array colours[3] = [blue, violet, green]
array points[3] = [7, 13, 9]
column_of(i) = labels[i]."_GB/s"

set xlabel "elements, n"
set ylabel "GB/s read"
set logscale x 4
set xtics 4096, 4
set format x "%.0f"
plot for [i = 1:3] $data using "n":(column(column_of(i))) with lines notitle \
        linecolor rgb colours[i] linewidth 2, \
    for [i = 1:3] $data using "n":(column(column_of(i).".clear")) with points \
        notitle linecolor rgb colours[i] pointtype points[i], \
    for [i = 1:3] $data using "n":(column(column_of(i).".near")) with points \
        notitle linecolor rgb colours[i] pointtype points[i] - 1, \
    for [i = 1:3] keyentry with linespoints title titles[i] \
        linecolor rgb colours[i] linewidth 2 pointtype points[i], \
    keyentry with points title "hollow: near the floor" \
        linecolor rgb ink pointtype 6, \
    4 * x / (floor_ms * 1e6) with lines title "launch floor" \
        linecolor rgb ink dashtype 3 linewidth 2
