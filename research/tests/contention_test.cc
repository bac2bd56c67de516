// SPDX-License-Identifier: MIT
//
// The host functions of atomics/contention.cu, at full size, against values
// that were not computed the same way.

#include "before_lesson.h"

#include <array>

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

// The whole program with kernels that do no more than to leave what launches of
// the real ones leave. The regime in column c takes 2^(5 - a) + c ms at
// kAddresses[a], and its last sample c eighths longer; an empty kernel takes 1.
struct FakeProgram {
    // The column, the place in kAddresses and the launch, the check's first, of
    // counters that come out wrong.
    std::vector<std::array<int, 3>> wrong;
    int launches[1 + kNumRegimes][kNumAddresses] = {};
    int emptyLaunches = 0;
    int status = -1;
    std::string said;
    Rows rows;

    static double ms(int c, int a) { return (256 >> 2 * a) + c; }

    template <typename T>
    double launch(int c, T *counters, unsigned k, T value) {
        const int a = int(std::find(kAddresses, kAddresses + kNumAddresses, k) -
                          kAddresses);
        const int launch = launches[c][a]++;
        const size_t apart = c == 2 || c == 3 ? 32 : 1;
        const size_t addresses = size_t(k) * (c >= 5 ? kBlocks : 1);
        for (size_t i = 0; i < addresses; ++i)
            counters[i * apart] += value * T(kAdds / addresses);
        for (const auto &w : wrong)
            if (w == std::array<int, 3>{c, a, launch}) counters[0] += T(1);
        const bool last = sampleOf(launch - 1) == kSamples - 1;
        return ms(c, a) * (last ? 1 + c / 8.0 : 1);
    }

    void run() {
        const FakeKernel<> empty([&](void (*)()) {
            const int launch = emptyLaunches++;
            return sampleOf(launch - 1) == kSamples - 1 ? 1.5 : 1.0;
        });
        const FakeKernel<float *, unsigned, float> floats(
            [&](auto kernel, float *counters, unsigned k, float value) {
                const int c = kernel == addAdjacent<float> ? 1
                              : kernel == addApart         ? 2
                              : kernel == addByWarp        ? 3
                                                           : 5;
                return launch(c, counters, k, value);
            });
        const FakeKernel<int *, unsigned, int> ints(
            [&](auto kernel, int *counters, unsigned k, int value) {
                const int c = kernel == addAdjacent<int> ? 4 : 6;
                return launch(c, counters, k, value);
            });
        said = stderrOf([&] { rows = rowsOf([&] { status = lessonMain(); }); });
    }

    // The rows from the section of this name on, count of them.
    Rows section(const std::string &name, size_t count) const {
        const auto begin =
            std::find_if(rows.begin(), rows.end(), [&](const auto &row) {
                return row.size() > 1 && row[0] == "==" && row[1] == name + ":";
            });
        if (size_t(rows.end() - begin) <= count) return {};
        return Rows(begin + 1, begin + 1 + count);
    }
};

// A table with cell(c, a) in column c of row a, where a regime goes so far.
template <typename Cell>
Rows tableOf(Cell cell) {
    Rows table = {{std::begin(kColumns), std::end(kColumns)}};
    for (int a = 0; a < kNumAddresses; ++a) {
        table.push_back({std::to_string(kAddresses[a])});
        for (int c = 1; c <= kNumRegimes; ++c)
            table.back().push_back(c >= 5 && kAddresses[a] > kMaxSharedAddresses
                                       ? "-"
                                       : cell(c, a));
    }
    return table;
}

std::string starred(const std::string &figure, double ms) {
    return figure + (ms < 2 ? "*" : "");
}

