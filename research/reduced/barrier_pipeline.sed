# Nine tiles, the last of one element, for two blocks: five tiles and four.
s/^constexpr size_t kElems = 4 \* 1024 \* 1024 + 611;/constexpr size_t kElems = 8 * 1024 + 1;/
s/size_t(kBlocksPerSm) \* device\.multiProcessorCount/size_t(kBlocksPerSm)/
