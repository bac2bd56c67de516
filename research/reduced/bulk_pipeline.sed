# One element; a block of 256 threads and one over; a tile short of its last
# vector, a whole one and one over; two tiles and a bit for as many blocks;
# 41 tiles for two blocks, 21 chunks for three. The tables take their labels
# again.
s/^constexpr int kNumSizes = 3;/constexpr int kNumSizes = 8;/
s/^constexpr size_t kSizes\[kNumSizes\] = .*/constexpr size_t kSizes[kNumSizes] = {1, 256, 257, 508, 512, 513, 1027, 20483};/
s/kRows\[kNumSizes \* kNumKernels\]/kRows[3 * kNumKernels]/
s/kRows\[s \* kNumKernels\]/kRows[s % 3 * kNumKernels]/
s/^constexpr int kTileVectors = 256;/constexpr int kTileVectors = 128;/
s/^constexpr int kLightIters = 16;/constexpr int kLightIters = 8;/
s/^constexpr int kBulkThreads = 32;/constexpr int kBulkThreads = 64;/
s/^constexpr int kSyncTileVectors = 512;/constexpr int kSyncTileVectors = 128;/
s#sms \* blocksPerSm(pipeline[A-Za-z]*<kIters>, k[A-Za-z]*Threads)#size_t(2)#
s/^constexpr int kPlainThreads = 384;/constexpr int kPlainThreads = 64;/
s/b\.sms = device\.multiProcessorCount;/b.sms = 1;/
# Fewer launches, and chains that are no multiple of the unrolled loop.
s/kPause(100)/kPause(0)/
s/^constexpr int kWarmupRuns = 3;/constexpr int kWarmupRuns = 1;/
s/^constexpr int kSamples = 7;/constexpr int kSamples = 1;/
s/^constexpr int kTimedRuns = 10;/constexpr int kTimedRuns = 2;/
s/^constexpr int kBodyFmas = 1024;/constexpr int kBodyFmas = 256;/
s/sweep<8>/sweep<1>/
s/sweep<64>/sweep<16>/
s/sweep<256>/sweep<35>/
