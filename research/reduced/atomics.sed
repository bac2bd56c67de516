# One element, one short of a block, a block, one over, and a ragged last block.
s/^constexpr size_t kSizes\[kNumSizes\] = {4096, 65536, 262144, 1048576, 4194304};/constexpr size_t kSizes[kNumSizes] = {1, 255, 256, 257, 6007};/
s/^constexpr size_t kMaxElems = 4194304;/constexpr size_t kMaxElems = 6007;/
