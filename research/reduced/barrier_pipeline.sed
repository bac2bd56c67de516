# Nine tiles, the last of one element, for two blocks: five tiles and four.
s/^constexpr size_t kElems = 4 \* 1024 \* 1024 + 611;/constexpr size_t kElems = 8 * 1024 + 1;/
s/size_t(kBlocksPerSm) \* device\.multiProcessorCount/size_t(kBlocksPerSm)/
# Fewer launches; still several samples of several launches each.
s/^constexpr int kWarmupRuns = 3;/constexpr int kWarmupRuns = 1;/
s/^constexpr int kSamples = 7;/constexpr int kSamples = 3;/
s/^constexpr int kTimedRuns = 10;/constexpr int kTimedRuns = 2;/
# A short chain: schedules then stop threads between barriers, not within it.
s/^constexpr int kInnerIters = 64;/constexpr int kInnerIters = 4;/
