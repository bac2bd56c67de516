// SPDX-License-Identifier: MIT
//
// What check.sh makes of test programs that pass, fail, skip, crash or run
// nothing. Shell scripts stand in for them.

#include "shell.h"

#include <gtest/gtest.h>

namespace {

class Check : public testing::Test {
   protected:
    // Makes a program that reports so many tests and then runs last.
    void program(const std::string &name, int tests, int failures,
                 const std::string &last = "exit 0") {
        const std::filesystem::path path = dir_.path() / name;
        writeFile(path,
                  "#!/bin/sh\necho \"noise of " + name +
                      "\"\ncat >\"${GTEST_OUTPUT#xml:}\" "
                      "<<end\n<?xml version=\"1.0\"?>\n<testsuites tests=\"" +
                      std::to_string(tests) + "\" failures=\"" +
                      std::to_string(failures) + "\">\nend\n" + last + "\n");
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }
    Outcome check(const std::string &arguments) {
        return run(script() + " " + arguments);
    }
    // A copy, as it works in the folder above its own.
    std::string script() const {
        const std::filesystem::path copy = dir_.path() / "research/check.sh";
        std::filesystem::create_directories(copy.parent_path());
        std::filesystem::copy_file(
            "research/check.sh", copy,
            std::filesystem::copy_options::overwrite_existing);
        return quoted(copy);
    }
    const TempDir dir_;
};

TEST_F(Check, AddsUpAndSaysLittleWhenAllPass) {
    program("one", 3, 0);
    program("two", 4, 0);
    const Outcome outcome = check("one two:2");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out,
              "one: 3 passed, 0 failed\ntwo: 8 passed, 0 failed\n"
              "11 passed, 0 failed\n");
}

TEST_F(Check, FailsWithWhatTheProgramSaid) {
    program("one", 3, 2, "exit 1");
    const Outcome outcome = check("one");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out,
              "noise of one\none: 1 passed, 2 failed\n1 passed, 2 failed\n");
}

TEST_F(Check, CountsACrashAsAFailure) {
    program("one", 3, 0, "rm \"${GTEST_OUTPUT#xml:}\"; kill -9 $$");
    program("two", 3, 0, "exit 3");
    const Outcome outcome = check("one two");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.out.find("one: ended with status 137."),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("two: ended with status 3."), std::string::npos);
    EXPECT_NE(outcome.out.find("\n3 passed, 2 failed\n"), std::string::npos);
}

TEST_F(Check, CountsAProgramThatRunsNothingOrIsNotThereAsAFailure) {
    program("one", 0, 0);
    const Outcome outcome = check("one none");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.out.find("one: ran no test."), std::string::npos);
    EXPECT_NE(outcome.out.find("\n0 passed, 2 failed\n"), std::string::npos)
        << outcome.out;
}

TEST_F(Check, CountsASkippedTestAsAFailure) {
    program("one", 2, 0,
            "echo '<testcase result=\"skipped\">' >>\"${GTEST_OUTPUT#xml:}\"");
    EXPECT_NE(check("one").out.find("\n1 passed, 1 failed\n"),
              std::string::npos);
}

TEST_F(Check, FailsWhereTheVerdictCannotBeWritten) {
    program("one", 3, 0);
    EXPECT_EQ(check("one").status, 0);
    EXPECT_EQ(check("one >/dev/full").status, 1);
}

TEST_F(Check, FailsWithoutATest) {
    const Outcome outcome = check("");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("check.sh: name the test programs"), 0u);
}

TEST_F(Check, RunsEachPartOnce) {
    program("one", 1, 0,
            "echo \"$GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS\""
            " >>parts");
    EXPECT_EQ(check("one:3").status, 0);
    EXPECT_EQ(run("sort " + quoted(dir_.path() / "parts")).out,
              "0 of 3\n1 of 3\n2 of 3\n");
}

}  // namespace
