# SPDX-License-Identifier: MIT
# title: Time of an atomic add, spread over k addresses
#
# Colour says where the adds go; dashes say int.

array labels[6] = ["adjacent", "apart", "warp", "int", "shared", "shared_int"]
array titles[6] = ["global float, adjacent", "global float, apart", \
    "global float, by warp", "global int, adjacent", \
    "shared float, adjacent", "shared int, adjacent"]
array colours[6] = [blue, orange, green, blue, violet, violet]
array dashes[6] = [1, 1, 1, 2, 1, 2]
array points[6] = [7, 5, 9, 11, 13, 15]

set xlabel "addresses, k"
set ylabel "ns an add"
set logscale x 4
set xtics 1, 4
set format x "%.0f"
plot for [i = 1:6] $data using "k":(column(labels[i])) with lines notitle \
        linecolor rgb colours[i] dashtype dashes[i] linewidth 2, \
    for [i = 1:6] $data using "k":(column(labels[i].".clear")) with points \
        notitle linecolor rgb colours[i] pointtype points[i], \
    for [i = 1:6] $data using "k":(column(labels[i].".near")) with points \
        notitle linecolor rgb colours[i] pointtype points[i] - 1, \
    for [i = 1:6] keyentry with linespoints title titles[i] \
        linecolor rgb colours[i] dashtype dashes[i] linewidth 2 \
        pointtype points[i], \
    keyentry with points title "hollow: near the floor" \
        linecolor rgb ink pointtype 6, \
    floor_ns_an_add with lines title "launch floor" \
        linecolor rgb ink dashtype 3 linewidth 2
