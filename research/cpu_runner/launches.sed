# SPDX-License-Identifier: MIT
# Rewrites kernel<<<grid, block>>>(arguments) for g++ (see cpu_runner.h). One
# line stays one line, so that reports name the lesson's own lines.
s/\([A-Za-z_][A-Za-z0-9_]*\(<[^<>;]*>\)\{0,1\}\)<<<\(.*\)>>>(/cpuRunner::kernel(\1)(\3)(/
