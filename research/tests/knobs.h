// SPDX-License-Identifier: MIT
//
// The knobs of the lessons, as research/knobs.txt lists them and says what a
// line means.

#ifndef RESEARCH_TESTS_KNOBS_H_
#define RESEARCH_TESTS_KNOBS_H_

#include "shell.h"

#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// The words of a text, between blanks and line ends.
inline std::vector<std::string> words(const std::string &text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

// A lesson's knob: its constant, the values that build, and those that do not.
struct Knob {
    std::string lesson;  // Without .cu.
    std::string constant;
    std::vector<std::string> sound;
    std::vector<std::string> unsound;
};

// For gtest's messages.
inline void PrintTo(const Knob &knob, std::ostream *stream) {
    *stream << knob.lesson << " " << knob.constant;
}

// The knobs of all lessons; throws if a line is none.
inline std::vector<Knob> readKnobs() {
    std::vector<Knob> knobs;
    std::istringstream lines(readFile("research/knobs.txt"));
    const std::regex kLine("(\\S+) :: (\\w+) :: ([\\d ]+) :: ([-\\d ]+) :: .*");
    for (std::string line; std::getline(lines, line);) {
        std::smatch part;
        if (line.empty() || line[0] == '#') continue;
        if (!std::regex_match(line, part, kLine))
            throw std::runtime_error("research/knobs.txt: no knob: " + line);
        knobs.push_back({part[1], part[2], words(part[3]), words(part[4])});
    }
    return knobs;
}

// The source of the knob's lesson, with the knob turned to value; throws if the
// knob is not in it.
inline std::string turned(const Knob &knob, const std::string &value) {
    const std::regex line("(constexpr [a-z]+ " + knob.constant + " = )\\d+;");
    const std::string text = readFile(knob.lesson + ".cu");
    if (!std::regex_search(text, line))
        throw std::runtime_error(knob.lesson + ".cu: no " + knob.constant);
    return std::regex_replace(text, line, "$01" + value + ";");
}

#endif  // RESEARCH_TESTS_KNOBS_H_
