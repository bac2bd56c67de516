// SPDX-License-Identifier: MIT
//
// The host functions of atomics/atomics.cu, at full size, against values that
// were not computed the same way.

#include "before_lesson.h"

#include LESSON

namespace {

#include "after_lesson.h"

// The input of the sweep (step 1) or of the second part (step 0.001).
std::vector<float> input(size_t n, size_t modulus, float step) {
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = 1.0f + (i % modulus) * step;
    return values;
}

TEST(SumCpu, IsExactOnTheSweepsData) {
    const std::vector<float> in = input(kMaxElems, kExactModulus, 1.0f);
    for (size_t n : kSizes)
        EXPECT_EQ(sumCpu(in.data(), n), double(n / 4 * 10)) << n;
    for (size_t n : {1, 2, 3, 5, 257})
        EXPECT_EQ(sumCpu(in.data(), n),
                  double(n / 4 * 10 + n % 4 * (n % 4 + 1) / 2))
            << n;
}

// Values from 1 to 2 are multiples of 2^-23: their sum in integers is exact.
TEST(SumCpu, IsTheRoundedExactSumOfValuesThatRound) {
    const std::vector<float> in = input(kMaxElems, kInexactModulus, 0.001f);
    int64_t units = 0;
    for (float x : in) units += int64_t(std::ldexp(double(x), 23));
    EXPECT_EQ(sumCpu(in.data(), in.size()), std::ldexp(double(units), -23));
}

TEST(SumCpu, KeepsWhatEachAdditionRoundsAway) {
    std::vector<float> in(513, 1.0f);
    in[0] = std::ldexp(1.0f, 60);
    EXPECT_EQ(sumCpu(in.data(), in.size()), std::ldexp(1.0, 60) + 512);
}

TEST(SumCpu, OfNothingIsZeroAndOfOneIsThatOne) {
    EXPECT_EQ(sumCpu(nullptr, 0), 0.0);
    for (float x : {-0.5f, kSubnormal, 3.0f}) EXPECT_EQ(sumCpu(&x, 1), x);
}

TEST(SumCpu, IsNotFiniteWhenAnElementIsNot) {
    for (float x : {kNan, kInfinity, -kInfinity}) {
        const float in[] = {1.0f, x, 2.0f};
        EXPECT_FALSE(std::isfinite(sumCpu(in, 3)));
    }
}

// What checkExact returns; it complains exactly when that is false.
bool exact(float got, float want) {
    bool ok = false;
    const std::string said =
        stderrOf([&] { ok = checkExact("tree", 7, got, want); });
    EXPECT_EQ(ok, said.empty()) << said;
    return ok;
}

TEST(CheckExact, HoldsForEqualBitsAlone) {
    EXPECT_TRUE(exact(10485760.0f, 10485760.0f));
    EXPECT_TRUE(exact(kInfinity, kInfinity));
    EXPECT_FALSE(exact(10485759.0f, 10485760.0f));
    EXPECT_FALSE(exact(above(3.0f), 3.0f));
    EXPECT_FALSE(exact(-0.0f, 0.0f));
    EXPECT_FALSE(exact(kSubnormal, 0.0f));
    EXPECT_FALSE(exact(kNan, 3.0f));
    EXPECT_FALSE(exact(kInfinity, std::numeric_limits<float>::max()));
}

TEST(CheckExact, SaysKernelSizeAndBothValuesToNineDigits) {
    EXPECT_EQ(
        stderrOf([] { checkExact("tree", 4096, 0.123456789f, 16777216.0f); }),
        "FAILED: tree sum of 4096: got 0.123456791, want 16777216\n");
}

bool isNear(float got, double want, double tolerance) {
    bool ok = false;
    const std::string said =
        stderrOf([&] { ok = checkNear("tree", 7, got, want, tolerance); });
    EXPECT_EQ(ok, said.empty()) << said;
    return ok;
}

TEST(CheckNear, HoldsUpToTheToleranceAndNotBeyond) {
    EXPECT_TRUE(isNear(2.0f, 2.0, 0.0));
    EXPECT_TRUE(isNear(2.5f, 2.0, 0.5));
    EXPECT_TRUE(isNear(1.5f, 2.0, 0.5));
    EXPECT_FALSE(isNear(above(2.5f), 2.0, 0.5));
    EXPECT_FALSE(isNear(1.0f, 2.0, 0.5));
    EXPECT_TRUE(isNear(-0.0f, 0.0, 0.0));
}

TEST(CheckNear, FailsOnNanAndInfinity) {
    EXPECT_FALSE(isNear(kNan, 2.0, 0.5));
    EXPECT_FALSE(isNear(kNan, 2.0, kInfinity));
    EXPECT_FALSE(isNear(2.0f, kNan, 0.5));
    EXPECT_FALSE(isNear(2.0f, 2.0, kNan));
    EXPECT_FALSE(isNear(kInfinity, 2.0, 0.5));
    EXPECT_FALSE(isNear(-kInfinity, 2.0, 1e30));
}

TEST(ReadGBs, CountsTheInputsBytesOnce) {
    EXPECT_EQ(readGBs(4194304, 1.0f), 16.777216);
    EXPECT_EQ(readGBs(250000, 0.5f), 2.0);
    EXPECT_TRUE(std::isnan(readGBs(4096, kNan)));
}

TEST(Fastest, IsTheKernelWhoseMedianLiesBelowEveryRivalsMinimum) {
    const bool ok[kNumKernels] = {true, true, true};
    // Median, minimum, maximum.
    EXPECT_STREQ(fastest({{9, 8, 9}, {7, 6, 8}, {5, 4, 6}}, ok, 1.0f), "tree");
    EXPECT_STREQ(fastest({{3, 3, 3}, {7, 6, 8}, {5, 4, 6}}, ok, 1.0f),
                 "global");
    EXPECT_STREQ(fastest({{9, 8, 9}, {5, 4, 6}, {7, 6, 8}}, ok, 1.0f),
                 "shared");
}

TEST(Fastest, IsNobodyWhenRangesTouchOrTheFloorIsNear) {
    const bool ok[kNumKernels] = {true, true, true};
    EXPECT_STREQ(fastest({{9, 8, 9}, {7, 5, 8}, {5, 4, 6}}, ok, 1.0f), "-");
    EXPECT_STREQ(fastest({{9, 8, 9}, {7, 4, 8}, {5, 4, 6}}, ok, 1.0f), "-");
    EXPECT_STREQ(fastest({{5, 4, 6}, {5, 4, 6}, {5, 4, 6}}, ok, 1.0f), "-");
    EXPECT_STREQ(fastest({{9, 8, 9}, {7, 6, 8}, {5, 4, 6}}, ok, 2.6f), "-");
    EXPECT_STREQ(fastest({{9, 8, 9}, {7, 6, 8}, {5, 4, 6}}, ok, 2.5f), "tree");
}

TEST(Fastest, IsNobodyWhenAKernelFailedOrHasNoTime) {
    for (int failed = 0; failed < kNumKernels; ++failed) {
        bool ok[kNumKernels] = {true, true, true};
        ok[failed] = false;
        EXPECT_STREQ(fastest({{9, 8, 9}, {7, 6, 8}, {5, 4, 6}}, ok, 1.0f), "-");
    }
    const bool ok[kNumKernels] = {true, true, true};
    const Timing none = {kNan, kNan, kNan};
    EXPECT_STREQ(fastest({none, none, none}, ok, kNan), "-");
    EXPECT_STREQ(fastest({{9, 8, 9}, none, {5, 4, 6}}, ok, 1.0f), "-");
}

TEST(DistinctResults, CountsBitPatterns) {
    const float same[] = {1, 1, 1};
    EXPECT_EQ(distinctResults(same, 3), 1);
    EXPECT_EQ(distinctResults(same, 1), 1);
    EXPECT_EQ(distinctResults(same, 0), 0);
    const float mixed[] = {1, above(1), 1, 2, above(1), 3};
    EXPECT_EQ(distinctResults(mixed, 6), 4);
    const float zeros[] = {0.0f, -0.0f, 0.0f};
    EXPECT_EQ(distinctResults(zeros, 3), 2);
    const float nans[] = {kNan, -kNan, kNan};
    EXPECT_EQ(distinctResults(nans, 3), 2);
}

TEST(ReportSpread, PrintsDistinctAnswersAndTheirRange) {
    float totals[kDetRuns];
    std::fill(totals, totals + kDetRuns, 6287362.0f);
    totals[3] = 6287361.5f;
    totals[7] = 6287362.5f;
    EXPECT_EQ(stdoutOf([&] { reportSpread("tree", totals, true); }),
              "      tree         3 6287361.5 6287362.5         1\n");
    EXPECT_EQ(stdoutOf([&] { reportSpread("tree", totals, false); }),
              "      tree    failed    failed    failed    failed\n");
}

// Device memory for the tests below, freed in the end.
struct Device : testing::Test {
    static constexpr size_t kElems = 1000;
    Device() : h_in(kElems) {
        cudaMalloc(&d_in, kElems * sizeof(float));
        cudaMalloc(&d_slots, kLaunches * sizeof(float));
        fill(&h_in, d_in, kExactModulus, 1.0f);
    }
    ~Device() override {
        cudaFree(d_slots);
        cudaFree(d_in);
    }
    std::vector<float> h_in;
    float *d_in = nullptr;
    float *d_slots = nullptr;
};

TEST_F(Device, FillMakesBothInputsAlike) {
    for (const auto &[modulus, step] :
         {std::pair<size_t, float>{4, 1.0f}, {1000, 0.001f}}) {
        fill(&h_in, d_in, modulus, step);
        EXPECT_EQ(h_in, input(kElems, modulus, step));
        std::vector<float> copy(kElems);
        cudaMemcpy(copy.data(), d_in, kElems * sizeof(float),
                   cudaMemcpyDeviceToHost);
        EXPECT_EQ(copy, h_in);
    }
}

TEST_F(Device, EveryRunStartsFromItsOwnZero) {
    float totals[5];
    for (SumKernel kernel : kKernels) {
        sumRepeatedly(kernel, d_in, d_slots, kElems, 5, totals);
        for (float total : totals) EXPECT_EQ(total, 2500.0f);
    }
}

TEST_F(Device, TimeSumHoldsForTheRightSumAlone) {
    Timing time = {};
    for (int k = 0; k < kNumKernels; ++k) {
        EXPECT_TRUE(timeSum(k, d_in, d_slots, kElems, 2500.0f, &time));
        bool ok = true;
        const std::string said = stderrOf(
            [&] { ok = timeSum(k, d_in, d_slots, kElems, 2501.0f, &time); });
        EXPECT_FALSE(ok);
        EXPECT_EQ(said, std::string("FAILED: ") + kKernelNames[k] +
                            " sum of 1000: got 2500, want 2501\n");
    }
}

}  // namespace
