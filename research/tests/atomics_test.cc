// SPDX-License-Identifier: MIT
//
// The host functions of atomics/atomics.cu, at full size, against values that
// were not computed the same way.

#include "before_lesson.h"

#include <set>
#include <tuple>

#include LESSON

namespace {

#include "after_lesson.h"

// The input of the sweep (step 1) or of the second part (step 0.001).
std::vector<float> input(size_t n, size_t modulus, float step) {
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = 1.0f + (i % modulus) * step;
    return values;
}

// The sum of the sweep's first n values, 1 to kExactModulus over and over.
uint64_t exactSum(uint64_t n) {
    const uint64_t rest = n % kExactModulus;
    return n / kExactModulus * (kExactModulus * (kExactModulus + 1) / 2) +
           rest * (rest + 1) / 2;
}

TEST(SumCpu, IsExactOnTheSweepsData) {
    const std::vector<float> in = input(kMaxElems, kExactModulus, 1.0f);
    for (size_t n : kSizes)
        EXPECT_EQ(sumCpu(in.data(), n), double(exactSum(n))) << n;
    for (size_t n : {1, 2, 3, 4, 5, 257})
        EXPECT_EQ(sumCpu(in.data(), n), double(exactSum(n))) << n;
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
    const float kSum = float(exactSum(kElems));
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
         {std::pair<size_t, float>{kExactModulus, 1.0f},
          {kInexactModulus, 0.001f}}) {
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
        for (float total : totals) EXPECT_EQ(total, kSum);
    }
}

TEST_F(Device, TimeSumHoldsForTheRightSumAlone) {
    Timing time = {};
    for (int k = 0; k < kNumKernels; ++k) {
        EXPECT_TRUE(timeSum(k, d_in, d_slots, kElems, kSum, &time));
        bool ok = true;
        const std::string said = stderrOf(
            [&] { ok = timeSum(k, d_in, d_slots, kElems, kSum + 1, &time); });
        EXPECT_FALSE(ok);
        EXPECT_EQ(said, std::string("FAILED: ") + kKernelNames[k] +
                            " sum of 1000: got " + number("%.9g", kSum) +
                            ", want " + number("%.9g", kSum + 1) + "\n");
    }
}

// A stand-in for the three sums at the sweep's sizes: how long launches take,
// and which of them add one too many.
static_assert(kNumSizes == 5, "the test has other sizes than the sweep");
struct FakeSweep {
    // Milliseconds of a launch of global, shared and tree, size by size. Under
    // a floor of 0.5 some are marked, and each of the kernels wins once.
    static constexpr double kMs[kNumKernels][kNumSizes] = {
        {0.875, 2.0, 8.0, 32.0, 4.0},
        {0.9375, 1.5, 0.75, 3.0, 6.0},
        {0.75, 1.0, 0.25, 5.0, 5.0}};
    static constexpr float kFloorMs = 0.5f;
    static constexpr const char *kFastest[kNumSizes] = {"-", "tree", "-",
                                                        "shared", "global"};
    // By how many percent the last sample takes longer.
    static double spread(int k, int s) { return 12.5 * (1 << (k + s) % 3); }

    // The kernel, the size and the launch, the check's first, of a wrong sum.
    std::set<std::tuple<int, int, int>> wrong;
    int launches[kNumKernels][kNumSizes] = {};

    double launch(SumKernel kernel, float *total, size_t n) {
        const int k = kernel == sumGlobalAtomic   ? 0
                      : kernel == sumSharedAtomic ? 1
                                                  : 2;
        const int s = int(std::find(kSizes, kSizes + kNumSizes, n) - kSizes);
        const int launch = launches[k][s]++;
        *total += float(exactSum(n)) + float(wrong.count({k, s, launch}));
        const bool last = sampleOf(launch - 1) == kSamples - 1;
        return kMs[k][s] * (last ? 1 + spread(k, s) / 100 : 1);
    }
    // Whether one of the kernel's sums of that size is wrong.
    bool failed(int k, int s) const {
        const auto first = wrong.lower_bound({k, s, 0});
        return first != wrong.end() && *first < std::tuple(k, s + 1, 0);
    }
    std::vector<std::string> row(int s) const {
        std::vector<std::string> row = {std::to_string(kSizes[s])};
        double widest = 0.0;
        bool allRight = true;
        for (int k = 0; k < kNumKernels; ++k) {
            const char *mark = kMs[k][s] < 2 * kFloorMs ? "*" : "";
            const double GBs = kSizes[s] * 4 / kMs[k][s] / 1e6;
            const bool right = !failed(k, s);
            row.insert(row.begin() + 1 + k,
                       right ? number("%.4f", kMs[k][s]) + mark : "failed");
            row.push_back(right ? number("%.2f", GBs) + mark : "failed");
            widest = std::max(widest, spread(k, s));
            allRight = allRight && right;
        }
        row.push_back(allRight ? kFastest[s] : "-");
        row.push_back(allRight ? number("%.1f", widest) : "failed");
        return row;
    }
};

