// SPDX-License-Identifier: MIT
//
// A tree with some of this repository's scripts and one lesson, tiny, and
// stand-ins for the tools that need a GPU, so that the scripts can be tested
// without one.

#ifndef RESEARCH_TESTS_STAND_INS_H_
#define RESEARCH_TESTS_STAND_INS_H_

#include <filesystem>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "shell.h"

class StandIns : public testing::Test {
   protected:
    // Copies files of the repository into the tree, and makes stand-ins for
    // nvcc and compute-sanitizer. What nvcc builds is a shell script: its
    // flags and the int constants of the source as variables, then program(). A
    // line #error does not compile.
    explicit StandIns(std::initializer_list<const char *> files) {
        for (const std::filesystem::path name : files) {
            std::filesystem::create_directories((root() / name).parent_path());
            std::filesystem::copy_file(name, root() / name);
        }
        writeFile(root() / "research/reduced/tiny.sed", "s/100/7/\n");
        tool(
            "nvcc",
            "case $1 in --version) echo 'release 12.5, V12.5.82'; exit;; esac\n"
            "flags=$*\n"
            "while [ $# -gt 1 ]; do case $1 in -o) out=$2 in=$3;; esac; shift\n"
            "done\n"
            "grep '^#error' \"$in\" >&2 && exit 1\n"
            "{ echo '#!/bin/sh'; echo \"flags='$flags'\"; sed -n 's/^constexpr "
            "int \\(.*\\) = "
            "\\(.*\\);.*/\\1=\\2/p' \"$in\"; cat " +
                quoted(dir_.path() / "program") +
                "; } >\"$out\" && chmod +x \"$out\"\n");
        tool("compute-sanitizer",
             "echo '========= ERROR SUMMARY: 0 errors'; \"$3\" >/dev/null\n");
    }

    std::filesystem::path root() const { return dir_.path() / "a tree"; }
    // A command for the PATH of the scripts.
    void tool(const std::string &name, const std::string &body) {
        const std::filesystem::path file = dir_.path() / "bin" / name;
        writeFile(file, "#!/bin/sh\n" + body);
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    }
    // What a built program does.
    void program(const std::string &body) {
        writeFile(dir_.path() / "program", body);
    }
    // Runs a command with the stand-ins before all other tools.
    Outcome runThere(const std::string &command) {
        return run(
            "PATH=" + quoted(dir_.path() / "bin") +
            ":$PATH; export PATH; unset NVCC NVCC_CCBIN "
            "NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS CUDA_VISIBLE_DEVICES; " +
            "timeout 100 " + command);
    }
    // Starts a command whose program runs a copy of sleep, BUILT/left, and ends
    // the command when that runs; nothing may go on running.
    void expectEndsAtOnce(const std::string &command) {
        program(
            "cp \"$(command -v sleep)\" \"${0%/*}/left\"\n"
            "\"${0%/*}/left\" 31\n");
        const std::string running =
            "readlink /proc/[0-9]*/exe 2>/dev/null | grep -F " +
            quoted(root() / "build");
        const Outcome ended =
            runThere("timeout 20 sh -c " +
                     ::quoted(command + " & until " + running +
                              "; do sleep 0.1; done; kill $!; wait $!"));
        EXPECT_EQ(ended.status, 1) << ended.err;
        EXPECT_EQ(ended.err, "");
        EXPECT_NE(run(running).status, 0);
        EXPECT_EQ(run("ls -d " + quoted(root() / "build") + "/*.??????").out,
                  "");
    }
    // The same on a machine that lacks a command; the stand-ins are there.
    Outcome runWithout(const std::string &missing, const std::string &command) {
        return runThere(
            "sh -c 'mkdir \"$2\"; IFS=:; for folder in $PATH; do "
            "[ \"$folder\" = \"$1\" ] || "
            "ln -s \"$folder\"/* \"$2\" 2>/dev/null; done; "
            "rm -f \"$2/$3\"; PATH=$1:$2; shift 3; "
            "exec \"$@\"' sh " +
            quoted(dir_.path() / "bin") + " " +
            quoted(dir_.path() / ("no " + missing)) + " " + missing + " " +
            command);
    }
    TempDir dir_;
};

#endif  // RESEARCH_TESTS_STAND_INS_H_
