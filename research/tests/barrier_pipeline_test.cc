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

using FakePipeline = FakeKernel<const float *, float *, size_t>;

// In which row of the table a kernel belongs.
int rowOf(void (*kernel)(const float *, float *, size_t)) {
    return kernel == pipelineSyncthreads    ? 0
           : kernel == pipelineSplitBarrier ? 1
                                            : 2;
}

// Runs the comparison over 2500 elements in two blocks, with kernels of which
// these launches, counted from the check's, leave the last element alone. They
// take 2, 3 and 0.75 ms, and their last sample longer by 12.5, 25 and 50 %.
// Returns the rows; failures is what the comparison returns.
Rows runCompare(const std::vector<std::pair<int, int>> &wrong, int *failures,
                float floorMs = 0.5f) {
    constexpr double kMs[] = {2.0, 3.0, 0.75};
    std::vector<float> want(2500);
    for (size_t i = 0; i < want.size(); ++i) want[i] = float(i);
    float *d_out = nullptr;
    cudaMalloc(&d_out, want.size() * sizeof(float));
    int launches[3] = {};
    const FakePipeline kernels(
        [&](auto kernel, const float *, float *out, size_t n) {
            const int row = rowOf(kernel);
            const int launch = launches[row]++;
            const bool isWrong = std::count(wrong.begin(), wrong.end(),
                                            std::make_pair(row, launch)) > 0;
            std::copy(want.begin(), want.begin() + n - isWrong, out);
            if (isWrong) out[n - 1] = 7.0f;
            const bool last = sampleOf(launch - 1) == kSamples - 1;
            return kMs[row] * (last ? 1 + 0.125 * (1 << row) : 1);
        });
    const Rows rows =
        rowsOf([&] { *failures = compare(nullptr, d_out, 2, want, floorMs); });
    cudaFree(d_out);
    // The check's launch and, unless that was wrong, all that are timed.
    for (int row = 0; row < 3; ++row) {
        const bool once =
            std::count(wrong.begin(), wrong.end(), std::make_pair(row, 0)) > 0;
        EXPECT_EQ(launches[row], once ? 1 : 1 + kLaunches);
    }
    return rows;
}

TEST(Compare, PutsEveryTimeInItsCell) {
    int failures = -1;
    const Rows rows = runCompare({}, &failures);
    EXPECT_EQ(failures, 0);
    const Rows want = {
        {},
        {"==", "pipeline:", "one", "tile", "loop,", "three", "ways", "to",
         "wait", "=="},
        {"elements:", "2500"},
        {"blocks:", "2"},
        {"producer_warps:", std::to_string(kProducerWarps)},
        {"consumer_warps:",
         std::to_string(kThreadsPerBlock / 32 - kProducerWarps)},
        {std::begin(kColumns), std::end(kColumns)},
        {"sync", "2.0000", number("%.1f", 8 * 2500 / 2e6), "1.000", "12.5"},
        {"split", "3.0000", number("%.1f", 8 * 2500 / 3e6), "1.500", "25.0"},
        {"role", "0.7500*", number("%.1f", 8 * 2500 / 0.75e6) + "*", "0.375*",
         "50.0"}};
    EXPECT_EQ(rows, want);
}

// A ratio is no better than the worse of its two times.
TEST(Compare, MarksARatioToATimeNearTheFloor) {
    int failures = -1;
    const Rows rows = runCompare({}, &failures, 1.25f);
    ASSERT_EQ(rows.size(), 10u);
    EXPECT_EQ(rows[7][1], "2.0000*");
    EXPECT_EQ(rows[8][1], "3.0000");
    EXPECT_EQ(rows[8][3], "1.500*");
}