TEST(Main, PutsEveryTimeInItsCell) {
    static_assert(kNumAddresses == 8, "the test has other addresses");
    FakeProgram program;
    program.run();
    EXPECT_EQ(program.status, 0);
    EXPECT_EQ(program.said, "");
    EXPECT_EQ(program.rows.back(), Rows({{"All", "checks", "passed."}})[0]);
    EXPECT_EQ(program.emptyLaunches, 1 + kLaunches);
    for (int c = 1; c <= kNumRegimes; ++c)
        for (int a = 0; a < kNumAddresses; ++a)
            EXPECT_EQ(program.launches[c][a],
                      c >= 5 && a > 4 ? 0 : 1 + kLaunches);
    const Rows floor = {{"launches:", std::to_string(kLaunches)},
                        {"floor_ms:", "1.0000"},
                        {"floor_ns_an_add:", number("%.5f", 1e6 / kAdds)},
                        {"spread_%:", "50.0"}};
    EXPECT_EQ(program.section("floor", floor.size()), floor);

    const auto &ms = FakeProgram::ms;
    Rows ns = tableOf([&](int c, int a) {
        return starred(number("%.5f", ms(c, a) * 1e6 / kAdds), ms(c, a));
    });
    ns.insert(ns.begin(), {"adds:", std::to_string(kAdds)});
    EXPECT_EQ(program.section("ns", ns.size()), ns);
    const Rows faster = tableOf([&](int c, int a) {
        return starred(number("%.2f", ms(c, 0) / ms(c, a)), ms(c, a));
    });
    EXPECT_EQ(program.section("faster", faster.size()), faster);
    const Rows spread =
        tableOf([](int c, int) { return number("%.1f", 12.5 * c); });
    EXPECT_EQ(program.section("spread", spread.size()), spread);
    // Worked out by hand: adjacent takes 257, 65, 17, 5, 2, 1, 1 and 1 ms.
    const Rows knees = {{"gain_below:", "1.90"}, {"adjacent:", "1024*"},
                        {"apart:", "256"},       {"warp:", "64"},
                        {"int:", "64"},          {"shared:", "64"},
                        {"shared_int:", "64"}};
    EXPECT_EQ(program.section("knee", knees.size()), knees);
}

TEST(Main, TellsNothingOfWhatFailedAndFails) {
    FakeProgram program;
    program.wrong = {{1, 0, 0}, {6, 2, kLaunches}};
    program.run();
    EXPECT_EQ(program.status, 1);
    EXPECT_EQ(program.said.rfind("FAILED: adjacent with k = 1: 1 of ", 0), 0u);
    EXPECT_NE(program.said.find("FAILED: shared_int with k = 16: 1 of "),
              std::string::npos);
    EXPECT_EQ(rowsWith(program.rows, "All"), Rows());
    EXPECT_EQ(program.launches[1][0], 1);
    const auto failed = [](int c, int a) {
        return (c == 1 && a == 0) || (c == 6 && a == 2);
    };
    const auto &ms = FakeProgram::ms;
    Rows ns = tableOf([&](int c, int a) {
        if (failed(c, a)) return std::string("failed");
        return starred(number("%.5f", ms(c, a) * 1e6 / kAdds), ms(c, a));
    });
    ns.insert(ns.begin(), {"adds:", std::to_string(kAdds)});
    EXPECT_EQ(program.section("ns", ns.size()), ns);
    // Nothing is compared with what failed.
    const Rows faster = tableOf([&](int c, int a) {
        if (failed(c, a) || c == 1) return std::string("failed");
        return starred(number("%.2f", ms(c, 0) / ms(c, a)), ms(c, a));
    });
    EXPECT_EQ(program.section("faster", faster.size()), faster);
    const Rows spread = tableOf([&](int c, int a) {
        return failed(c, a) ? "failed" : number("%.1f", 12.5 * c);
    });
    EXPECT_EQ(program.section("spread", spread.size()), spread);
    EXPECT_EQ(rowsWith(program.rows, "adjacent:")[0][1], "failed");
    EXPECT_EQ(rowsWith(program.rows, "shared_int:")[0][1], "failed");
    EXPECT_EQ(rowsWith(program.rows, "int:")[0][1], "64");
}

TEST(Main, FailsIfOneRegimeWasWrongOnce) {
    for (const std::array<int, 3> &wrong :
         {std::array<int, 3>{1, 0, 0}, {4, 0, 1}, {6, 4, kLaunches}}) {
        FakeProgram program;
        program.wrong = {wrong};
        program.run();
        EXPECT_EQ(program.status, 1);
        EXPECT_EQ(rowsWith(program.rows, "All"), Rows());
    }
}

}  // namespace
