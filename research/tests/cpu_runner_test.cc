// SPDX-License-Identifier: MIT
//
// The CPU runner itself: small sound kernels pass every build under every
// schedule without a word, and each planted fault is reported as what it is.
// The kernels are in planted_faults.cu.

#include "on_cpu.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace {

constexpr const char *kSource = "research/tests/planted_faults.cu";
constexpr const char *kFirstLines =
    "These are the CPU's answers: no time is measured, and nothing of it may "
    "be published.\n"
    "nan stands where a time would; sizes are reduced, whatever the labels "
    "say.\n";

// The kernels as built for the runner's build plain, asan or tsan, once.
const std::filesystem::path &planted(const std::string &build) {
    static const TempDir dir;
    static std::map<std::string, std::filesystem::path> programs;
    std::filesystem::path &program = programs[build];
    if (program.empty()) {
        program = dir.path() / build;
        setenv("REDUCE", "no", 1);
        const Outcome built = buildForCpu(build, kSource, program);
        unsetenv("REDUCE");
        EXPECT_EQ(built.status, 0) << built.err;
    }
    return program;
}

class SoundKernel : public testing::TestWithParam<const char *> {};

TEST_P(SoundKernel, PassesSilentlyEverywhere) {
    for (const char *build : {"plain", "asan", "tsan"})
        for (const char *schedule : {"forward", "reverse", "1"}) {
            SCOPED_TRACE(std::string(build) + " " + schedule);
            const Outcome outcome =
                runOnCpu(planted(build), schedule, GetParam());
            EXPECT_EQ(outcome.status, 0);
            EXPECT_EQ(outcome.err, "");
            EXPECT_EQ(outcome.out, kFirstLines);
        }
}

INSTANTIATE_TEST_SUITE_P(Runner, SoundKernel,
                         testing::Values("neighbour", "warp-neighbour", "count",
                                         "ring", "bulk", "shuffles",
                                         "last-block", "message", "dimensions",
                                         "fresh-memory", "bad-launch",
                                         "copy-direction", "copy-size", "time",
                                         "host-static"));

// Runs a planted fault and expects status 1 and a line on stderr that matches.
void expectReport(const std::string &build, const std::string &schedule,
                  const std::string &fault, const std::string &what) {
    SCOPED_TRACE(fault + " " + build + " " + schedule);
    const Outcome outcome = runOnCpu(planted(build), schedule, fault);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(lineWith(outcome.err, what), "") << outcome.err;
}

// The line of planted_faults.cu in which text stands, as reports name it.
std::string lineOf(const std::string &text) {
    std::istringstream source(readFile(kSource));
    std::string line;
    for (int number = 1; std::getline(source, line); ++number)
        if (line.find(text) != std::string::npos) return std::to_string(number);
    ADD_FAILURE() << kSource << " does not hold " << text;
    return "";
}

TEST(Runner, ReportsARaceInABlock) {
    for (const char *schedule : {"forward", "reverse", "1", "2"})
        expectReport("plain", schedule, "race", "FAILED: .* got -nan");
    expectReport("tsan", "forward", "race", "data race .* in .*neighbour");
}

TEST(Runner, ReportsARaceInAWarp) {
    expectReport("plain", "reverse", "warp-race", "FAILED: .* got -nan");
    expectReport("tsan", "forward", "warp-race",
                 "data race .* in .*warpNeighbour");
}

TEST(Runner, ReportsARaceBetweenBlocks) {
    expectReport("tsan", "forward", "block-race", "data race .* in .*count");
    expectReport("tsan", "1", "block-race", "data race .* in .*count");
}

TEST(Runner, ReportsAMissingFence) {
    expectReport("tsan", "forward", "no-fence", "data race .* in .*lastBlock");
}

TEST(Runner, ReportsAFenceThatComesTooEarly) {
    for (const char *schedule : {"forward", "reverse", "1"})
        expectReport("tsan", schedule, "fence-too-early",
                     "data race .* in .*message");
}

TEST(Runner, ShowsABufferHandedBackTooEarlyUnderSomeSeed) {
    int wrong = 0;
    for (int seed = 1; seed <= 10; ++seed) {
        const Outcome outcome =
            runOnCpu(planted("plain"), std::to_string(seed), "ring-early");
        wrong += lineWith(outcome.err, "FAILED: ") != "";
    }
    EXPECT_GT(wrong, 0);
    expectReport("tsan", "forward", "ring-early", "data race .* in .*ring");
}

TEST(Runner, LandsBulkCopiesLate) {
    expectReport("plain", "forward", "bulk-does-not-wait",
                 "bulk.*ended before its bulk copies had landed");
    const std::string deadlock =
        "bulk.*deadlock: 128 threads at planted_faults.cu:" +
        lineOf("filled.wait_parity(");
    for (const char *schedule : {"forward", "reverse", "1"})
        expectReport("plain", schedule, "bulk-too-many-bytes", deadlock);
    // A barrier that expects no bytes lets the threads go before they land.
    for (const char *schedule : {"forward", "reverse", "1"})
        expectReport("plain", schedule, "bulk-no-bytes",
                     "FAILED: |bulk.*(deadlock|had landed)");
}

