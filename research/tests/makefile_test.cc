// SPDX-License-Identifier: MIT
//
// The Makefile in a copy of the tree, with a stand-in for nvcc: what it builds
// lessons for, when it builds them again, and what it says when it cannot.

#include <gtest/gtest.h>

#include "shell.h"

namespace {

namespace fs = std::filesystem;

class Makefile : public testing::Test {
   protected:
    Makefile() {
        for (const char *name :
             {"Makefile", "atomics", "barrier_pipeline", "research/claims",
              "research/gate", "research/peers", "research/run.sh",
              "research/knobs.txt"}) {
            fs::create_directories((root() / name).parent_path());
            fs::copy(name, root() / name, fs::copy_options::recursive);
        }
        tool(
            "nvcc",
            "while [ $# -gt 0 ]; do case $1 in -o) out=$2;; esac; shift; done\n"
            "cp '" +
                (dir_.path() / "program").string() +
                "' \"$out\" && chmod +x \"$out\"\n");
        program("exit 0\n");
        tool("nvidia-smi", "exit 9\n");
    }

    fs::path root() const { return dir_.path() / "a tree"; }
    void tool(const std::string &name, const std::string &body) {
        const fs::path file = dir_.path() / "bin" / name;
        writeFile(file, "#!/bin/sh\n" + body);
        fs::permissions(file, fs::perms::owner_all);
    }
    // What every lesson does when it runs.
    void program(const std::string &body) {
        writeFile(dir_.path() / "program", "#!/bin/sh\n" + body);
    }
    Outcome make(const std::string &arguments) {
        return run("unset NVCC NVCCFLAGS ARCH MAKEFLAGS MAKELEVEL; PATH=" +
                   quoted(dir_.path() / "bin") +
                   ":$PATH; export PATH; timeout 60 make -C " + quoted(root()) +
                   " --no-print-directory " + arguments);
    }
    TempDir dir_;
};

bool holds(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

TEST_F(Makefile, BuildsForTheGpuItFindsButNoOlderThanALessonNeeds) {
    EXPECT_TRUE(holds(make("atomics").out, "-arch=sm_75 -o build/atomics"));
    EXPECT_TRUE(holds(make("barrier_pipeline").out, "-arch=sm_80"));
    tool("nvidia-smi", "echo 7.5; echo 9.0\n");
    EXPECT_TRUE(holds(make("-n -B atomics").out, "-arch=sm_75"));
    EXPECT_TRUE(holds(make("-n -B barrier_pipeline").out, "-arch=sm_80"));
    tool("nvidia-smi", "echo 12.0\n");
    EXPECT_TRUE(holds(make("atomics").out, "-arch=sm_120"));
    EXPECT_TRUE(holds(make("barrier_pipeline").out, "-arch=sm_120"));
    EXPECT_TRUE(holds(make("atomics ARCH=sm_86").out, "-arch=sm_86"));
}

TEST_F(Makefile, BuildsAgainWhenSourceOrFlagsChangedAndOnlyThen) {
    EXPECT_TRUE(holds(make("-j2").out, "-o build/atomics"));
    EXPECT_EQ(make("").out, "");
    EXPECT_TRUE(holds(make("NVCCFLAGS=-g").out, "\"nvcc\" -g -arch=sm_75"));
    EXPECT_TRUE(holds(make("").out, "\"nvcc\" -std=c++17 -O3 -arch=sm_75"));
    EXPECT_EQ(make("").out, "");
    EXPECT_EQ(
        run("touch -d '+2 seconds' " + quoted(root() / "atomics/atomics.cu"))
            .status,
        0);
    EXPECT_TRUE(holds(make("").out, "-o build/atomics"));
    EXPECT_FALSE(holds(make("").out, "-o build/barrier_pipeline"));
}

TEST_F(Makefile, TakesACompilerWhosePathHasASpace) {
    const std::string compiler =
        "NVCC=" + quoted(dir_.path() / "bin/nvcc") + " ";
    EXPECT_EQ(make(compiler + "all").status, 0);
    EXPECT_TRUE(fs::exists(root() / "build/atomics"));
    EXPECT_EQ(make(compiler + "ptx-atomics").status, 0);
    EXPECT_TRUE(fs::exists(root() / "build/atomics.ptx"));
}

TEST_F(Makefile, SaysHowEachRunEnded) {
    const Outcome passed = make("run");
    EXPECT_EQ(passed.status, 0) << passed.err;
    EXPECT_TRUE(holds(passed.out, "atomics: passed\n"));
    EXPECT_TRUE(holds(passed.out, "barrier_pipeline: passed\n"));
    program("exit 77\n");
    EXPECT_EQ(make("run").status, 0);
    EXPECT_TRUE(holds(make("run-atomics").out, "atomics: passed"))
        << "not built again";
    EXPECT_TRUE(holds(make("-B run").out, "barrier_pipeline: skipped"));
    program("echo 'FAILED: tiny' >&2; exit 1\n");
    const Outcome failed = make("-B run");
    EXPECT_NE(failed.status, 0);
    EXPECT_TRUE(holds(failed.out, "atomics: failed (exit 1)"));
    EXPECT_TRUE(holds(failed.out, "barrier_pipeline: failed (exit 1)"));
    EXPECT_TRUE(holds(failed.err, "FAILED: tiny"));
    EXPECT_FALSE(holds(failed.err, "run-cpu"));
}

TEST_F(Makefile, SaysWhyARunFailedOnAFullDiskToo) {
    program("echo 'The results could not be written.' >&2; exit 1\n");
    EXPECT_EQ(make("atomics").status, 0);
    const Outcome ran =
        run("(trap '' XFSZ; ulimit -f 0; " +
            quoted(root() / "research/run.sh") + " atomics 2>&1) | cat");
    EXPECT_EQ(ran.out,
              "The results could not be written.\natomics: failed (exit 1)\n");
}

TEST_F(Makefile, FailsWhereItCannotSayHowARunEnded) {
    EXPECT_EQ(make("atomics").status, 0);
    EXPECT_EQ(
        run(quoted(root() / "research/run.sh") + " atomics >/dev/full").status,
        1);
}

TEST_F(Makefile, RunsNothingWithoutAName) {
    const Outcome closed =
        run(quoted(root() / "research/run.sh") + " atomics >&-");
    EXPECT_EQ(closed.status, 1);
    EXPECT_EQ(closed.err,
              "run.sh: stdout is closed: give it somewhere to write to\n");
    const Outcome outcome = run(quoted(root() / "research/run.sh"));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_TRUE(holds(outcome.err, "run.sh: name what to run")) << outcome.err;
}

TEST_F(Makefile, RunsThePeersAndBuildsThemAgainWhenALessonChanged) {
    tool("nvidia-smi", "echo 9.0\n");
    const Outcome first = make("peers");
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_TRUE(holds(first.out, "-arch=sm_90 -o build/sum_peers"));
    EXPECT_TRUE(holds(first.out, "sum_peers: passed\n"));
    EXPECT_FALSE(holds(make("peers").out, "-o build/sum_peers"));
    EXPECT_EQ(
        run("touch -d '+2 seconds' " + quoted(root() / "atomics/sum_ladder.cu"))
            .status,
        0);
    program("echo 'FAILED: tiny' >&2; exit 1\n");
    const Outcome again = make("peers");
    EXPECT_NE(again.status, 0);
    EXPECT_TRUE(holds(again.out, "-o build/sum_peers"));
    EXPECT_TRUE(holds(again.out, "sum_peers: failed (exit 1)"));
    EXPECT_NE(make("peers NVCC=nonesuch").err.find("No CUDA compiler"),
              std::string::npos);
}

TEST_F(Makefile, NamesTheWayOutWithoutAGpu) {
    program("echo 'No CUDA GPU to run on (why): do.' >&2; exit 1\n");
    const Outcome ran = make("run");
    EXPECT_NE(ran.status, 0);
    EXPECT_TRUE(holds(ran.err, "Without one, make run-cpu runs"));
}

TEST_F(Makefile, SaysWhichToolIsMissing) {
    const Outcome compiler = make("NVCC=nonesuch");
    EXPECT_NE(compiler.status, 0);
    EXPECT_TRUE(holds(compiler.err, "No CUDA compiler 'nonesuch': install"));
    const Outcome host = make("atomics NVCC_CCBIN=nonesuch");
    EXPECT_NE(host.status, 0);
    EXPECT_TRUE(holds(host.err, "No host compiler 'nonesuch' for nvcc"));
    EXPECT_EQ(make("atomics NVCCFLAGS='-ccbin elsewhere'").status, 0);
    for (const char *sound :
         {"NVCC_CCBIN=/usr/bin",
          "NVCC_CCBIN=nonesuch NVCC_PREPEND_FLAGS='-ccbin elsewhere'"})
        EXPECT_EQ(make("atomics " + std::string(sound)).status, 0) << sound;
    for (const char *source : {"shell.h", "x_test.cc"})
        writeFile(root() / "research/tests" / source, "");
    for (const char *target : {"build/gate", "build/check_claims",
                               "build/tests/x_test", "cpu-builds"}) {
        const Outcome cxx = make(std::string(target) + " CXX=nonesuch");
        EXPECT_NE(cxx.status, 0) << target;
        EXPECT_TRUE(holds(cxx.err, "No C++ compiler 'nonesuch': install"))
            << target;
    }
    tool("plain", "exit 1\n");
    EXPECT_TRUE(holds(make("build/tests/x_test CXX=plain").err,
                      "No GoogleTest for plain: install"));
    const Outcome format = make("format CLANG_FORMAT=nonesuch");
    EXPECT_NE(format.status, 0);
    EXPECT_EQ(format.err.find("No clang-format 14: install"), 0u);
    if (run("command -v cuobjdump").status == 0) return;
    const Outcome sass = make("sass-atomics");
    EXPECT_NE(sass.status, 0);
    EXPECT_TRUE(holds(sass.err, "No cuobjdump: install"));
}

TEST_F(Makefile, LeavesNothingHalfWritten) {
    tool("cuobjdump", "echo half; exit 1\n");
    EXPECT_NE(make("sass-atomics").status, 0);
    EXPECT_FALSE(fs::exists(root() / "build/atomics.sass"));
    tool("nvcc", "exit 0\n");
    const Outcome ptx = make("ptx-atomics");
    EXPECT_NE(ptx.status, 0);
    EXPECT_TRUE(holds(ptx.err, "Cannot write build/atomics.ptx: is the disk"));
}

TEST_F(Makefile, SaysThatItCannotWrite) {
    fs::create_directories(root() / "build/atomics.flags");
    const Outcome made = make("atomics");
    EXPECT_NE(made.status, 0);
    EXPECT_TRUE(holds(made.err, "Cannot write build/atomics.flags: is the"));
}

TEST_F(Makefile, HasNoKnobsToRecordOfALessonWithoutAny) {
    writeFile(root() / "research/knobs.txt", "a/atomics :: k :: 1 :: 0 :: x\n");
    EXPECT_EQ(make("-n knobs-atomics").status, 0);
    EXPECT_NE(make("-n knobs-contention").status, 0);
}

TEST_F(Makefile, HelpsWithEveryTarget) {
    const std::string help = make("help").out;
    for (const char *target : {"all ",
                               "LESSON ",
                               "run ",
                               "run-LESSON ",
                               "run-cpu ",
                               "run-cpu-LESSON ",
                               "peers ",
                               "check ",
                               "evidence ",
                               "evidence-LESSON ",
                               "evidence-peers ",
                               "check-gpu ",
                               "evidence-check-gpu ",
                               "repeat ",
                               "knobs-LESSON ",
                               "ptx-LESSON ",
                               "sass-LESSON ",
                               "gate ",
                               "docs ",
                               "figures ",
                               "snippets ",
                               "format ",
                               "clean ",
                               "help "})
        EXPECT_TRUE(holds("\n" + help, std::string("\n") + target)) << target;
    for (const char *variable :
         {"NVCC,", "NVCCFLAGS,", "NVCC_CCBIN ", "ARCH,", "CXX,", "CXXFLAGS,",
          "CLANG_FORMAT\n", "LESSON is one of: atomics contention "})
        EXPECT_TRUE(holds(help, variable)) << variable;
}

TEST_F(Makefile, CleansUpAfterItself) {
    make("");
    EXPECT_TRUE(fs::exists(root() / "build/atomics"));
    EXPECT_EQ(make("clean").status, 0);
    EXPECT_FALSE(fs::exists(root() / "build"));
}

}  // namespace
