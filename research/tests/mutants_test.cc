// SPDX-License-Identifier: MIT
//
// Shows that each check in each lesson can fail: plants the faults of
// research/mutants/LESSON.txt in the lesson's reduced copy, one at a time, and
// runs it with the CPU runner. A line there is
//
//     name :: sed expression :: what must happen
//
// and what must happen is one of
//
//     plain: regex    a run of that build ends with another status than 0 and a
//     asan: regex     line on stderr that matches, under one of the schedules
//     tsan: regex     below
//     compile: regex  it does not compile, and a line of the compiler matches
//     host: name      at full size, in the test of the lesson's host functions,
//                     one of the tests whose names begin so fails
//     holds           no fault but a variant: it passes every schedule
//     unseen: reason  it passes every schedule; reason says why, and which
//                     tool on a GPU sees it
//
// An expression that no longer changes the lesson fails its test.

#include "on_cpu.h"

#include <fstream>

#include <gtest/gtest.h>

namespace {

struct Mutant {
    std::string lesson;
    std::string name;
    std::string expression;
    std::string outcome;  // plain, asan, ...
    std::string text;     // What stands behind its colon.
};

// For gtest's messages.
void PrintTo(const Mutant &mutant, std::ostream *stream) {
    *stream << mutant.expression << " :: " << mutant.outcome;
}

// Schedules in the order in which they are tried: what most faults die of
// comes first. Sanitizers see a fault without its schedule.
const std::vector<std::string> kSchedules = {
    "forward", "reverse", "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",
    "10",      "11",      "12", "13", "14", "15", "16", "17", "18", "19", "20"};
const std::vector<std::string> kFewSchedules = {"forward", "reverse", "1", "2"};

// All mutants of all lessons. A line that is none has an empty outcome.
std::vector<Mutant> readMutants() {
    std::vector<Mutant> mutants;
    for (const std::string &lesson : lessons()) {
        std::ifstream file("research/mutants/" + baseName(lesson) + ".txt");
        for (std::string line; std::getline(file, line);) {
            if (line.empty() || line[0] == '#') continue;
            Mutant mutant{lesson, line, "", "", ""};
            const size_t first = line.find(" :: ");
            const size_t last = line.rfind(" :: ");
            if (first != last) {
                mutant.name = line.substr(0, first);
                mutant.expression = line.substr(first + 4, last - first - 4);
                mutant.outcome = line.substr(last + 4);
                const size_t colon = mutant.outcome.find(": ");
                if (colon != std::string::npos) {
                    mutant.text = mutant.outcome.substr(colon + 2);
                    mutant.outcome.resize(colon);
                }
            }
            mutants.push_back(mutant);
        }
    }
    return mutants;
}

std::string testName(const testing::TestParamInfo<Mutant> &info) {
    std::string name = baseName(info.param.lesson) + "_" + info.param.name;
    for (char &c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
}

class MutantTest : public testing::TestWithParam<Mutant> {
   protected:
    // Builds the mutant; a compiler that refuses it is an outcome, too, but
    // an expression that does not apply is not.
    Outcome build(const std::string &build) {
        const Mutant &mutant = GetParam();
        const Outcome outcome =
            buildForCpu(build, mutant.lesson + ".cu", program_,
                        ::quoted(mutant.expression));
        EXPECT_EQ(outcome.err.find("reduce.sh:"), std::string::npos)
            << outcome.err;
        return outcome;
    }

    const TempDir dir_;
    const std::filesystem::path program_ = dir_.path() / "mutant";
};

TEST_P(MutantTest, HasItsOutcome) {
    const Mutant &mutant = GetParam();
    if (mutant.outcome == "compile") {
        const Outcome outcome = build("plain");
        EXPECT_NE(outcome.status, 0) << "It compiles.";
        EXPECT_NE(lineWith(outcome.err, mutant.text), "") << outcome.err;
        std::printf("died: does not compile: %s\n", mutant.text.c_str());
        return;
    }
    if (mutant.outcome == "host") {
        const std::string name = baseName(mutant.lesson);
        setenv("TEST", ("research/tests/" + name + "_test.cc").c_str(), 1);
        setenv("REDUCE", "no", 1);
        const Outcome built = build("plain");
        unsetenv("REDUCE");
        unsetenv("TEST");
        ASSERT_EQ(built.status, 0) << built.err;
        const Outcome outcome = runOnCpu(
            program_, "forward", "'--gtest_filter=" + mutant.text + "*'");
        EXPECT_EQ(outcome.status, 1) << outcome.err;
        const std::string line =
            lineWith(outcome.out, "^\\[  FAILED  \\] " + mutant.text);
        EXPECT_NE(line, "") << "Dies otherwise:\n" << outcome.out;
        std::printf("died: host: %s\n", line.c_str());
        return;
    }
    const bool lives = mutant.outcome == "holds" || mutant.outcome == "unseen";
    if (lives) {
        EXPECT_EQ(mutant.outcome == "unseen", !mutant.text.empty())
            << "unseen needs a reason, and holds none.";
    } else {
        ASSERT_TRUE(mutant.outcome == "plain" || mutant.outcome == "asan" ||
                    mutant.outcome == "tsan")
            << "No outcome: " << mutant.outcome;
        ASSERT_FALSE(mutant.text.empty()) << "No text behind the outcome.";
    }
    const std::string kind = lives ? "plain" : mutant.outcome;
    const Outcome built = build(kind);
    ASSERT_EQ(built.status, 0) << built.err;
    const auto &schedules =
        kind == "plain" && !lives ? kSchedules : kFewSchedules;
    for (const std::string &schedule : schedules) {
        const Outcome outcome = runOnCpu(program_, schedule);
        if (outcome.status == 0) continue;
        const std::string line = lineWith(outcome.err, mutant.text);
        ASSERT_FALSE(lives) << "Under schedule " << schedule << ":\n"
                            << outcome.err;
        ASSERT_NE(outcome.status, 124) << "Takes too long: " << schedule;
        ASSERT_NE(line, "") << "Dies otherwise under schedule " << schedule
                            << ", status " << outcome.status << ":\n"
                            << outcome.err;
        std::printf("died: %s %s: %s\n", kind.c_str(), schedule.c_str(),
                    line.c_str());
        return;
    }
    EXPECT_TRUE(lives) << "It survives every schedule.";
}

INSTANTIATE_TEST_SUITE_P(Mutants, MutantTest, testing::ValuesIn(readMutants()),
                         testName);

// The lessons have a file each, with as many faults as a lesson must have.
TEST(MutantFiles, EveryLessonHasMutants) {
    constexpr int kFewest = 15;
    ASSERT_FALSE(lessons().empty())
        << "LESSONS is empty: run the tests with make check.";
    for (const std::string &lesson : lessons()) {
        int faults = 0;
        for (const Mutant &mutant : readMutants())
            faults += mutant.lesson == lesson && mutant.outcome != "holds" &&
                      mutant.outcome != "unseen";
        EXPECT_GE(faults, kFewest) << lesson;
    }
}

}  // namespace