TEST(Runner, ShowsABulkCopyIntoABufferThatIsStillRead) {
    int wrong = 0;
    for (int seed = 1; seed <= 10; ++seed)
        wrong +=
            runOnCpu(planted("plain"), std::to_string(seed), "bulk-no-barrier")
                .status != 0;
    EXPECT_GT(wrong, 0);
    for (const char *schedule : {"forward", "1"})
        expectReport("tsan", schedule, "bulk-no-barrier", "data race");
}

// Whoever reads and hands back without a fence of the asynchronous proxy gets
// the right answer on the CPU; ThreadSanitizer tells.
TEST(Runner, ReportsAMissingProxyFence) {
    for (const char *fault : {"bulk-no-fence", "bulk-no-first-fence"})
        for (const char *schedule : {"forward", "reverse", "1"}) {
            EXPECT_EQ(runOnCpu(planted("plain"), schedule, fault).status, 0);
            expectReport("tsan", schedule, fault, "data race");
        }
}

TEST(Runner, RefusesBulkCopiesThatTheHardwareWould) {
    expectReport("plain", "forward", "bulk-unaligned",
                 "bulk.*must be multiples of 16");
    expectReport("asan", "forward", "bulk-past-input", "heap-buffer-overflow");
}

TEST(Runner, ReportsADeadlockWithTheWaitingLines) {
    const std::string where =
        "ring.*, block [0-9]: deadlock: 64 threads at planted_faults.cu:" +
        lineOf("ready.wait(") +
        ", 64 threads at planted_faults.cu:" + lineOf("filled.wait(") +
        ", 0 threads at the end of the kernel";
    for (const char *build : {"plain", "asan", "tsan"})
        for (const char *schedule : {"forward", "reverse", "1"})
            expectReport(build, schedule, "ring-deadlock", where);
    const std::string parity =
        "waitForNobody, block [0-9]: deadlock: 128 threads at "
        "planted_faults.cu:" +
        lineOf("never.wait_parity(");
    for (const char *schedule : {"forward", "reverse", "1", "2"})
        expectReport("plain", schedule, "parity-deadlock", parity);
}

TEST(Runner, ReportsALoopThatSpinsForever) {
    const std::string where =
        "spin, block [0-9]: deadlock: 128 threads at planted_faults.cu:" +
        lineOf("while (*static_cast");
    expectReport("plain", "forward", "spin", where);
    expectReport("plain", "1", "spin", where);
}

TEST(Runner, ReportsADivergentBarrier) {
    for (const char *build : {"plain", "asan", "tsan"}) {
        expectReport(build, "forward", "divergent-branches",
                     "divergentBranches, block 0: divergent barrier: thread 0 "
                     "at __syncthreads in line [0-9]+, thread 64 in line");
        expectReport(build, "reverse", "divergent-return",
                     "divergentReturn, block 4: divergent barrier: 127 "
                     "threads at __syncthreads in line [0-9]+, 1 thread at "
                     "the end of the kernel");
    }
}

TEST(Runner, ReportsAnAccessOutOfBounds) {
    expectReport("asan", "forward", "past-global",
                 "heap-buffer-overflow .* in pastGlobal");
    expectReport("asan", "1", "past-shared", "index 128 out of bounds");
}

TEST(Runner, ReportsASharedReadBeforeAnyStore) {
    for (const char *build : {"plain", "asan", "tsan"})
        expectReport(build, "forward", "uninitialised", "got -nan, want 127");
    for (const char *kernel :
         {"", "-static", "-unnamed", "-named", "-template"})
        for (const char *schedule : {"forward", "reverse", "1"})
            expectReport("plain", schedule,
                         std::string("uninitialised") + kernel,
                         "got -nan, want 127");
}

TEST(Runner, ReportsWhatIsNotFreed) {
    expectReport("plain", "forward", "leak", "not freed at the end");
}

TEST(Runner, RefusesAnUnknownSchedule) {
    for (const char *schedule : {"backward", "1x", "-"})
        expectReport("plain", schedule, "count", "set it to forward, reverse");
}

// Two seeds run blocks and threads in different orders; one seed, always alike.
TEST(Runner, ASeedDecidesTheOrder) {
    std::set<std::string> reports;
    for (const char *seed : {"1", "2", "3", "1", "2", "3"})
        reports.insert(
            runOnCpu(planted("plain"), seed, "divergent-branches").err);
    EXPECT_EQ(reports.size(), 3u);
    reports.clear();
    for (int again = 0; again < 5; ++again)
        reports.insert(runOnCpu(planted("plain"), "2", "ring-early").err);
    EXPECT_EQ(reports.size(), 1u);
}

// Builds a few lines as a lesson and returns what came of it.
Outcome buildLines(const std::string &lines) {
    const TempDir dir;
    writeFile(dir.path() / "lines.cu", lines);
    return run("REDUCE=no research/cpu_runner/build.sh plain " +
               quoted(dir.path() / "lines.cu") + " " +
               quoted(dir.path() / "lines"));
}

