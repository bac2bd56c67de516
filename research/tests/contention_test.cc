// SPDX-License-Identifier: MIT
//
// The host functions of atomics/contention.cu, at full size, against values
// that were not computed the same way.

#include "before_lesson.h"

#include LESSON

namespace {

#include "after_lesson.h"

// What the regimes are called below.
const Regime<float> &kAdjacent = kFloatRegimes[0];
const Regime<float> &kFarApart = kFloatRegimes[1];
const Regime<float> &kByWarp = kFloatRegimes[2];
const Regime<float> &kShared = kFloatRegimes[3];
const Regime<int> &kInt = kIntRegimes[0];

TEST(Regimes, StandInTheColumnsOfTheirNames) {
    EXPECT_STREQ(kColumns[kAdjacent.column], "adjacent");
    EXPECT_STREQ(kColumns[kFarApart.column], "apart");
    EXPECT_STREQ(kColumns[kByWarp.column], "warp");
    EXPECT_STREQ(kColumns[kInt.column], "int");
    EXPECT_STREQ(kColumns[kShared.column], "shared");
    EXPECT_STREQ(kColumns[kIntRegimes[1].column], "shared_int");
}

// Adds one at a time, as the kernels' comments say, and compares.
template <typename T>
void expectReference(const Regime<T> &regime, unsigned k, size_t perBlock) {
    std::vector<T> counters(kElems, T(0));
    for (size_t i = 0; i < kAdds; ++i) {
        size_t address = i % k;
        if (regime.column == kByWarp.column) address = i / 32 % k;
        // The thread that makes add i, and its block.
        if (perBlock) address += i % kThreads / kThreadsPerBlock * perBlock;
        counters[address * regime.apart] += 1;
    }
    for (size_t j = 0; j < kElems; ++j) {
        const T want = 2 * counters[j];
        ASSERT_EQ(counterCpu(regime, k, 2, j), want) << j;
    }
}

TEST(CounterCpu, IsWhatOneAddAfterTheOtherMakes) {
    for (unsigned k : {1u, 4u, 1024u, kMaxAddresses}) {
        SCOPED_TRACE(k);
        expectReference(kAdjacent, k, 0);
        expectReference(kFarApart, k, 0);
        expectReference(kByWarp, k, 0);
        expectReference(kInt, k, 0);
    }
    for (unsigned k : {1u, 16u, kMaxSharedAddresses}) {
        SCOPED_TRACE(k);
        expectReference(kShared, k, k);
    }
}

// What checkCounters says after one launch at k = 4 when element j holds value;
// it returns true exactly when it says nothing.
template <typename T>
std::string complaint(const Regime<T> &regime, size_t j, T value) {
    std::vector<T> got(kElems);
    for (size_t i = 0; i < kElems; ++i) got[i] = counterCpu(regime, 4, 1, i);
    got[j] = value;
    bool ok = false;
    const std::string said =
        stderrOf([&] { ok = checkCounters(regime, 4, 1, got); });
    EXPECT_EQ(ok, said.empty());
    return said;
}

TEST(CheckCounters, HoldsForTheRightTotalsAlone) {
    const float right = kAdds / 4;
    EXPECT_EQ(complaint(kAdjacent, 3, right), "");
    EXPECT_NE(complaint(kAdjacent, 3, right - 1), "");
    EXPECT_NE(complaint(kAdjacent, 3, above(right)), "");
    EXPECT_NE(complaint(kAdjacent, 3, kNan), "");
    EXPECT_NE(complaint(kAdjacent, 3, kInfinity), "");
    // Nothing may be added elsewhere.
    EXPECT_NE(complaint(kAdjacent, 4, kSubnormal), "");
    EXPECT_NE(complaint(kAdjacent, kElems - 1, 1.0f), "");
    EXPECT_NE(complaint(kFarApart, 1, 1.0f), "");
    EXPECT_EQ(complaint(kInt, 0, int(kAdds / 4)), "");
    EXPECT_NE(complaint(kInt, 0, int(kAdds / 4) + 1), "");
}

TEST(CheckCounters, SaysWhichElementAndBothValues) {
    EXPECT_EQ(complaint(kFarApart, 32, 7.5f),
              "FAILED: apart with k = 4: 1 of " + std::to_string(kElems) +
                  " elements wrong, the first at 32: got 7.5, want 1048576\n");
}

TEST(NsAnAdd, DividesALaunchByItsAdds) {
    EXPECT_DOUBLE_EQ(nsAnAdd(4.194304f), 1e6 * 4.194304f / 4194304);
    EXPECT_DOUBLE_EQ(nsAnAdd(8.0f), 8e6 / 4194304);
    EXPECT_TRUE(std::isnan(nsAnAdd(kNan)));
}

// The knee of a regime whose medians, from k = 1 on, are these.
std::string kneeOf(const std::vector<float> &medians, float floorMs) {
    Result results[kNumAddresses];
    for (size_t a = 0; a < medians.size(); ++a) {
        results[a].measured = results[a].ok = true;
        results[a].time.median = medians[a];
    }
    return knee(results, floorMs);
}

TEST(Knee, IsWhereFourTimesTheAddressesStopGainingTwice) {
    EXPECT_EQ(kneeOf({64, 16, 4, 3, 3, 3, 3, 3}, 0.1f), "16");
    EXPECT_EQ(kneeOf({64, 63, 62, 61, 60, 59, 58, 57}, 0.1f), "1");
    // A gain of exactly twice is still a gain.
    EXPECT_EQ(kneeOf({64, 32, 16, 8, 4, 2, 1, 1}, 0.1f), "4096");
    // Flat for a step, then falling again: the knee is behind that.
    EXPECT_EQ(kneeOf({64, 64, 16, 4, 3, 3, 3, 3}, 0.1f), "64");
    EXPECT_EQ(kneeOf({64, 16, 4, 3, 3}, 0.1f), "16");
}

TEST(Knee, IsNoneWhileTheLastStepGains) {
    EXPECT_EQ(kneeOf({64, 32, 16, 8, 4, 2, 1, 0.5f}, 0.1f), "-");
    EXPECT_EQ(kneeOf({64, 16}, 0.1f), "-");
    EXPECT_EQ(kneeOf({64}, 0.1f), "-");
}

TEST(Knee, IsMarkedWhereTheStepBehindItEndsNearTheFloor) {
    EXPECT_EQ(kneeOf({64, 16, 4, 3, 3, 3, 3, 3}, 1.5f), "16");
    EXPECT_EQ(kneeOf({64, 16, 4, 3, 3, 3, 3, 3}, 1.6f), "16*");
}

TEST(Knee, IsNotToldWhereACheckFailedOrThereIsNoTime) {
    Result results[kNumAddresses];
    for (Result &result : results) {
        result.measured = result.ok = true;
        result.time.median = 1.0f;
    }
    results[2].ok = false;
    EXPECT_EQ(knee(results, 0.1f), "failed");
    EXPECT_EQ(kneeOf(std::vector<float>(kNumAddresses, kNan), kNan), "-");
}

TEST(PrintTable, HasADashWhereNothingWasMeasured) {
    Results results;
    results[0][0].measured = true;
    const std::string table = stdoutOf(
        [&] { printTable(results, [](const Result *, int) { return "7"; }); });
    const std::string first =
        "         1         7         -         -         -         -          "
        "-\n";
    EXPECT_NE(table.find(first), std::string::npos) << table;
}

}  // namespace
