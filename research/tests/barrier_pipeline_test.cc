// SPDX-License-Identifier: MIT
//
// The host functions of barrier_pipeline/barrier_pipeline.cu, at full size,
// against values that were not computed the same way.

#include "before_lesson.h"

#include LESSON

namespace {

#include "after_lesson.h"

// The chain with 113 bits a step: the product and the sum are exact there, so
// that the one rounding to float is the right one.
float chainInQuad(float x) {
    for (int i = 0; i < 64; ++i)
        x = float(__float128(x) * __float128(0.999f) + __float128(0.25f));
    return x;
}

bool sameBits(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

TEST(FmaChain, RoundsEachStepOnce) {
    for (int i = 0; i < 97; ++i) {
        const float x = i * 0.01f;
        EXPECT_TRUE(sameBits(fmaChain(x), chainInQuad(x))) << x;
    }
    for (float x : {0.0f, -0.0f, kSubnormal, -7.25f, 1e30f, -1e-30f})
        EXPECT_TRUE(sameBits(fmaChain(x), chainInQuad(x))) << x;
}

TEST(FmaChain, KeepsNanAndInfinity) {
    EXPECT_TRUE(std::isnan(fmaChain(kNan)));
    EXPECT_EQ(fmaChain(kInfinity), kInfinity);
    EXPECT_EQ(fmaChain(-kInfinity), -kInfinity);
}

// A check by bits must be able to tell the period's 97 results apart.
TEST(FmaChain, TellsAllInputsApart) {
    for (int i = 0; i < 97; ++i)
        for (int j = 0; j < i; ++j)
            EXPECT_FALSE(sameBits(fmaChain(i * 0.01f), fmaChain(j * 0.01f)))
                << i << " " << j;
}

TEST(NumTiles, RoundsUp) {
    EXPECT_EQ(numTiles(0), 0u);
    EXPECT_EQ(numTiles(1), 1u);
    EXPECT_EQ(numTiles(1023), 1u);
    EXPECT_EQ(numTiles(1024), 1u);
    EXPECT_EQ(numTiles(1025), 2u);
    EXPECT_EQ(numTiles(4194915), 4097u);
}

TEST(PipelineCpu, ChainsEveryElementAndNoMore) {
    const std::vector<float> in = {0.0f, 0.5f, -1.0f, kNan, 3.0f};
    std::vector<float> out(5, 42.0f);
    pipelineCpu(in.data(), out.data(), 0);
    EXPECT_EQ(out, std::vector<float>(5, 42.0f));
    pipelineCpu(in.data(), out.data(), 4);
    for (int i : {0, 1, 2})
        EXPECT_TRUE(sameBits(out[i], chainInQuad(in[i]))) << i;
    EXPECT_TRUE(std::isnan(out[3]));
    EXPECT_EQ(out[4], 42.0f);
}

// What checkOutput says of got where 1, 2, 3 is wanted; it returns true exactly
// when it says nothing.
std::string complaint(const std::vector<float> &got,
                      const std::vector<float> &want = {1, 2, 3}) {
    bool ok = false;
    const std::string said = stderrOf(
        [&] { ok = checkOutput("role", got.data(), want.data(), got.size()); });
    EXPECT_EQ(ok, said.empty());
    return said;
}

TEST(CheckOutput, HoldsForEqualBitsAlone) {
    EXPECT_EQ(complaint({}), "");
    EXPECT_EQ(complaint({1, 2, 3}), "");
    EXPECT_NE(complaint({above(1), 2, 3}), "");
    EXPECT_NE(complaint({1, kNan, 3}), "");
    EXPECT_NE(complaint({1, 2, kInfinity}), "");
    EXPECT_NE(complaint({-0.0f}, {0.0f}), "");
    EXPECT_NE(complaint({kSubnormal}, {0.0f}), "");
}

TEST(CheckOutput, SaysHowManyAreWrongAndWhichIsTheFirst) {
    EXPECT_EQ(complaint({1, 4, 5}),
              "FAILED: role: 2 of 3 elements wrong, the first at 1: got 4, "
              "want 2\n");
    EXPECT_EQ(complaint({1, 2, 0.123456789f}),
              "FAILED: role: 1 of 3 elements wrong, the first at 2: got "
              "0.123456791, want 3\n");
}

TEST(ReadWriteGBs, CountsWhatIsReadAndWhatIsWritten) {
    EXPECT_EQ(readWriteGBs(1000000, 1.0f), 8.0);
    EXPECT_EQ(readWriteGBs(250000, 0.5f), 4.0);
    EXPECT_TRUE(std::isnan(readWriteGBs(1000, kNan)));
}

TEST(TimePipeline, HoldsForTheRightOutputAlone) {
    constexpr size_t kCount = 2500;
    std::vector<float> in(kCount);
    for (size_t i = 0; i < kCount; ++i) in[i] = (i % 97) * 0.01f;
    std::vector<float> want(kCount);
    for (size_t i = 0; i < kCount; ++i) want[i] = chainInQuad(in[i]);
    float *d_in = nullptr;
    float *d_out = nullptr;
    cudaMalloc(&d_in, kCount * sizeof(float));
    cudaMalloc(&d_out, kCount * sizeof(float));
    cudaMemcpy(d_in, in.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
    Timing time = {};
    for (int k = 0; k < kNumKernels; ++k) {
        EXPECT_TRUE(timePipeline(k, d_in, d_out, 2, want, &time));
        std::vector<float> other = want;
        other[kCount - 1] = above(other[kCount - 1]);
        bool ok = true;
        const std::string said = stderrOf(
            [&] { ok = timePipeline(k, d_in, d_out, 2, other, &time); });
        EXPECT_FALSE(ok);
        EXPECT_EQ(
            said.rfind(std::string("FAILED: ") + kKernelNames[k] +
                           ": 1 of 2500 elements wrong, the first at 2499",
                       0),
            0u)
            << said;
    }
    cudaFree(d_out);
    cudaFree(d_in);
}

}  // namespace
