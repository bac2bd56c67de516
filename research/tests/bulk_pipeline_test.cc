// SPDX-License-Identifier: MIT
//
// The host functions of barrier_pipeline/bulk_pipeline.cu, at full size,
// against values that were not computed the same way.

#include "before_lesson.h"

#include LESSON

namespace {

#include "after_lesson.h"

// One value after steps of the chain, with 113 bits a step: the product and the
// sum are exact there, so that the one rounding to float is the right one.
float chainInQuad(float x, int steps) {
    for (int i = 0; i < steps; ++i)
        x = float(__float128(x) * __float128(0.99999f) + __float128(0.25f));
    return x;
}

// What an H200 has.
Bench bench() {
    Bench b = {};
    b.sms = 132;
    b.floorMs = 0.0035f;
    b.peakTeraFmas = 31.0;
    return b;
}

bool sameBits(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

TEST(PipelineCpu, RoundsEachStepOnce) {
    for (int steps : {0, 1, 8, 64, 256}) {
        float want[97];
        pipelineCpu(want, steps);
        for (int i = 0; i < 97; ++i)
            EXPECT_TRUE(sameBits(want[i], chainInQuad(i * 0.01f, steps))) << i;
    }
}

// A check by bits must be able to tell the period's 97 results apart.
TEST(PipelineCpu, TellsAllInputsApart) {
    std::vector<int> all = {0, 8, 64, 256};
    for (size_t n : kSizes)
        for (int iters : {8, 64, 256})
            all.push_back(fmaSteps(bench(), n, iters));
    for (int steps : all) {
        float want[97];
        pipelineCpu(want, steps);
        for (int i = 0; i < 97; ++i)
            for (int j = 0; j < i; ++j)
                EXPECT_FALSE(sameBits(want[i], want[j])) << steps;
    }
}

TEST(Sizes, AreCountedInWholeFloat4sAndTiles) {
    EXPECT_EQ(numVectors(0), 0u);
    EXPECT_EQ(numVectors(1), 1u);
    EXPECT_EQ(numVectors(4), 1u);
    EXPECT_EQ(numVectors(5), 2u);
    EXPECT_EQ(numVectors(268436067), 67109017u);
    EXPECT_EQ(numTiles(0, 512), 0u);
    EXPECT_EQ(numTiles(1, 512), 1u);
    EXPECT_EQ(numTiles(512, 512), 1u);
    EXPECT_EQ(numTiles(513, 512), 2u);
    EXPECT_EQ(numTiles(67109017, 512), 131073u);
}

TEST(StepsPerBody, FillTheBodyAndNoMore) {
    for (int chains : {1, 4, 16, 32, 100}) {
        const int steps = stepsPerBody(chains);
        EXPECT_EQ(steps & (steps - 1), 0) << chains;
        EXPECT_LE(steps * chains, kBodyFmas) << chains;
        EXPECT_GT(2 * steps * chains, kBodyFmas) << chains;
    }
    EXPECT_EQ(stepsPerBody(2 * kBodyFmas), 1);
}

TEST(GridFor, RoundsUpAndStopsAtTheMost) {
    EXPECT_EQ(gridFor(1, 256), 1u);
    EXPECT_EQ(gridFor(256, 256), 1u);
    EXPECT_EQ(gridFor(257, 256), 2u);
    EXPECT_EQ(gridFor(100000, 256, 7), 7u);
}

TEST(FmaLimit, DoesTheWorkAndAtMostOneStepMore) {
    const Bench b = bench();
    for (size_t n : {size_t(1), size_t(1027), kSizes[0], kSizes[2]})
        for (int iters : {8, 64, 256}) {
            const double work = double(n) * iters;
            const double done = double(fmaElems(b, n)) * fmaSteps(b, n, iters);
            EXPECT_GE(done, work) << n;
            EXPECT_LT(done, work + double(fmaElems(b, n))) << n;
            EXPECT_LE(fmaElems(b, n), n);
        }
}

// On the CPU an SM holds two blocks.
TEST(GridOf, GivesABlockATileWhereThereIsLittleWork) {
    const Bench b = bench();
    const size_t n = kSizes[2];
    const unsigned vectors = numVectors(n);
    EXPECT_EQ(gridOf<8>(kBulk, b, n), numTiles(vectors, kTileVectors));
    EXPECT_EQ(gridOf<64>(kBulk, b, n), 264u);
    EXPECT_EQ(gridOf<64>(kBulk, b, 1), 1u);
    EXPECT_EQ(gridOf<64>(kSync, b, n), 264u);
    EXPECT_EQ(gridOf<64>(kSync, b, 1), 1u);
    EXPECT_EQ(gridOf<64>(kPlain, b, n), 396u);
    EXPECT_EQ(gridOf<64>(kFma, b, n), 528u);
    EXPECT_EQ(gridOf<64>(kElement, b, n), (n + 255) / 256);
    EXPECT_EQ(gridOf<64>(kFloat4, b, n), (vectors + 255) / 256);
    EXPECT_EQ(gridOf<64>(kCopy, b, n), (vectors + 255) / 256);
}

TEST(LaunchKernel, LaunchesTheKernelOfItsRow) {
    const void *launched = nullptr;
    const auto note = [&](auto kernel, auto...) {
        launched = reinterpret_cast<const void *>(kernel);
        return 1.0;
    };
    const FakeKernel<const float4 *, float4 *, unsigned> onVectors(note);
    const FakeKernel<const float *, float *, size_t> onElements(note);
    const FakeKernel<const float *, float *, size_t, int> onChains(note);
    const auto address = [](auto kernel) {
        return reinterpret_cast<const void *>(kernel);
    };
    const void *const want[kNumKernels] = {
        address(copyFloat4),         address(fmaOnly),
        address(pipelineElement<8>), address(pipelineFloat4<8>),
        address(pipelinePlain<8>),   address(pipelineSync<8>),
        address(pipelineBulk<8>)};
    for (int k = 0; k < kNumKernels; ++k) {
        launched = nullptr;
        launchKernel<8>(k, 1, bench(), 1000);
        EXPECT_EQ(launched, want[k]) << k;
    }
}

TEST(Rates, CountBothWaysAndInTrillions) {
    EXPECT_EQ(readWriteGBs(1000000, 1.0f), 8.0);
    EXPECT_EQ(readWriteGBs(250000, 0.5f), 4.0);
    EXPECT_TRUE(std::isnan(readWriteGBs(1000, kNan)));
    EXPECT_EQ(teraFmas(3e12, 1000.0f), 3.0);
    EXPECT_EQ(teraFmas(1e9, 0.5f), 2.0);
}

// The kernels' times in what follows, in the order of their names.
constexpr Timing kTimes[kNumKernels] = {
    {0.50f, 0.50f, 0.51f}, {0.52f, 0.52f, 0.53f}, {1.00f, 0.99f, 1.01f},
    {0.68f, 0.67f, 0.69f}, {0.60f, 0.59f, 0.61f}, {0.62f, 0.61f, 0.63f},
    {0.56f, 0.55f, 0.57f}};

TEST(IsFastest, NeedsAMedianBelowEveryRivalsMinimum) {
    Timing times[kNumKernels];
    bool ok[kNumKernels];
    std::copy(kTimes, kTimes + kNumKernels, times);
    std::fill(ok, ok + kNumKernels, true);
    for (int k = 0; k < kNumKernels; ++k)
        EXPECT_EQ(isFastest(k, times, ok, 0.0035f), k == kBulk) << k;
    times[kPlain].min = times[kBulk].median;
    EXPECT_FALSE(isFastest(kBulk, times, ok, 0.0035f));
    times[kPlain].min = kTimes[kPlain].min;
    EXPECT_FALSE(isFastest(kBulk, times, ok, 0.4f));
    ok[kSync] = false;
    EXPECT_FALSE(isFastest(kBulk, times, ok, 0.0035f));
    ok[kSync] = true;
    times[kElement].min = kNan;
    EXPECT_FALSE(isFastest(kBulk, times, ok, 0.0035f));
}

std::vector<std::string> rowOf(const std::string &table, const char *label) {
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::vector<std::string> row;
        for (std::string word; words >> word;) row.push_back(word);
        if (!row.empty() && row[0] == label) return row;
    }
    return {};
}

using Row = std::vector<std::string>;

// The largest size, all of it sound and far from the floor, to be put
// otherwise, and the row that report then prints of a kernel.
struct Largest {
    Bench b = bench();
    Timing times[kNumKernels];
    bool ok[kNumKernels];

