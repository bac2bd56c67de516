// SPDX-License-Identifier: MIT
//
// What the test of a lesson's host functions includes in front of the lesson,
// whose text it then includes as LESSON: values, and launches and event times
// of the test's own.

#ifndef RESEARCH_TESTS_BEFORE_LESSON_H_
#define RESEARCH_TESTS_BEFORE_LESSON_H_

#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSubnormal = std::numeric_limits<float>::denorm_min();

// The milliseconds that the next events will lie apart, in order; when none is
// left, what clockMs says.
inline std::vector<float> elapsedTimes;

// The time that events record: NaN, as on the CPU, unless a FakeKernel is
// there.
inline double clockMs = kNan;
inline std::map<cudaEvent_t, double> recordedMs;

// What the device says of its compute capability, unless 0.
inline int capabilityMajor = 0;

inline cudaError_t fakeGetDeviceProperties(cudaDeviceProp *device, int index) {
    const cudaError_t status = cudaGetDeviceProperties(device, index);
    if (capabilityMajor != 0) device->major = capabilityMajor;
    return status;
}

inline cudaError_t fakeEventRecord(cudaEvent_t event) {
    recordedMs[event] = clockMs;
    return cudaEventRecord(event);
}

inline cudaError_t fakeElapsedTime(float *ms, cudaEvent_t start,
                                   cudaEvent_t stop) {
    *ms = float(recordedMs.at(stop) - recordedMs.at(start));
    if (elapsedTimes.empty()) return cudaSuccess;
    *ms = elapsedTimes.front();
    elapsedTimes.erase(elapsedTimes.begin());
    return cudaSuccess;
}

// While it lives, the clock runs, and kernels with parameters P do not run: in
// their place behave(kernel, arguments...) does what it wants with the
// arguments and returns the milliseconds that the launch takes.
template <typename... P>
class FakeKernel {
   public:
    using Behaviour = std::function<double(void (*)(P...), P...)>;
    explicit FakeKernel(Behaviour behave) {
        behaviour = std::move(behave);
        clockMs = 0.0;
    }
    ~FakeKernel() {
        behaviour = nullptr;
        clockMs = kNan;
    }
    static inline Behaviour behaviour;
};

namespace fakeRunner {

template <typename... P>
struct Kernel {
    void (*function)(P...);
    auto operator()(dim3 grid, dim3 block) const {
        return [=, kernel = function](P... arguments) {
            if (FakeKernel<P...>::behaviour)
                clockMs += FakeKernel<P...>::behaviour(kernel, arguments...);
            else
                cpuRunner::kernel(kernel)(grid, block)(arguments...);
        };
    }
};

template <typename... P>
Kernel<P...> kernel(void (*function)(P...)) {
    return {function};
}

}  // namespace fakeRunner

// What follows is the lesson: its main has another name, its launches and its
// times are ours.
#define main lessonMain
#define cpuRunner fakeRunner
#undef cudaGetDeviceProperties
#define cudaGetDeviceProperties fakeGetDeviceProperties
#define cudaEventRecord fakeEventRecord
#define cudaEventElapsedTime fakeElapsedTime

#endif  // RESEARCH_TESTS_BEFORE_LESSON_H_
