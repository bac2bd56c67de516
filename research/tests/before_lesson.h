// SPDX-License-Identifier: MIT
//
// What the test of a lesson's host functions includes in front of the lesson,
// whose text it then includes as LESSON: values, and event times of the test's
// own.

#ifndef RESEARCH_TESTS_BEFORE_LESSON_H_
#define RESEARCH_TESTS_BEFORE_LESSON_H_

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSubnormal = std::numeric_limits<float>::denorm_min();

// The milliseconds that the next events will lie apart, in order; NaN, as on
// the CPU, when none is left.
inline std::vector<float> elapsedTimes;

inline cudaError_t fakeElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) {
    *ms = kNan;
    if (elapsedTimes.empty()) return cudaSuccess;
    *ms = elapsedTimes.front();
    elapsedTimes.erase(elapsedTimes.begin());
    return cudaSuccess;
}

// What follows is the lesson: its main has another name, its times are ours.
#define main lessonMain
#define cudaEventElapsedTime fakeElapsedTime

#endif  // RESEARCH_TESTS_BEFORE_LESSON_H_
