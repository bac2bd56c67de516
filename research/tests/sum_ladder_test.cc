// SPDX-License-Identifier: MIT
//
// The host functions of atomics/sum_ladder.cu, at full size, against values
// that were not computed the same way.

#include "before_lesson.h"

#include LESSON

namespace {

#include "after_lesson.h"

TEST(CountOfPhase, CountsThePhasesElements) {
    for (size_t n : {0, 1, 2, 3, 4, 5, 15, 16, 17, 1023, 1025})
        for (size_t phases : {1, 2, 4, 16}) {
            std::vector<size_t> count(phases, 0);
            for (size_t i = 0; i < n; ++i) ++count[i % phases];
            for (size_t phase = 0; phase < phases; ++phase)
                EXPECT_EQ(countOfPhase(n, phases, phase), count[phase])
                    << n << " in " << phases << ", " << phase;
        }
}

TEST(CountOfPhase, IsNeverMoreThanAFloatCanCount) {
    for (size_t n : kSizes) {
        const size_t phases = std::max<size_t>(1, n / kFloatIntegerLimit);
        EXPECT_LE(countOfPhase(n, phases, 0), kFloatIntegerLimit);
    }
    for (size_t n : kEdges) EXPECT_LE(n, kFloatIntegerLimit);
}

// Values from 0 to 1 are multiples of 2^-40 or so: their sum is exact in
// integers of that unit, as each has 24 bits and none but zero is below 2^-10.
TEST(InexactSum, IsTheExactSum) {
    for (size_t n : {size_t(0), size_t(1), size_t(999), size_t(1000),
                     size_t(1001), size_t(4194304)}) {
        int64_t units = 0;
        for (size_t i = 0; i < n; ++i)
            units += int64_t(std::ldexp(double(inexactValue(i)), 34));
        const double exact = std::ldexp(double(units), -34);
        EXPECT_NEAR(inexactSum(n), exact, 1e-12 * exact) << n;
    }
}

TEST(InexactValue, RepeatsAfterTheModulus) {
    EXPECT_EQ(inexactValue(0), 0.0f);
    EXPECT_EQ(inexactValue(999), 999 * 0.001f);
    EXPECT_EQ(inexactValue(1000), 0.0f);
    EXPECT_EQ(inexactValue(268435455), inexactValue(455));
}

TEST(Parts, CoverTheWhole) {
    EXPECT_EQ(parts(0, 256), 0u);
    EXPECT_EQ(parts(1, 256), 1u);
    EXPECT_EQ(parts(256, 256), 1u);
    EXPECT_EQ(parts(257, 256), 2u);
    EXPECT_EQ(parts(size_t(1) << 40, 1), size_t(1) << 40);
}

TEST(GridOf, CoversEveryElementUpToTheBlockRung) {
    for (int rung = 0; rung < kStride; ++rung)
        for (size_t n : {size_t(1), size_t(255), size_t(256), size_t(257),
                         size_t(268435456)}) {
            const size_t blocks = gridOf(rung, n, 528);
            EXPECT_GE(blocks * kThreadsPerBlock, n);
            EXPECT_LT((blocks - 1) * kThreadsPerBlock, n);
        }
}

// Above, no more blocks than there is room for, none idle, and no block has
// more turns than the fewest that the room allows.
TEST(GridOf, SharesTheTurnsOutEvenly) {
    for (int rung = kStride; rung < kNumRungs; ++rung) {
        const size_t elems =
            kThreadsPerBlock * (rung == kStride   ? 1
                                : rung == kFloat4 ? 4
                                                  : 4 * kLoadsInFlight);
        for (size_t room : {1, 2, 7, 528, 1056})
            for (size_t n : {size_t(1), elems - 1, elems, elems + 1, 7 * elems,
                             7 * elems + 1, size_t(4194304), size_t(16777216),
                             size_t(67108864), size_t(268435456)}) {
                const size_t blocks = gridOf(rung, n, room);
                EXPECT_GE(blocks, 1u);
                EXPECT_LE(blocks, room);
                const size_t turns = (n + elems - 1) / elems;
                EXPECT_LE(blocks, turns);
                EXPECT_EQ((turns + blocks - 1) / blocks,
                          (turns + room - 1) / room)
                    << rung << ": " << n << " in " << blocks;
            }
    }
}

TEST(Rungs, SayWhatTheyNeed) {
    for (int rung = 0; rung < kNumRungs; ++rung) {
        EXPECT_EQ(accumulates(rung), rung != kLast && rung != kLimit);
        EXPECT_TRUE(sumsOnesExactly(rung, 16777216));
        EXPECT_EQ(sumsOnesExactly(rung, 16777217), rung != kGlobal);
    }
}

TEST(CheckExact, HoldsForEqualBitsAlone) {
    const auto holds = [](float got, float want) {
        bool ok = false;
        const std::string said =
            stderrOf([&] { ok = checkExact("last", 7, got, want); });
        EXPECT_EQ(ok, said.empty()) << said;
        return ok;
    };
    EXPECT_TRUE(holds(16777216.0f, 16777216.0f));
    EXPECT_FALSE(holds(16777215.0f, 16777216.0f));
    EXPECT_FALSE(holds(-0.0f, 0.0f));
    EXPECT_FALSE(holds(kSubnormal, 0.0f));
    EXPECT_FALSE(holds(kNan, 3.0f));
    EXPECT_EQ(stderrOf([] { checkExact("last", 7, 0.123456789f, 1.0f); }),
              "FAILED: last sum of 7: got 0.123456791, want 1\n");
}

TEST(CheckNear, HoldsUpToTheToleranceAndFailsOnNan) {
    const auto holds = [](float got, double want, double tolerance) {
        bool ok = false;
        const std::string said =
            stderrOf([&] { ok = checkNear("last", 7, got, want, tolerance); });
        EXPECT_EQ(ok, said.empty()) << said;
        return ok;
    };
    EXPECT_TRUE(holds(2.5f, 2.0, 0.5));
    EXPECT_TRUE(holds(1.5f, 2.0, 0.5));
    EXPECT_FALSE(holds(above(2.5f), 2.0, 0.5));
    EXPECT_FALSE(holds(kNan, 2.0, 0.5));
    EXPECT_FALSE(holds(kInfinity, 2.0, 0.5));
    EXPECT_FALSE(holds(2.0f, kNan, 0.5));
}

TEST(DistinctResults, CountsBitPatterns) {
    const float values[] = {1.0f, 2.0f, 1.0f, 0.0f, -0.0f, 2.0f};
    EXPECT_EQ(distinctResults(values, 0), 0);
    EXPECT_EQ(distinctResults(values, 1), 1);
    EXPECT_EQ(distinctResults(values, 3), 2);
    EXPECT_EQ(distinctResults(values, 6), 4);
}

TEST(ReadGBs, CountsTheInputsBytesOnce) {
    EXPECT_EQ(readGBs(4194304, 1.0f), 16.777216);
    EXPECT_EQ(readGBs(250000, 0.5f), 2.0);
    EXPECT_TRUE(std::isnan(readGBs(4096, kNan)));
}

// A row of a table as its words.
std::vector<std::string> rowOf(const Result (&results)[kNumRungs], int rung,
                               size_t n) {
    const std::string text = stdoutOf([&] { printRows(results, n); });
    size_t start = 0;
    for (int line = 0; line < rung; ++line) start = text.find('\n', start) + 1;
    std::vector<std::string> words;
    for (size_t i = start; text[i] != '\n';) {
        const size_t first = text.find_first_not_of(' ', i);
        i = text.find_first_of(" \n", first);
        words.push_back(text.substr(first, i - first));
    }
    return words;
}

TEST(Rows, TellTheLimitsShareAndTheGain) {
    Result results[kNumRungs];
    for (Result &r : results) r = {{1.0f, 1.0f, 1.0f}, 1, true, true, false};
    results[kGlobal].ran = false;
    results[1].time = {8.0f, 7.0f, 11.0f};
    results[2].time = {4.0f, 4.0f, 4.0f};
    results[kLimit].time = {0.5f, 0.4f, 0.5f};
    using Words = std::vector<std::string>;
    EXPECT_EQ(rowOf(results, kGlobal, 250000),
              (Words{"global", "-", "-", "-", "-", "-", "-"}));
    EXPECT_EQ(rowOf(results, 1, 250000),
              (Words{"shared", "8000.0000", "0.1", "6.2", "-", "50.0", "1"}));
    EXPECT_EQ(rowOf(results, 2, 250000),
              (Words{"tree", "4000.0000", "0.2", "12.5", "2.00", "0.0", "1"}));
    EXPECT_EQ(rowOf(results, kLimit, 250000),
              (Words{"limit", "500.0000", "2.0", "100.0", "-", "20.0", "-"}));
}

TEST(Rows, WithholdWhatFailedAndMarkWhatIsNearTheFloor) {
    Result results[kNumRungs];
    for (Result &r : results) r = {{1.0f, 1.0f, 1.0f}, 20, true, true, false};
    results[2].ok = false;
    results[4].marked = true;
    using Words = std::vector<std::string>;
    EXPECT_EQ(rowOf(results, 2, 250000),
              (Words{"tree", "failed", "failed", "failed", "failed", "failed",
                     "failed"}));
    EXPECT_EQ(
        rowOf(results, 3, 250000),
        (Words{"warp", "1000.0000", "1.0", "100.0", "failed", "0.0", "20"}));
    EXPECT_EQ(
        rowOf(results, 4, 250000),
        (Words{"block", "1000.0000*", "1.0*", "100.0*", "1.00*", "0.0", "20"}));
    EXPECT_EQ(
        rowOf(results, 5, 250000),
        (Words{"stride", "1000.0000", "1.0", "100.0", "1.00*", "0.0", "20"}));
    results[kLimit].ok = false;
    EXPECT_EQ(
        rowOf(results, 6, 250000),
        (Words{"float4", "1000.0000", "1.0", "failed", "1.00", "0.0", "20"}));
}

}  // namespace
