# One element; a block of 256 threads and one over; a tile short of its last
# vector, a whole one and one over; two tiles and a bit for as many blocks;
# 21 tiles for two blocks. The tables take their labels again.
s/^constexpr int kNumSizes = 3;/constexpr int kNumSizes = 8;/
s/^constexpr size_t kSizes\[kNumSizes\] = .*/constexpr size_t kSizes[kNumSizes] = {1, 256, 257, 1020, 1024, 1025, 2051, 20483};/
s/kRows\[kNumSizes \* kNumKernels\]/kRows[3 * kNumKernels]/
s/kRows\[s \* kNumKernels\]/kRows[s % 3 * kNumKernels]/
s/^constexpr int kTileVectors = 768;/constexpr int kTileVectors = 256;/
s/^constexpr int kBlocksPerSm = 9;/constexpr int kBlocksPerSm = 2;/
s/^constexpr int kSyncBlocksPerSm = 6;/constexpr int kSyncBlocksPerSm = 2;/
s/^constexpr int kPlainBlocksPerSm = 6;/constexpr int kPlainBlocksPerSm = 2;/
s/b\.sms = device\.multiProcessorCount;/b.sms = 1;/
# Fewer launches, and chains that are no multiple of the unrolled loop.
s/^constexpr int kWarmupRuns = 3;/constexpr int kWarmupRuns = 1;/
s/^constexpr int kSamples = 7;/constexpr int kSamples = 1;/
s/^constexpr int kTimedRuns = 10;/constexpr int kTimedRuns = 2;/
s/sweep<8>/sweep<1>/
s/sweep<64>/sweep<16>/
s/sweep<256>/sweep<35>/
s/^    constexpr int kIters = 256;/    constexpr int kIters = 35;/
