#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/left.sh FOLDER
#
# Prints the ids of the processes whose program lies in FOLDER. Exit status 1 if
# that cannot be told.

folder=$(cd -P "$1" && pwd) || exit 1
# What may not be looked at belongs to somebody else; this shell is always seen.
running=$(find /proc/[0-9]*/exe -maxdepth 0 -printf '%h %l\n' 2>/dev/null)
[ -n "$running" ] || {
    echo "left.sh: find does not tell which programs run: install findutils" >&2
    exit 1
}
echo "$running" | grep -F " $folder/" | sed 's|^/proc/\([0-9]*\) .*|\1|'