// Runs the sweep with a stand-in, compares every row of the table, and returns
// how many kernels the sweep says have failed.
int expectSweep(FakeSweep *fake) {
    const std::vector<float> in = input(kMaxElems, kExactModulus, 1.0f);
    float *d_slots = nullptr;
    cudaMalloc(&d_slots, kLaunches * sizeof(float));
    int failures = -1;
    const FakeKernel<const float *, float *, size_t> kernels(
        [&](SumKernel kernel, const float *, float *total, size_t n) {
            return fake->launch(kernel, total, n);
        });
    const Rows rows = rowsOf(
        [&] { failures = sweep(in, nullptr, d_slots, FakeSweep::kFloorMs); });
    cudaFree(d_slots);
    Rows want = {{},
                 {"==", "sweep:", "one", "sum,", "three", "ways", "=="},
                 {std::begin(kSweepColumns), std::end(kSweepColumns)}};
    for (int s = 0; s < kNumSizes; ++s) want.push_back(fake->row(s));
    EXPECT_EQ(rows, want);
    return failures;
}

TEST(Sweep, PutsEveryTimeInItsCell) {
    FakeSweep fake;
    EXPECT_EQ(expectSweep(&fake), 0);
    for (const auto &kernel : fake.launches)
        for (int launches : kernel) EXPECT_EQ(launches, 1 + kLaunches);
}

TEST(Sweep, TellsNoTimeOfAKernelThatFailedAndCountsIt) {
    FakeSweep fake;
    fake.wrong = {{0, 1, 0}, {1, 1, 1}, {2, 2, kLaunches}, {2, 0, 5}};
    EXPECT_NE(stderrOf([&] { EXPECT_EQ(expectSweep(&fake), 4); }), "");
    // Nothing is timed that was wrong before.
    EXPECT_EQ(fake.launches[0][1], 1);
    EXPECT_EQ(fake.launches[1][1], 1 + kLaunches);
}

// What three kernels' sums of the second part are, run by run, apart from the
// reference.
float inexactDelta(SumKernel kernel, int run) {
    if (kernel == sumGlobalAtomic) return 0.0f;
    if (kernel == sumSharedAtomic) return run == kDetRuns - 1 ? 2.5f : 0.0f;
    return run == 0 ? -1.0f : run % 2 == 0 ? 0.5f : 0.0f;
}

// Runs the second part with sums that lie so far from the reference, and
// returns how many kernels it says have failed.
int runDeterminism(float (*delta)(SumKernel, int), Rows *rows) {
    const std::vector<float> in = input(kMaxElems, kInexactModulus, 0.001f);
    const float base = float(sumCpu(in.data(), in.size()));
    std::map<SumKernel, int> runs;
    float *d_slots = nullptr;
    cudaMalloc(&d_slots, kLaunches * sizeof(float));
    const FakeKernel<const float *, float *, size_t> kernels(
        [&](SumKernel kernel, const float *, float *total, size_t) {
            *total += base + delta(kernel, runs[kernel]++);
            return 1.0;
        });
    int failures = -1;
    *rows = rowsOf([&] { failures = determinism(in, nullptr, d_slots); });
    cudaFree(d_slots);
    for (SumKernel kernel : kKernels) EXPECT_EQ(runs[kernel], kDetRuns);
    return failures;
}

TEST(Determinism, SaysHowFarEachKernelsAnswersLieApart) {
    Rows rows;
    EXPECT_EQ(runDeterminism(inexactDelta, &rows), 0);
    const std::vector<float> in = input(kMaxElems, kInexactModulus, 0.001f);
    const double reference = sumCpu(in.data(), in.size());
    const double relative = std::sqrt(double(kMaxElems)) / (1 << 21);
    const auto sum = [&](double delta) {
        return number("%.9g", float(reference) + delta);
    };
    const Rows want = {
        {"n:", std::to_string(kMaxElems)},
        {"runs:", std::to_string(kDetRuns)},
        {"reference:", number("%.9g", reference)},
        {"tolerance:", number("%.9g", relative * reference)},
        {"tolerance_elements:", number("%.0f", relative * kMaxElems)},
        {"tolerance_blocks:",
         number("%.0f", relative * kMaxElems / kThreadsPerBlock)},
        {std::begin(kDetColumns), std::end(kDetColumns)},
        {"global", "1", sum(0), sum(0), "0"},
        {"shared", "2", sum(0), sum(2.5), "2.5"},
        {"tree", "3", sum(-1), sum(0.5), "1.5"}};
    ASSERT_EQ(rows.size(), want.size() + 2);
    EXPECT_EQ(Rows(rows.begin() + 2, rows.end()), want);
}

