#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/reason.sh LOG
#
# Prints the line of a command's output that says why it failed: the first that
# reads like a failure, for harmless warnings may stand before it, or else the
# first.

grep -m 1 -E 'error|fatal|not found' "$1" || head -n 1 "$1" | grep . || echo "no reason given"