// A kernel that failed has no figures, and without the first there is no ratio.
TEST(Compare, TellsNothingOfAKernelThatFailedAndCountsIt) {
    const std::vector<std::string> none(4, "failed");
    int failures = -1;
    Rows rows;
    EXPECT_NE(stderrOf([&] {
                  rows = runCompare({{1, 0}, {2, kLaunches}}, &failures);
              }),
              "");
    EXPECT_EQ(failures, 2);
    ASSERT_EQ(rows.size(), 10u);
    EXPECT_EQ(rows[7][3], "1.000");
    EXPECT_EQ(std::vector(rows[8].begin() + 1, rows[8].end()), none);
    EXPECT_EQ(std::vector(rows[9].begin() + 1, rows[9].end()), none);
    EXPECT_NE(stderrOf([&] { rows = runCompare({{0, 0}}, &failures); }), "");
    EXPECT_EQ(failures, 1);
    ASSERT_EQ(rows.size(), 10u);
    EXPECT_EQ(std::vector(rows[7].begin() + 1, rows[7].end()), none);
    EXPECT_EQ(rows[8][1], "3.0000");
    EXPECT_EQ(rows[8][3], "failed");
}

// The whole program; wrong is the kernel, if any, whose last launch is.
TEST(Main, TimesTheFloorAndFailsIfAKernelWasWrong) {
    float chained[kPeriod];
    for (size_t i = 0; i < kPeriod; ++i) chained[i] = fmaChain(i * 0.01f);
    for (int wrong : {-1, 0}) {
        SCOPED_TRACE(wrong);
        int emptyLaunches = 0;
        const FakeKernel<> empty([&](void (*)()) {
            const int run = emptyLaunches++ - 1;
            return sampleOf(run) == kSamples - 1 ? 1.25 / 256 : 1.0 / 256;
        });
        int launches[3] = {};
        const FakePipeline kernels(
            [&](auto kernel, const float *in, float *out, size_t n) {
                const int row = rowOf(kernel);
                EXPECT_EQ(n, kElems);
                EXPECT_EQ(in[kPeriod + 1], 0.01f);
                // Once is enough where the output still stands.
                for (size_t i = 0; std::isnan(out[n - 1]) && i < n; ++i)
                    out[i] = chained[i % kPeriod];
                if (launches[row]++ == kLaunches && row == wrong)
                    out[n / 2] = -1;
                return row == 2 ? 1.0 / 256 : 1.0 / 128;
            });
        int status = -1;
        Rows rows;
        const std::string said =
            stderrOf([&] { rows = rowsOf([&] { status = lessonMain(); }); });
        EXPECT_EQ(emptyLaunches, 1 + kLaunches);
        EXPECT_EQ(rowsWith(rows, "floor_ms:"), Rows({{"floor_ms:", "0.0039"}}));
        EXPECT_EQ(rowsWith(rows, "spread_%:"), Rows({{"spread_%:", "25.0"}}));
        ASSERT_EQ(rowsWith(rows, "role").size(), 1u);
        EXPECT_EQ(rowsWith(rows, "role")[0][1], "0.0039*");
        if (wrong < 0) {
            EXPECT_EQ(status, 0);
            EXPECT_EQ(said, "");
            EXPECT_EQ(rowsWith(rows, "All").size(), 1u);
            EXPECT_EQ(rowsWith(rows, "sync")[0][1], "0.0078");
        } else {
            EXPECT_EQ(status, 1);
            EXPECT_EQ(said.rfind("FAILED: sync: 1 of ", 0), 0u) << said;
            EXPECT_EQ(rowsWith(rows, "All").size(), 0u);
            EXPECT_EQ(rowsWith(rows, "sync")[0][1], "failed");
        }
    }
}

TEST(Main, SkipsOnAGpuWithoutHardwareBarriers) {
    capabilityMajor = 7;
    int status = 0;
    const std::string said = stderrOf([&] { status = lessonMain(); });
    capabilityMajor = 0;
    EXPECT_EQ(status, 77);
    EXPECT_EQ(said.rfind("Skipped: ", 0), 0u);
}

}  // namespace
