# One element, one short of a block, a block, one over, and a ragged last block.
s/^constexpr size_t kSizes\[kNumSizes\] = {4096, 65536, 262144, 1048576, 4194304};/constexpr size_t kSizes[kNumSizes] = {1, 255, 256, 257, 2007};/
s/^constexpr size_t kMaxElems = 4194304;/constexpr size_t kMaxElems = 2007;/
# Fewer launches; still several samples of several launches each.
s/^constexpr int kWarmupRuns = 3;/constexpr int kWarmupRuns = 1;/
s/^constexpr int kSamples = 7;/constexpr int kSamples = 3;/
s/^constexpr int kTimedRuns = 10;/constexpr int kTimedRuns = 2;/
s/^constexpr int kDetRuns = 20;/constexpr int kDetRuns = 5;/
