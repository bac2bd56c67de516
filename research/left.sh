#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/left.sh FOLDER
#
# Prints the ids of the processes whose program lies in FOLDER.

folder=$(cd -P "$1" && pwd) || exit 1
find /proc/[0-9]*/exe -maxdepth 0 -printf '%h %l\n' 2>/dev/null |
    grep -F " $folder/" | sed 's|^/proc/\([0-9]*\) .*|\1|'
