// SPDX-License-Identifier: MIT
//
// What tests need to build a program for the CPU runner and run it under a
// schedule.

#ifndef RESEARCH_TESTS_ON_CPU_H_
#define RESEARCH_TESTS_ON_CPU_H_

#include "shell.h"

#include <regex>
#include <string>
#include <vector>

// The lessons, without .cu, as the Makefile lists them in LESSONS; none if the
// test is not run by make.
inline std::vector<std::string> lessons() {
    std::istringstream words(environment("LESSONS", ""));
    std::vector<std::string> names;
    for (std::string word; words >> word;) names.push_back(word);
    return names;
}

// The last part of a lesson's path, which is its name.
inline std::string baseName(const std::string &lesson) {
    return lesson.substr(lesson.rfind('/') + 1);
}

// Compiles source for the runner's build plain, asan or tsan, reduced and
// changed by arguments as build.sh takes them.
inline Outcome buildForCpu(const std::string &build, const std::string &source,
                           const std::filesystem::path &program,
                           const std::string &arguments = "") {
    return run("research/cpu_runner/build.sh " + build + " " + source + " " +
               quoted(program) + " " + arguments);
}

// Runs a program under a schedule. One that takes longer than a minute is
// killed, and its status is then 124. Where the machine allows it, programs are
// loaded at one address: ThreadSanitizer cannot live with every other. A
// program that is itself a test is to run whole, whatever part the caller runs.
inline Outcome runOnCpu(const std::filesystem::path &program,
                        const std::string &schedule,
                        const std::string &arguments = "") {
    static const std::string fixed =
        run("setarch -R true").status == 0 ? "setarch -R " : "";
    return run(
        "unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX GTEST_OUTPUT; "
        "CPU_RUNNER_SCHEDULE=" +
        schedule + " timeout 60 " + fixed + quoted(program) + " " + arguments);
}

// The first line of text in which the regular expression what is found; empty
// if there is none.
inline std::string lineWith(const std::string &text, const std::string &what) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (std::regex_search(line, std::regex(what))) return line;
    return "";
}

#endif  // RESEARCH_TESTS_ON_CPU_H_
