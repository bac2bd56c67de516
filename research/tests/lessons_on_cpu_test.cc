// SPDX-License-Identifier: MIT
//
// Every lesson of the Makefile's list passes on the CPU, on its reduced copy:
// plain under many schedules, and under AddressSanitizer with UBSan and under
// ThreadSanitizer.
// And so does a lesson whose knob a reader has turned.

#include "knobs.h"
#include "on_cpu.h"

#include <gtest/gtest.h>

namespace {

using Case = std::tuple<std::string, const char *>;

class LessonOnCpu : public testing::TestWithParam<Case> {};

TEST_P(LessonOnCpu, PassesEverySchedule) {
    const auto &[lesson, build] = GetParam();
    const TempDir dir;
    const std::filesystem::path program = dir.path() / "lesson";
    const Outcome built = buildForCpu(build, lesson + ".cu", program);
    ASSERT_EQ(built.status, 0) << built.err;
    std::vector<std::string> schedules = {"forward", "reverse", "1"};
    if (std::string(build) == "plain")
        schedules = {"forward", "reverse", "1", "2", "3", "4", "5", "6"};
    for (const std::string &schedule : schedules) {
        SCOPED_TRACE(schedule);
        const Outcome outcome = runOnCpu(program, schedule);
        EXPECT_EQ(outcome.status, 0);
        EXPECT_EQ(outcome.err, "");
        EXPECT_EQ(outcome.out.rfind("These are the CPU's answers", 0), 0u)
            << outcome.out;
        EXPECT_NE(lineWith(outcome.out, "^gpu: CPU"), "") << outcome.out;
    }
}

std::string testName(const testing::TestParamInfo<Case> &info) {
    return baseName(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(Lessons, LessonOnCpu,
                         testing::Combine(testing::ValuesIn(lessons()),
                                          testing::Values("plain", "asan",
                                                          "tsan")),
                         testName);

class KnobOnCpu : public testing::TestWithParam<Knob> {};

// Whoever has no GPU does the exercises here.
TEST_P(KnobOnCpu, PassesAtItsEnds) {
    const TempDir dir;
    const std::filesystem::path source =
        dir.path() / (baseName(GetParam().lesson) + ".cu");
    const std::filesystem::path program = dir.path() / "lesson";
    for (const std::string &value :
         {GetParam().sound.front(), GetParam().sound.back()}) {
        SCOPED_TRACE(value);
        writeFile(source, turned(GetParam(), value));
        const Outcome built = buildForCpu("plain", ::quoted(source), program);
        ASSERT_EQ(built.status, 0) << built.err;
        const Outcome outcome = runOnCpu(program, "forward");
        EXPECT_EQ(outcome.status, 0);
        EXPECT_EQ(outcome.err, "");
    }
}

INSTANTIATE_TEST_SUITE_P(Knobs, KnobOnCpu, testing::ValuesIn(readKnobs()),
                         [](const testing::TestParamInfo<Knob> &info) {
                             return baseName(info.param.lesson) + "_" +
                                    info.param.constant;
                         });

}  // namespace
