// SPDX-License-Identifier: MIT
//
// Every lesson builds wherever a reader may build it, and says clearly where
// it cannot be built or run.

#include <gtest/gtest.h>

#include <regex>

#include "knobs.h"

namespace {

const std::string kNvcc =
    "timeout 300 " + ::quoted(environment("NVCC", "nvcc"));
const char kWarnings[] = " -Werror all-warnings -Xcompiler -Wall,-Wextra ";

class Lesson : public testing::TestWithParam<std::string> {
   protected:
    std::string source() const { return GetParam() + ".cu"; }
    // The oldest architecture the header names, as in 75.
    int minimum() const {
        std::smatch found;
        const std::string text = readFile(source());
        if (!std::regex_search(
                text, found,
                std::regex("// Needs: compute capability (\\d+)\\.(\\d)")))
            throw std::runtime_error(source() + " has no Needs line");
        return std::stoi(found[1].str() + found[2].str());
    }
    std::string minimumArch() const {
        return " -arch=sm_" + std::to_string(minimum()) + " ";
    }
    std::string output() const { return quoted(dir_.path() / "out"); }
    TempDir dir_;
};

// One call for every architecture this nvcc knows, from the minimum on.
TEST_P(Lesson, BuildsForEveryArchitectureWithoutAWarning) {
    std::string targets;
    for (const std::string &arch : words(run(kNvcc + " --list-gpu-arch").out)) {
        const std::string number = arch.substr(arch.find('_') + 1);
        if (std::stoi(number) >= minimum())
            targets += " -gencode arch=" + arch + ",code=sm_" + number;
    }
    ASSERT_NE(targets, "") << "nvcc lists no architecture";
    const Outcome built = run(kNvcc + " -std=c++17 -O3" + kWarnings + targets +
                              " -o " + output() + " " + source());
    EXPECT_EQ(built.status, 0) << built.err;
    EXPECT_EQ(built.out + built.err, "");
}

// Without a GPU: one sentence, exit 1, no table. Where there is one, it hides.
TEST_P(Lesson, BuildsAsCxx20AndSaysThatThereIsNoGpu) {
    const Outcome built =
        run(kNvcc + " -std=c++20 -O3" + kWarnings + minimumArch() + "-o " +
            output() + " " + source());
    ASSERT_EQ(built.status, 0) << built.err;
    const Outcome ran = run("CUDA_VISIBLE_DEVICES= timeout 20 " + output());
    EXPECT_EQ(ran.status, 1);
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(std::regex_match(
        ran.err, std::regex("No CUDA GPU to run on \\(.*\\): .*\\.\n")))
        << ran.err;
}

// As Compiler Explorer does it: one file, its flags, nothing beside it. Its
// default has no -arch; a lesson that needs more than that gets its minimum.
TEST_P(Lesson, BuildsPastedIntoAnEmptyFolder) {
    const std::string file = quoted(std::filesystem::absolute(source()));
    const std::string arch = minimum() > 75 ? minimumArch() : " ";
    const Outcome built =
        run("cd " + quoted(dir_.path()) + " && " + kNvcc +
            " -std=c++17 -g -lineinfo --keep-device-functions" + arch +
            "-x cu - -o example <" + file);
    EXPECT_EQ(built.status, 0) << built.err;
}

// nvcc without -arch builds for 7.5. A lesson that needs more refuses.
TEST_P(Lesson, RefusesToBuildBelowItsMinimum) {
    const Outcome built =
        run(kNvcc + " -std=c++17 -o " + output() + " " + source());
    if (minimum() <= 75) {
        EXPECT_EQ(built.status, 0) << built.err;
        return;
    }
    EXPECT_NE(built.status, 0);
    const std::string flag = "-arch=sm_" + std::to_string(minimum());
    EXPECT_TRUE(std::regex_search(
        built.err, std::regex("#error \"needs compute capability.*" + flag)))
        << built.err;
}

TEST_P(Lesson, BuildsAtEveryValueOfItsKnobAndAtNoOther) {
    for (const Knob &knob : readKnobs()) {
        if (knob.lesson != GetParam()) continue;
        const auto build = [&](const std::string &value) {
            writeFile(dir_.path() / "knob.cu", turned(knob, value));
            return run(kNvcc + " -std=c++17" + kWarnings + minimumArch() +
                       "-ptx -o " + output() + " " +
                       quoted(dir_.path() / "knob.cu"));
        };
        for (const std::string &value : knob.sound) {
            if (turned(knob, value) == readFile(source())) continue;
            const Outcome built = build(value);
            EXPECT_EQ(built.status, 0) << value << ": " << built.err;
        }
        for (const std::string &value : knob.unsound) {
            const Outcome built = build(value);
            EXPECT_NE(built.status, 0) << value;
            EXPECT_NE(built.err.find(knob.constant + " must"),
                      std::string::npos)
                << built.err;
        }
    }
}

TEST_P(Lesson, IsLaidOutByClangFormat) {
    const std::string tool = environment("CLANG_FORMAT", "clang-format");
    ASSERT_NE(run(tool + " --version").out.find("version 14."),
              std::string::npos)
        << "install clang-format-14: other versions lay out differently";
    const Outcome checked = run(tool + " --dry-run -Werror " + source());
    EXPECT_EQ(checked.status, 0) << checked.err;
}

INSTANTIATE_TEST_SUITE_P(Builds, Lesson,
                         testing::ValuesIn(words(environment("LESSONS", ""))),
                         [](const testing::TestParamInfo<std::string> &lesson) {
                             return lesson.param.substr(
                                 lesson.param.rfind('/') + 1);
                         });

}  // namespace