TEST(Build, LinksOnlyRuntimeCallsThatTheRunnerDefines) {
    EXPECT_EQ(buildLines("int main() { return cudaGetLastError(); }\n").status,
              0);
    const Outcome outcome =
        buildLines("int main() { return cudaDeviceReset(); }\n");
    EXPECT_NE(outcome.status, 0);
    EXPECT_NE(lineWith(outcome.err, "undefined reference.*cudaDeviceReset"), "")
        << outcome.err;
}

TEST(Build, SaysWhatIsMissing) {
    const std::string build = "research/cpu_runner/build.sh ";
    for (const auto &[command, what] : std::map<std::string, std::string>{
             {build + "fast", "must be plain, asan or tsan"},
             {"CXX=nothing " + build + "plain", "no C\\+\\+ compiler nothing"},
             {"NVCC=nothing " + build + "plain",
              "no CUDA compiler nothing: install"},
             {"TMPDIR=/nonexistent " + build + "plain",
              "names no include folder; it says: .*/nonexistent"},
             {build + "plain none.cu build/none", "none.cu cannot be read"},
             {build + "plain atomics/atomics.cu", "name the program"}}) {
        const Outcome outcome = run(command);
        EXPECT_EQ(outcome.status, 1) << command;
        EXPECT_NE(lineWith(outcome.err, what), "") << outcome.err;
    }
}

TEST(Reduce, AppliesEveryCommandOrSaysWhichDoesNot) {
    const std::string reduce = "research/reduced/reduce.sh atomics/atomics.cu ";
    EXPECT_NE(lineWith(run(reduce).out, "kMaxElems = 2007;"), "");
    EXPECT_NE(lineWith(run(reduce + "s/2007/2008/").out, "kMaxElems = 2008;"),
              "");
    for (const char *bad : {"s/no-such-word/x/", "s/", "'/^$/d'"}) {
        const Outcome outcome = run(reduce + bad);
        EXPECT_EQ(outcome.status, 1) << bad;
        EXPECT_EQ(outcome.out, "") << bad;
        EXPECT_NE(lineWith(outcome.err, "^reduce.sh: the expression: "), "")
            << outcome.err;
    }
}

// Without the list of knobs, no command may fail to apply: what lets a turned
// knob be must not let a command go stale.
TEST(Reduce, AppliesEveryCommandToTheLessonsAsTheyAre) {
    const TempDir dir;
    std::filesystem::copy("research/reduced", dir.path() / "reduced");
    ASSERT_FALSE(lessons().empty());
    for (const std::string &lesson : lessons()) {
        const Outcome outcome = run(quoted(dir.path() / "reduced/reduce.sh") +
                                    " " + lesson + ".cu");
        EXPECT_EQ(outcome.status, 0) << outcome.err;
    }
}

TEST(Reduce, LeavesTheKnobsOnceTheReaderTurnedOneAndNoOtherConstant) {
    const TempDir dir;
    const std::filesystem::path lesson = dir.path() / "sum_ladder.cu";
    const auto reduce = [&](const std::string &expression) {
        return run("sed '" + expression + "' atomics/sum_ladder.cu >" +
                   quoted(lesson) + " && research/reduced/reduce.sh " +
                   quoted(lesson));
    };
    for (const char *value : {"2", "4"}) {
        const Outcome kept = reduce("s/kLoadsInFlight = 8;/kLoadsInFlight = " +
                                    std::string(value) + ";/");
        EXPECT_EQ(kept.status, 0) << kept.err;
        EXPECT_NE(lineWith(kept.out, std::string("kLoadsInFlight = ") + value),
                  "");
        EXPECT_NE(lineWith(kept.out, "kBlocksPerSm = 8;"), "");
        EXPECT_NE(lineWith(kept.out, "kThreadsPerBlock = 64;"), "");
    }
    for (const char *other :
         {"s/kSamples = 7/kSamples = 5/", "s/kLoadsInFlight/kLoadsAtOnce/"}) {
        const Outcome outcome = reduce(other);
        EXPECT_EQ(outcome.status, 1) << other;
        EXPECT_NE(lineWith(outcome.err, "no longer applies"), "")
            << outcome.err;
    }
}

// Some toolchains link the C++ library statically; the runner must then not
// define what one of its members defines beside what a program needs.
TEST(Runner, LinksWithAStaticLibrary) {
    const TempDir dir;
    writeFile(dir.path() / "a.cc",
              "#include <chrono>\n#include <string>\n"
              "std::string now() {\n"
              "    return std::to_string(std::chrono::system_clock::now()"
              ".time_since_epoch().count() +\n"
              "        std::chrono::steady_clock::now()"
              ".time_since_epoch().count());\n}\n"
              "int main() { static const std::string text = now();"
              " return text.empty(); }\n");
    const std::string program = quoted(dir.path() / "a");
    const Outcome built =
        run(environment("CXX", "g++") + " -static-libstdc++ -o " + program +
            " " + quoted(dir.path() / "a.cc") +
            " build/cpu_runner/cpu_runner.o -pie -T "
            "research/cpu_runner/shared.ld");
    EXPECT_EQ(built.status, 0) << built.err;
    EXPECT_EQ(run(program).status, 0);
}

}  // namespace
