// SPDX-License-Identifier: MIT
//
// Tests of the functions that every lesson has in the same text; included in an
// unnamed namespace by each lesson's test, behind the lesson.

// The bytes a statement writes to stdout or stderr.
template <typename Statement>
std::string stdoutOf(Statement statement) {
    testing::internal::CaptureStdout();
    statement();
    return testing::internal::GetCapturedStdout();
}

template <typename Statement>
std::string stderrOf(Statement statement) {
    testing::internal::CaptureStderr();
    statement();
    return testing::internal::GetCapturedStderr();
}

// The cells of each line that a statement writes to stdout, and how wide apart
// they stand left out.
using Rows = std::vector<std::vector<std::string>>;
template <typename Statement>
Rows rowsOf(Statement statement) {
    std::istringstream lines(stdoutOf(statement));
    Rows rows;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        rows.emplace_back(std::istream_iterator<std::string>(words),
                          std::istream_iterator<std::string>());
    }
    return rows;
}

// A number as text, in the format of printf.
std::string number(const char *format, double value) {
    char text[64];
    std::snprintf(text, sizeof(text), format, value);
    return text;
}

// The rows whose first cell is label.
Rows rowsWith(const Rows &rows, const std::string &label) {
    Rows found;
    for (const auto &row : rows)
        if (!row.empty() && row[0] == label) found.push_back(row);
    return found;
}

// In which sample timeKernel makes a launch: -1 while it warms up.
int sampleOf(int run) {
    return run < kWarmupRuns ? -1 : (run - kWarmupRuns) / kTimedRuns;
}

// The float one step above x.
float above(float x) { return std::nextafterf(x, kInfinity); }

TEST(TimeKernel, LaunchesEveryRunOnceInOrder) {
    std::vector<int> runs;
    timeKernel([&](int run) { runs.push_back(run); });
    ASSERT_EQ(runs.size(), 73u);
    EXPECT_EQ(kLaunches, 73);
    for (int i = 0; i < 73; ++i) EXPECT_EQ(runs[i], i);
}

TEST(TimeKernel, ReturnsTheMedianAndTheExtremesOfMeansOfTen) {
    elapsedTimes = {70, 10, 60, 20, 50, 30, 41};
    const Timing time = timeKernel([](int) {});
    EXPECT_EQ(time.median, 4.1f);
    EXPECT_EQ(time.min, 1.0f);
    EXPECT_EQ(time.max, 7.0f);
}

TEST(TimeKernel, TellsNoTimeWithoutEvents) {
    const Timing time = timeKernel([](int) {});
    EXPECT_TRUE(std::isnan(time.median));
    EXPECT_TRUE(std::isnan(time.min));
    EXPECT_TRUE(std::isnan(time.max));
}

TEST(SpreadPercent, IsTheRangeInPercentOfTheMedian) {
    EXPECT_EQ(spreadPercent({2.0f, 2.0f, 2.0f}), 0.0);
    EXPECT_EQ(spreadPercent({2.0f, 1.5f, 2.5f}), 50.0);
    EXPECT_EQ(spreadPercent({4.0f, 4.0f, 8.0f}), 100.0);
    EXPECT_TRUE(std::isnan(spreadPercent({kNan, kNan, kNan})));
}

TEST(NearFloor, IsUnderTwiceTheFloor) {
    EXPECT_TRUE(nearFloor(1.0f, 1.0f));
    EXPECT_TRUE(nearFloor(std::nextafterf(2.0f, 0.0f), 1.0f));
    EXPECT_FALSE(nearFloor(2.0f, 1.0f));
    EXPECT_FALSE(nearFloor(3.0f, 1.0f));
}

TEST(Figure, IsFormattedMarkedOrWithheld) {
    EXPECT_EQ(figure("%.4f", 0.00374, true), "0.0037");
    EXPECT_EQ(figure("%.4f", 0.00374, true, true), "0.0037*");
    EXPECT_EQ(figure("%.4f", 0.00374, false), "failed");
    EXPECT_EQ(figure("%.4f", 0.00374, false, true), "failed");
    EXPECT_EQ(figure("%.9g", -0.0, true), "-0");
}

TEST(Cells, StandUnderTheirLabels) {
    EXPECT_EQ(stdoutOf([] { printCell("n", "4096"); }), "      4096");
    EXPECT_EQ(stdoutOf([] { printCell("global_GB/s", "2.30"); }),
              "        2.30");
    const char *const labels[] = {"n", "global_GB/s"};
    EXPECT_EQ(stdoutOf([&] { printLabels(labels); }),
              "         n global_GB/s\n");
}
