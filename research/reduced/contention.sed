# More addresses than a warp has lanes and than a block has threads, as well as
# fewer, and still as many adds at each; no multiple of three launches.
s/^constexpr unsigned kAdds = 4194304;/constexpr unsigned kAdds = 32768;/
s/^constexpr unsigned kBlocks = 1024;/constexpr unsigned kBlocks = 4;/
s/^constexpr unsigned kAddresses\[\] = {1, 4, 16, 64, 256, 1024, 4096, 16384};/constexpr unsigned kAddresses[] = {1, 4, 16, 64, 256, 1024};/
s/^constexpr unsigned kMaxAddresses = 16384;/constexpr unsigned kMaxAddresses = 1024;/
s/^constexpr int kWarmupRuns = 3;/constexpr int kWarmupRuns = 1;/
s/^constexpr int kSamples = 7;/constexpr int kSamples = 1;/
s/^constexpr int kTimedRuns = 10;/constexpr int kTimedRuns = 4;/