// Half a percent is too far.
float inexactDeltaTooFar(SumKernel kernel, int run) {
    const bool tooFar = kernel == sumSharedAtomic
                            ? run == kDetRuns - 1
                            : kernel == sumGlobalAtomic && run == 0;
    return tooFar ? 0.005f * 6.3e6f : inexactDelta(kernel, run);
}

TEST(Determinism, TellsNothingOfAKernelThatFailedAndCountsIt) {
    Rows rows;
    const std::string said = stderrOf(
        [&] { EXPECT_EQ(runDeterminism(inexactDeltaTooFar, &rows), 2); });
    EXPECT_EQ(said.rfind("FAILED: global sum of ", 0), 0u) << said;
    ASSERT_GE(rows.size(), 3u);
    const std::vector<std::string> none(4, "failed");
    for (int k = 0; k < 2; ++k) {
        std::vector<std::string> want = none;
        want.insert(want.begin(), kKernelNames[k]);
        EXPECT_EQ(rows[rows.size() - 3 + k], want);
    }
    EXPECT_EQ(rows.back()[0], "tree");
    EXPECT_EQ(rows.back()[1], "3");
}

// The whole program, with sums that are wrong at one size, or in the second
// part, or nowhere. An empty kernel takes 2^-8 ms; so does the tree.
struct Program {
    int status;
    Rows rows;
    std::string said;
    int emptyLaunches = 0;
};
Program runProgram(size_t wrongSize, bool wrongInexact) {
    const std::vector<float> in = input(kMaxElems, kInexactModulus, 0.001f);
    const float inexact = float(sumCpu(in.data(), in.size()));
    Program program;
    const FakeKernel<> empty([&](void (*)()) {
        const int run = program.emptyLaunches++ - 1;
        return sampleOf(run) == kSamples - 1 ? 1.25 / 256 : 1.0 / 256;
    });
    const FakeKernel<const float *, float *, size_t> kernels(
        [&](SumKernel kernel, const float *d_in, float *total, size_t n) {
            const bool exact = d_in[1] == 2.0f;
            *total += exact ? float(exactSum(n)) : inexact;
            if (exact ? n == wrongSize : wrongInexact) *total *= 1.5f;
            return kernel == sumTreeAtomic ? 1.0 / 256 : 1.0 / 128;
        });
    program.said = stderrOf(
        [&] { program.rows = rowsOf([&] { program.status = lessonMain(); }); });
    return program;
}

TEST(Main, TimesTheFloorAndMarksWhatIsNearIt) {
    const Program program = runProgram(0, false);
    EXPECT_EQ(program.status, 0);
    EXPECT_EQ(program.said, "");
    EXPECT_EQ(program.rows.back(), Rows({{"All", "checks", "passed."}})[0]);
    // One more to see whether there is code for this GPU.
    EXPECT_EQ(program.emptyLaunches, 1 + kLaunches);
    EXPECT_EQ(rowsWith(program.rows, "launches:"),
              Rows({{"launches:", std::to_string(kLaunches)}}));
    EXPECT_EQ(rowsWith(program.rows, "floor_ms:"),
              Rows({{"floor_ms:", "0.0039"}}));
    EXPECT_EQ(rowsWith(program.rows, "spread_%:"),
              Rows({{"spread_%:", "25.0"}}));
    const Rows row = rowsWith(program.rows, std::to_string(kSizes[0]));
    ASSERT_EQ(row.size(), 1u);
    EXPECT_EQ(std::vector(row[0].begin() + 1, row[0].begin() + 4),
              std::vector<std::string>({"0.0078", "0.0078", "0.0039*"}));
}

TEST(Main, FailsIfAnySumWasWrong) {
    for (const Program &program :
         {runProgram(kSizes[0], false), runProgram(kMaxElems, false),
          runProgram(0, true)}) {
        EXPECT_EQ(program.status, 1);
        EXPECT_EQ(rowsWith(program.rows, "All"), Rows());
        EXPECT_EQ(program.said.rfind("FAILED: global sum of ", 0), 0u);
    }
}

}  // namespace
