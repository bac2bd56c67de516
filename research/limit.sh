#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: research/limit.sh SECONDS COMMAND [ARGUMENT]...
#
# Runs a command, and kills it after so many seconds; the exit status is then
# 124. From timeout it would be 137, as it is of what something else killed.

limit=$1
shift
start=$(date +%s%3N)
timeout -s KILL "$limit" "$@"
status=$?
[ $status -ne 137 ] || [ $(($(date +%s%3N) - start)) -lt "${limit}000" ] || status=124
exit $status
