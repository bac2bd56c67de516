# SPDX-License-Identifier: MIT
# sum_ladder at the sizes of the edges: one element, one short of a warp, a
# block, a block of float4 and a tile, each itself, one over, and
# sizes that are ragged against the float4. Few blocks of two warps, so that
# the fixed grids take several turns; few elements a phase, so that there are
# several phases.
s/^constexpr int kWarmupRuns = 3;/constexpr int kWarmupRuns = 1;/
s/^constexpr int kSamples = 7;/constexpr int kSamples = 3;/
s/^constexpr int kTimedRuns = 10;/constexpr int kTimedRuns = 2;/
s/^constexpr int kDetRuns = 20;/constexpr int kDetRuns = 5;/
s/^constexpr int kThreadsPerBlock = 128;/constexpr int kThreadsPerBlock = 64;/
s/^constexpr int kLoadsInFlight = 8;/constexpr int kLoadsInFlight = 4;/
s/^constexpr int kBlocksPerSm = 8;/constexpr int kBlocksPerSm = 3;/
s/^constexpr size_t kSizes\[kNumSizes\] = {.*};/constexpr size_t kSizes[kNumSizes] = {1037, 2048, 4097, 10801};/
s/^constexpr size_t kFloatIntegerLimit = 16777216;/constexpr size_t kFloatIntegerLimit = 1200;/
s/^constexpr int kNumEdges = 7;/constexpr int kNumEdges = 15;/
s/^constexpr size_t kEdges\[kNumEdges\] = {.*};/constexpr size_t kEdges[kNumEdges] = {1, 31, 33, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1023, 1025, 1031};/
# As many blocks on any GPU, or a large one would need no second turn.
s/b\.maxBlocks = kBlocksPerSm \* device\.multiProcessorCount;/b.maxBlocks = kBlocksPerSm * 2;/