    Largest() {
        b.maxElems = 250000000;
        std::copy(kTimes, kTimes + kNumKernels, times);
        std::fill(ok, ok + kNumKernels, true);
    }
    Row row(const std::string &kernel, int iters = 64) const {
        const std::string table = stdoutOf([&] {
            report(&kRows[2 * kNumKernels], b, b.maxElems, iters, times, ok);
        });
        return rowOf(table, (kernel + "@256Mi").c_str());
    }
};

TEST(Report, DividesByTheLargerLimitAndTheBestPlainKernel) {
    Largest largest;
    EXPECT_EQ(largest.row("copy"), (Row{"copy@256Mi", "0.5000", "4000.0", "-",
                                        "-", "-", "-", "2.0"}));
    EXPECT_EQ(largest.row("bulk"),
              (Row{"bulk@256Mi", "0.5600", "3571.4", "28.57", "92.9", "1.071",
                   "yes", "3.6"}));
    EXPECT_EQ(largest.row("plain"),
              (Row{"plain@256Mi", "0.6000", "3333.3", "26.67", "86.7", "1.000",
                   "-", "3.3"}));
    largest.b.peakTeraFmas = 64 * 0.25 / 0.52 / 0.96;
    EXPECT_EQ(largest.row("bulk")[4], "-");
    largest.b.peakTeraFmas = 64 * 0.25 / 0.52 / 0.98;
    EXPECT_EQ(largest.row("bulk")[4], "92.9");
    largest.ok[kFloat4] = false;
    EXPECT_EQ(largest.row("bulk"),
              (Row{"bulk@256Mi", "0.5600", "3571.4", "28.57", "92.9", "failed",
                   "-", "3.6"}));
    EXPECT_EQ(largest.row("float4"),
              (Row{"float4@256Mi", "failed", "failed", "failed", "failed",
                   "failed", "-", "failed"}));
}

// Where the copy takes longer, it is the limit, however slow the other.
TEST(Report, TakesTheCopyForALimitAsItIs) {
    Largest largest;
    largest.times[kCopy] = {0.53f, 0.53f, 0.53f};
    largest.b.peakTeraFmas = 1000;
    EXPECT_EQ(largest.row("bulk")[4], "94.6");
}

// A share of a marked figure is marked, too.
TEST(Report, MarksWhatIsDividedByAMarkedFigure) {
    Largest largest;
    largest.b.floorMs = 0.27f;  // Twice that lies above both limits alone.
    EXPECT_EQ(largest.row("element")[4], "52.0*");
    EXPECT_EQ(largest.row("element")[5], "0.600");
    largest.b.floorMs = 0.31f;
    EXPECT_EQ(largest.row("element")[5], "0.600*");
    EXPECT_EQ(largest.row("element")[1], "1.0000");
}

TEST(Report, MarksEveryFigureOfAMarkedRow) {
    Largest largest;
    largest.times[kBulk] = {0.30f, 0.30f, 0.30f};
    largest.b.floorMs = 0.20f;
    EXPECT_EQ(largest.row("bulk"),
              (Row{"bulk@256Mi", "0.3000*", "6666.7*", "53.33*", "173.3*",
                   "2.000*", "-", "0.0"}));
}

TEST(Report, CountsTheStepsOfItsTable) {
    for (int iters : {8, 256})
        EXPECT_EQ(Largest().row("element", iters)[3],
                  number("%.2f", iters * 0.25));
}

TEST(Report, ComparesWithTheFastestPlainKernel) {
    for (int best : {kElement, kFloat4, kPlain}) {
        Largest largest;
        largest.times[best].median = 0.28f;
        EXPECT_EQ(largest.row("bulk")[5], "0.500") << best;
    }
}

TEST(Report, WithholdsTheSharesOfWhatFailed) {
    for (int failed : {kCopy, kFma, kElement, kFloat4, kPlain}) {
        Largest largest;
        largest.ok[failed] = false;
        const Row row = largest.row("bulk");
        EXPECT_EQ(row[4], isLimit(failed) ? "failed" : "92.9") << failed;
        EXPECT_EQ(row[5], isLimit(failed) ? "1.071" : "failed") << failed;
    }
}

TEST(Rows, BearTheNameOfTheirKernelAndSize) {
    const std::string kernels[] = {"copy",  "fma",  "element", "float4",
                                   "plain", "sync", "bulk"};
    const std::string sizes[] = {"4Mi", "64Mi", "256Mi"};
    for (int s = 0; s < kNumSizes; ++s) {
        EXPECT_EQ(kSizes[s] >> 20, size_t(std::stoi(sizes[s])));
        for (int k = 0; k < kNumKernels; ++k)
            EXPECT_EQ(kRows[s * kNumKernels + k], kernels[k] + "@" + sizes[s]);
    }
}

TEST(Main, SkipsOnAGpuWithoutBulkCopies) {
    capabilityMajor = 8;
    int status = 0;
    const std::string said = stderrOf([&] { status = lessonMain(); });
    capabilityMajor = 0;
    EXPECT_EQ(status, 77);
    EXPECT_EQ(said.rfind("Skipped: bulk asynchronous copies need compute "
                         "capability 9.0 or newer; the ",
                         0),
              0u);
}

TEST(Report, NamesEveryRowOfASizeThatDoesNotFit) {
    const Timing times[kNumKernels] = {};
    const bool ok[kNumKernels] = {};
    const std::string table =
        stdoutOf([&] { report(kRows, bench(), 1000, 64, times, ok); });
    for (int k = 0; k < kNumKernels; ++k)
        EXPECT_EQ(rowOf(table, kRows[k]),
                  (Row{kRows[k], "-", "-", "-", "-", "-", "-", "-"}));
}

}  // namespace
