// SPDX-License-Identifier: MIT
//
// research/check_gpu.sh, build/check_claims and research/repeat.sh with
// stand-ins for everything that needs a GPU: what counts as passed, failed or
// skipped, and that a variant that ends otherwise than it should is a failure.

#include <fstream>
#include <regex>

#include "stand_ins.h"

namespace {

// The lesson is a script that does what kFault says; kKernels is 100, and 7 in
// the reduced copy.
const char kLesson[] =
    "// Needs: compute capability 7.5 or newer, CUDA 12.5 or newer, C++17.\n"
    "// Build: nvcc -std=c++17 -O3 -arch=native -o tiny tiny.cu\n"
    "constexpr int kSize = 100;\nconstexpr int kFault = 0;\n"
    "constexpr int kSamples = 7;\n";
const char kProgram[] =
    "[ -n \"${CUDA_VISIBLE_DEVICES-7}\" ] || { "
    "echo 'No CUDA GPU to run on (hidden): do.' >&2; exit 1; }\n"
    "case $0 in */ptx) case $flags${CUDA_CACHE_DISABLE-} in\n"
    "*arch=compute_75,code=compute_75*1) ;; *) exit 3;; esac;; esac\n"
    "case $kFault in 1) echo 'FAILED: tiny' >&2; exit 1;; 2) sleep 30;;\n"
    "6) exit 1;; 7) kill -SEGV $$;; 11) kill -KILL $$;;\n"
    "10) echo 'tiny.cu:5: CUDA error: out of memory' >&2; exit 1;;\n"
    "13) mkdir \"${0%/*}/result\";;\n"
    "15) [ -z \"${UNDER_TOOL-}\" ] || { echo 'FAILED: tiny' >&2; exit 1; };;\n"
    "16) [ -z \"${UNDER_TOOL-}\" ] || { echo 'FAILED: tiny' >&2; exit 77; };;\n"
    "23) [ -z \"${UNDER_TOOL-}\" ] || exit 1;;\n"
    "24) [ -z \"${UNDER_TOOL-}\" ] || {\n"
    "echo 'tiny.cu:5: f() failed: broken (cudaErrorUnknown)' >&2; exit 1; };;\n"
    "25) [ -z \"${UNDER_TOOL-}\" ] || {\n"
    "echo 'f() failed: out of memory (cudaError)' >&2; exit 1; };;\n"
    "3) [ -z \"${UNDER_TOOL-}\" ] || exit 1;;\n"
    "17) [ -z \"${UNDER_TOOL-}\" ] || kill -SEGV $$;;\n"
    "18) echo careful >&2;; 19) echo half; exit;;\n"
    "20) mkdir \"${0%/*}/../busy\" || exit 5; sleep 0.3\n"
    "rmdir \"${0%/*}/../busy\";;\n"
    "8) [ -e \"$0.slow\" ] || { : >\"$0.slow\"; sleep 30; };; esac\n"
    "printf 'Day 0: tiny\\n\\n== device: what this ran on ==\\n"
    "gpu: NVIDIA T1000\\nsms: 14\\n\\nAll checks passed.\\n' 2>/dev/null || "
    "{ echo 'The results could not be written to stdout.' >&2; exit 1; }\n";
// Variants that end as they should.
const char kVariants[] =
    "# Variants.\n"
    "sound :: s/kSize = 7/kSize = 8/ :: holds\n"
    "told :: s/kFault = 0/kFault = 1/ :: plain: FAILED: tiny\n"
    "hangs :: s/kFault = 0/kFault = 2/ :: plain: deadlock\n"
    "reads :: s/kFault = 0/kFault = 3/ :: asan: overflow\n"
    "races :: s/kFault = 0/kFault = 4/ :: tsan: data race\n"
    "slowed :: s/kFault = 0/kFault = 15/ :: tsan: data race\n"
    "breaks :: s/kFault = 0/kFault = 24/ :: tsan: data race\n"
    "refused :: s/constexpr int kFault.*/#error would not fit/ :: compile: "
    "would not fit\n"
    "unseen :: s/kFault = 0/kFault = 5/ :: unseen: for a reason\n"
    "hosted :: s/no such text/x/ :: host: Table\n"
    "hidden :: s/kFault = 0/kFault = 5/ :: plain: FAILED: tiny\n";

class CheckGpu : public StandIns {
   protected:
    CheckGpu()
        : StandIns({"research/check_gpu.sh", "research/sanitize.sh",
                    "research/reason.sh", "research/left.sh",
                    "research/limit.sh", "research/racecheck.awk",
                    "research/reduced/reduce.sh", "evidence/capture.sh"}) {
        writeFile(root() / "tiny/tiny.cu", kLesson);
        variants(kVariants);
        writeFile(root() / "research/mutants/not-on-gpu.txt",
                  "tiny/hidden :: the stand-ins do not show it\n");
        writeFile(root() / "research/CLAIMS.md", "# Claims\n");
        claims("sum 2 passed");
        program(kProgram);
        card("7.5", "0");
        tool("compute-sanitizer",
             "if grep -q kFault=9 \"$3\" && [ ! -e \"$3.slow\" ]; then\n"
             ": >\"$3.slow\"; exit 137; fi\n"
             "grep -q kFault=12 \"$3\" && { echo 'Internal error'; exit 1; }\n"
             "grep -q kFault=14 \"$3\" && sleep 30\n"
             "n=0; case $2 in memcheck) grep -q kFault=3 \"$3\" && n=1;;\n"
             "racecheck) grep -q kFault=4 \"$3\" && n=2;; esac\n"
             "grep -q kFault=21 \"$3\" && { echo 'out of memory'; n=1; }\n"
             "[ $2 = memcheck ] || { grep -q kFault=22 \"$3\" && exit 1; }\n"
             "echo \"========= ERROR SUMMARY: $n errors\"\n"
             "UNDER_TOOL=yes \"$3\" >/dev/null\n");
    }
    void variants(const std::string &lines) {
        writeFile(root() / "research/mutants/tiny.txt", lines);
    }
    // What nvidia-smi says: a capability, and MiB in use, an expression.
    void card(const std::string &capability, const std::string &memory) {
        tool("nvidia-smi", "case \"$*\" in *compute_cap*) echo '" + capability +
                               "';; *) echo $((" + memory + "));; esac\n");
    }
    // What build/check_claims prints, and its exit status.
    void claims(const std::string &row, const std::string &status = "0") {
        const auto file = root() / "build/check_claims";
        writeFile(file, "#!/bin/sh\necho \"== sass: of $1 ==\"\necho '" + row +
                            "'\nexit " + status + "\n");
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    }
    Outcome check() {
        return runThere("env GPU_SECONDS=1 SANITIZER_SECONDS=1 " +
                        quoted(root() / "research/check_gpu.sh") +
                        " tiny/tiny.cu");
    }
    // Runs with one more or another variant, which must be the only failure.
    void expectFailure(const std::string &line, const std::string &ended) {
        variants(line + "\n");
        const Outcome outcome = check();
        EXPECT_EQ(outcome.status, 1) << line;
        EXPECT_TRUE(std::regex_search(outcome.out,
                                      std::regex("\nodd +" + ended + "\n")))
            << outcome.out;
        EXPECT_NE(outcome.out.find("\n7 passed, 1 failed, 0 skipped\n"),
                  std::string::npos)
            << outcome.out;
        EXPECT_TRUE(std::regex_search(
            outcome.err, std::regex("^tiny: odd +" + ended + ": .*\n")))
            << outcome.err;
    }
};

TEST_F(CheckGpu, SaysHowEverythingEnded) {
    const Outcome outcome = check();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const std::string row = std::string(39, ' ');
    EXPECT_EQ(std::regex_replace(outcome.out, std::regex("seconds: \\d+"),
                                 "seconds: N"),
              "What only a GPU can test\n\n"
              "== device: what this ran on ==\ngpu: NVIDIA T1000\nsms: 14\n\n"
              "== tiny: builds, sanitizers, variants ==\n"
              "native: passed\nptx: passed\nno_gpu: passed\n"
              "full_stdout: passed\nsanitizers: memcheck 0, racecheck 0, "
              "synccheck 0, initcheck 0\n"
              "variant" +
                  row.substr(1) + "ended\nsound" + row + " passes\ntold" + row +
                  "  program\nhangs" + row + " time-limit\nreads" + row +
                  " memcheck\nraces" + row + " racecheck\nslowed" + row +
                  "program-under-memcheck\nbreaks" + row +
                  "program-under-memcheck\nrefused" + row.substr(1) +
                  "compiler\nunseen" + row + "not-asked\nhosted" + row +
                  "not-asked\nhidden" + row +
                  "not-asked\n== sass: of sm_75 ==\nsum 2 passed\n\n"
                  "== left: behind all these runs ==\nprocesses: 0\n"
                  "card: passed\n\n"
                  "== total: all of the above ==\n"
                  "passed: 15\nfailed: 0\nskipped: 0\nnot_asked: 3\n"
                  "asked_again: 1\ntime_limit_s: 1\nseconds: N\n\n"
                  "15 passed, 0 failed, 0 skipped\n");
    for (const auto &entry :
         std::filesystem::directory_iterator(root() / "build"))
        EXPECT_TRUE(entry.path().filename() == "check_claims" ||
                    entry.path().filename() == "capture.lock");
}

TEST_F(CheckGpu, IsRecordedWhenNothingFailed) {
    tool("nvidia-smi",
         "case \"$*\" in *uuid*) echo "
         "'GPU-1, NVIDIA T1000, 7.5, [N/A], Disabled, 550.54';;\n"
         "*compute_cap*) echo 7.5;; *) echo 0;; esac\n");
    writeFile(root() / "research/claims/check_claims.cc", "int main() {}\n");
    for (const char *source :
         {"claims/other.cu", "gate/read.cc", "gate/read.h", "tests/shell.h"})
        writeFile(root() / "research" / source, "int a;\n");
    variants("# None.\n");
    const std::string capture =
        ::quoted(root() / "evidence/capture.sh") + " check-gpu tiny/tiny.cu";
    const Outcome recorded = runThere(capture);
    ASSERT_EQ(recorded.status, 0) << recorded.err;
    const std::string text =
        readFile(root() / recorded.out.substr(0, recorded.out.size() - 1));
    // Every source that takes part.
    std::string sources = "lesson: research/check_gpu.sh\nfingerprint: \n";
    for (const char *source :
         {"tiny/tiny.cu", "research/sanitize.sh", "research/limit.sh",
          "research/left.sh", "research/racecheck.awk", "research/CLAIMS.md",
          "research/gate/read.cc", "research/gate/read.h",
          "research/tests/shell.h", "evidence/capture.sh",
          "research/claims/check_claims.cc", "research/claims/other.cu",
          "research/mutants/not-on-gpu.txt", "research/mutants/tiny.txt",
          "research/reduced/reduce.sh", "research/reduced/tiny.sed"})
        sources += "fingerprint:  " + std::string(source) + "\n";
    EXPECT_EQ(std::regex_replace(text.substr(0, text.find("build: ")),
                                 std::regex("[0-9a-f]{64}"), ""),
              sources);
    EXPECT_TRUE(std::regex_search(
        text, std::regex("\nbuild: nvcc .* -o LESSON LESSON\\.cu\n")))
        << text;
    claims("sum 2 failed", "1");
    const Outcome refused = runThere(capture);
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.err.find("exits 1 and nothing is recorded"),
              std::string::npos)
        << refused.err;
}

TEST_F(CheckGpu, FailsWhereAVariantEndsOtherwise) {
    expectFailure("odd :: s/kFault = 0/kFault = 5/ :: plain: x", "survives");
    expectFailure("odd :: s/kFault = 0/kFault = 1/ :: holds", "program");
    expectFailure("odd :: s/kFault = 0/kFault = 2/ :: holds", "time-limit");
    expectFailure("odd :: s/kFault = 0/kFault = 6/ :: plain: x", "silent");
    expectFailure("odd :: s/kFault = 0/kFault = 7/ :: asan: x", "exit-139");
    expectFailure("odd :: s/kFault = 0/kFault = 10/ :: plain: x", "no-card");
    expectFailure("odd :: s/kFault = 0/kFault = 11/ :: plain: x", "exit-137");
    expectFailure("odd :: s/kFault = 0/kFault = 12/ :: asan: x", "no-tool");
    expectFailure("odd :: s/kFault = 0/kFault = 14/ :: asan: x",
                  "memcheck-limit");
    expectFailure("odd :: s/kFault = 0/kFault = 16/ :: asan: x",
                  "memcheck-exit");
    expectFailure("odd :: s/kFault = 0/kFault = 17/ :: asan: x",
                  "memcheck-exit");
    expectFailure("odd :: s/kFault = 0/kFault = 23/ :: asan: x",
                  "memcheck-exit");
    expectFailure("odd :: s/kFault = 0/kFault = 18/ :: holds", "incomplete");
    expectFailure("odd :: s/kFault = 0/kFault = 19/ :: holds", "incomplete");
    expectFailure("odd :: s/kFault = 0/kFault = 21/ :: asan: x", "no-card");
    expectFailure("odd :: s/kFault = 0/kFault = 22/ :: asan: x", "no-tool");
    expectFailure("odd :: s/kFault = 0/kFault = 25/ :: asan: x", "no-card");
    expectFailure("odd :: s/kSize = 7/kSize = 8/ :: compile: x", "survives");
    expectFailure("odd :: s/constexpr int kF.*/#error other/ :: compile: x",
                  "compiler");
    expectFailure("odd :: s/constexpr int kF.*/#error x/ :: plain: x",
                  "compiler");
}

// What takes too long beside others may be sound: it is asked again, alone.
TEST_F(CheckGpu, AsksAgainWhatTookTooLong) {
    expectFailure("odd :: s/kFault = 0/kFault = 8/ :: plain: x", "survives");
    expectFailure("odd :: s/kFault = 0/kFault = 9/ :: asan: x", "survives");
    variants("slow :: s/kFault = 0/kFault = 8/ :: holds\n");
    EXPECT_EQ(check().status, 0);
}

TEST_F(CheckGpu, FailsWhereAVerdictIsLost) {
    variants("odd :: s/kFault = 0/kFault = 13/ :: holds\n");
    const Outcome outcome = check();
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.out.find("\nline 1: lost\n"), std::string::npos);
    EXPECT_NE(outcome.out.find("\n7 passed, 1 failed, 0 skipped\n"),
              std::string::npos);
    EXPECT_NE(outcome.err.find("tiny: line 1: the verdict was lost: is the"),
              std::string::npos);
    variants("# None.\n");
    const Outcome unsaid = runThere(
        "sh -c " + ::quoted(::quoted(root() / "research/check_gpu.sh") +
                            " tiny/tiny.cu >/dev/full"));
    EXPECT_EQ(unsaid.status, 1);
    EXPECT_EQ(unsaid.err,
              "check_gpu.sh: cannot write to stdout: is it closed, or the "
              "disk full?\n");
}

TEST_F(CheckGpu, FailsWhereAVariantDoesNotApply) {
    variants("odd :: s/nonesuch// :: plain: x\n");
    const Outcome outcome = check();
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("does-not-apply: reduce.sh: the expression: the "
                               "command no longer applies"),
              std::string::npos);
    EXPECT_NE(outcome.out.find("does-not-apply\n"), std::string::npos);
}

TEST_F(CheckGpu, FailsWhereTheLessonDoes) {
    variants("# None.\n");
    const auto failing = [&](const std::string &body) {
        program(body + kProgram);
        const Outcome outcome = check();
        EXPECT_EQ(outcome.status, 1);
        EXPECT_NE(outcome.err, "");
        return outcome.out;
    };
    const auto has = [](const std::string &text, const std::string &part) {
        return text.find("\n" + part + "\n") != std::string::npos;
    };
    EXPECT_TRUE(
        has(failing("case $0 in */native) exit 3;; esac\n"), "native: failed"));
    EXPECT_TRUE(
        has(failing("case $0 in */ptx) exit 0;; esac\n"), "ptx: failed"));
    EXPECT_TRUE(has(failing("unset CUDA_VISIBLE_DEVICES\n"), "no_gpu: failed"));
    EXPECT_TRUE(has(failing("exec 1>/dev/null\n"), "full_stdout: failed"));
    program(kProgram);
    tool("compute-sanitizer", "echo '========= ERROR SUMMARY: 1 errors'\n");
    EXPECT_TRUE(has(check().out, "sanitizers: failed"));
    writeFile(root() / "research/reduced/tiny.sed", "s/nonesuch//\n");
    EXPECT_NE(check().err.find("tiny: builds: failed: reduce.sh: "),
              std::string::npos);
    writeFile(root() / "research/reduced/tiny.sed", "s/100/7/\n");
    tool("nvcc", "exit 1\n");
    EXPECT_NE(check().err.find("tiny: builds: failed: no reason given\n"),
              std::string::npos);
    tool("nvcc", "echo warning >&2; echo 'error: broken' >&2; exit 1\n");
    EXPECT_NE(check().err.find("tiny: builds: failed: error: broken"),
              std::string::npos);
}

TEST_F(CheckGpu, CountsClaimsAndWhatIsLeft) {
    tool("sleep", "");
    variants("# None.\n");
    claims("sum 2 skipped");
    EXPECT_NE(check().out.find("\n6 passed, 0 failed, 1 skipped\n"),
              std::string::npos);
    claims("nothing", "1");
    EXPECT_NE(check().out.find("\n6 passed, 1 failed, 0 skipped\n"),
              std::string::npos);
    claims("sum 2 failed", "1");
    EXPECT_NE(check().out.find("\n6 passed, 1 failed, 0 skipped\n"),
              std::string::npos);
    claims("sum 2 passed");
    card("7.5", "$(ls -d build/check-gpu.*/tiny.0 2>/dev/null | wc -l) * 65");
    const Outcome full = check();
    EXPECT_NE(full.out.find("card: failed"), std::string::npos) << full.out;
    EXPECT_NE(
        full.err.find(
            "left: 0 processes; MiB in use on the card: 0 before, 65 now"),
        std::string::npos);
}

TEST_F(CheckGpu, ComparesMemoryInUseWhereTheDriverTells) {
    variants("# None.\n");
    tool("sleep", "");
    const std::string kSmi =
        "case \"$*\" in *compute_cap*) echo 7.5; exit;; esac\n";
    tool("nvidia-smi", kSmi + "echo '[N/A]'\n");
    const Outcome blind = check();
    EXPECT_EQ(blind.status, 0) << blind.err;
    tool("nvidia-smi", kSmi +
                           "echo 7\nfor job in build/check-gpu.*/tiny.0; do\n"
                           "[ ! -e \"$job\" ] || exit 9; done\n");
    const Outcome lost = check();
    EXPECT_EQ(lost.status, 1);
    EXPECT_NE(lost.out.find("card: failed"), std::string::npos) << lost.out;
    EXPECT_NE(lost.err.find("7 before, unknown now"), std::string::npos);
}

TEST_F(CheckGpu, EndsItsProgramsWhereItIsEnded) {
    expectEndsAtOnce(quoted(root() / "research/check_gpu.sh") +
                     " tiny/tiny.cu");
}

TEST_F(CheckGpu, RunsBesideNoCapture) {
    const Outcome outcome =
        runThere("flock " + ::quoted(root() / "build/capture.lock") + " " +
                 ::quoted(root() / "research/check_gpu.sh") + " tiny/tiny.cu");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err.find("check_gpu.sh: a capture, or another"), 0u)
        << outcome.err;
}

TEST_F(CheckGpu, FindsAProcessThatWasLeft) {
    variants("# None.\n");
    program(
        "cp \"/bin/sleep\" \"${0%/*}/left\"\n"
        "setsid \"${0%/*}/left\" 14 >/dev/null 2>&1 &\n" +
        std::string(kProgram));
    tool("sleep", "");
    std::filesystem::create_directory_symlink(root(), dir_.path() / "link");
    const Outcome outcome = runThere(
        ::quoted(dir_.path() / "link/research/check_gpu.sh") + " tiny/tiny.cu");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.out.find("card: failed"), std::string::npos);
    EXPECT_EQ(outcome.out.find("processes: 0"), std::string::npos);
}

// A find that lists no programs finds none that were left, either.
TEST_F(CheckGpu, FailsWhereItCannotTellWhatIsLeft) {
    variants("# None.\n");
    tool("sleep", "");
    tool("find", "case \"$*\" in /proc*) exit 1;; esac\n");
    const Outcome outcome = check();
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.out.find("processes: unknown\ncard: failed"),
              std::string::npos)
        << outcome.out;
}

TEST_F(CheckGpu, RunsNoMoreAtATimeThanItMay) {
    variants(
        "one :: s/kFault = 0/kFault = 20/ :: holds\n"
        "two :: s/kFault = 0/kFault = 20/ :: holds\n"
        "three :: s/kFault = 0/kFault = 20/ :: holds\n");
    const Outcome outcome =
        runThere("env GPU_JOBS=1 " + quoted(root() / "research/check_gpu.sh") +
                 " tiny/tiny.cu");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(CheckGpu, SkipsNoToolThatBreaksDown) {
    variants("# None.\n");
    const auto sanitizers = [&](const std::string &body) {
        tool("compute-sanitizer", body);
        const Outcome outcome = check();
        EXPECT_EQ(outcome.status, 1);
        EXPECT_NE(outcome.out.find("\nsanitizers: failed\n"), std::string::npos)
            << outcome.out;
        return outcome.err;
    };
    EXPECT_NE(sanitizers("kill -KILL $$\n")
                  .find("memcheck breaks down, exit status 137"),
              std::string::npos);
    EXPECT_NE(sanitizers("[ $2 = memcheck ] || exit 1\n"
                         "echo '========= ERROR SUMMARY: 0 errors'\n")
                  .find("racecheck breaks down, exit status 1"),
              std::string::npos);
}

TEST_F(CheckGpu, SkipsWhatTheMachineLacks) {
    tool("compute-sanitizer", "echo 'Error: not supported'; exit 1\n");
    const Outcome blind = check();
    EXPECT_EQ(blind.status, 0) << blind.err;
    EXPECT_NE(blind.out.find("sanitizers: skipped, compute-sanitizer --tool "
                             "memcheck cannot run here: Error: not supported"),
              std::string::npos);
    EXPECT_TRUE(std::regex_search(blind.out, std::regex("races +no-tool\n")));
    EXPECT_NE(blind.out.find("\n10 passed, 0 failed, 5 skipped\n"),
              std::string::npos)
        << blind.out;
    card("7.0", "0");
    const Outcome old = check();
    EXPECT_EQ(old.status, 0) << old.err;
    EXPECT_NE(old.out.find("builds: skipped, it needs a newer GPU than this"),
              std::string::npos);
    EXPECT_TRUE(std::regex_search(old.out, std::regex("told +no-hardware\n")));
}

TEST_F(CheckGpu, NeedsAGpuAndItsTools) {
    tool("nvidia-smi", "exit 9\n");
    EXPECT_NE(check().err.find("nvidia-smi finds no GPU 0: make check is what"),
              std::string::npos);
    tool("nvidia-smi", "echo No devices were found; exit 6\n");
    EXPECT_NE(check().err.find("nvidia-smi finds no GPU 0: make check is what"),
              std::string::npos);
    tool("nvidia-smi", "echo No devices were found\n");
    EXPECT_NE(check().err.find("no compute capability of GPU 0, but 'No dev"),
              std::string::npos);
    card("7.5", "0");
    const std::string script = ::quoted(root() / "research/check_gpu.sh");
    EXPECT_EQ(runWithout("nproc", script + " tiny/tiny.cu").err,
              "check_gpu.sh: no nproc: install it (it is part of coreutils)\n");
    for (const char *setting :
         {"GPU_SECONDS=0", "GPU_SECONDS=1.5", "GPU_JOBS=0", "GPU_JOBS=-1",
          "SANITIZER_SECONDS=one"}) {
        const Outcome set = runThere("env " + std::string(setting) + " " +
                                     script + " tiny/tiny.cu");
        EXPECT_EQ(set.status, 1) << setting;
        EXPECT_EQ(set.err.find("check_gpu.sh: GPU_JOBS, GPU_SECONDS and SANIT"),
                  0u)
            << set.err;
    }
    std::filesystem::remove(root() / "research/mutants/tiny.txt");
    EXPECT_EQ(check().err.find(
                  "check_gpu.sh: there is no research/mutants/tiny.txt: list"),
              0u);
    variants("# None.\n");
    std::filesystem::remove(dir_.path() / "bin/nvidia-smi");
    const Outcome bare =
        runWithout("nvidia-smi", ::quoted(root() / "research/check_gpu.sh") +
                                     " tiny/tiny.cu");
    EXPECT_EQ(bare.status, 1);
    EXPECT_EQ(bare.err.find("check_gpu.sh: no nvidia-smi, which comes with"),
              0u)
        << bare.err;
    const Outcome sanitize =
        runThere(::quoted(root() / "research/sanitize.sh"));
    EXPECT_EQ(sanitize.status, 1);
    EXPECT_EQ(sanitize.err.find("usage: research/sanitize.sh LESSON.cu"), 0u)
        << sanitize.err;
    const Outcome outcome =
        runThere("env NVCC=nonesuch " + script + " tiny/tiny.cu");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err.find("check_gpu.sh: no CUDA compiler nonesuch: "), 0u)
        << outcome.err;
    std::filesystem::remove(root() / "build/check_claims");
    EXPECT_NE(check().err.find("no build/check_claims: run make check-gpu"),
              std::string::npos);
}

// Every line of the list is a fault that is there, and has a reason.
TEST(NotOnGpu, NamesFaultsAndReasons) {
    std::ifstream list("research/mutants/not-on-gpu.txt");
    int lines = 0;
    for (std::string line; std::getline(list, line);) {
        if (line.empty() || line[0] == '#') continue;
        ++lines;
        const size_t slash = line.find('/');
        const size_t end = line.find(" :: ");
        ASSERT_LT(slash, end) << line;
        ASSERT_LT(end + 4, line.size()) << line;
        const std::string faults =
            readFile("research/mutants/" + line.substr(0, slash) + ".txt");
        EXPECT_NE(faults.find("\n" + line.substr(slash + 1, end - slash - 1) +
                              " :: "),
                  std::string::npos)
            << line;
    }
    EXPECT_GT(lines, 0);
}

// build/check_claims itself, with stand-ins for cuobjdump and ncu.
class CheckClaims : public StandIns {
   protected:
    CheckClaims()
        : StandIns({"build/check_claims", "research/reduced/reduce.sh"}) {
        writeFile(root() / "tiny/tiny.cu", kLesson);
        program("");
        tool("nvcc",
             "case \"$*\" in *--list-gpu-arch*) printf "
             "'compute_75\\ncompute_90\\n'; exit;; esac\n"
             "while [ $# -gt 1 ]; do case $1 in -o) out=$2;; esac; shift; done"
             "\ncp \"$1\" \"$out\"\n");
        tool("cuobjdump",
             "printf '\\t\\tFunction : _Z3sumPf\\n  /*0000*/  RED.E.ADD R1 ; "
             "/* 0x1 */\\n  /*0010*/ EXIT ;\\n'\n");
        ncu("1,952");
    }
    // Makes ncu print four launches of two kernels, of which one has this in a
    // counter.
    void ncu(const std::string &value) {
        writeFile(dir_.path() / "csv",
                  "==PROF== Connected\ngpu: x\n"
                  "\"ID\",\"Kernel Name\",\"lts__t.sum\",\"lts__t.max\"\n"
                  "\"\",\"\",\"request\",\"request\"\n"
                  "\"0\",\"void sum<float>(T1 *, int)\",\"64\",\"32\"\n"
                  "\"1\",\"void sum<float>(T1 *, int)\",\"" +
                      value +
                      "\",\"976\"\n"
                      "\"2\",\"void sum<int>(T1 *, int)\",\"7\",\"n/a\"\n"
                      "\"3\",\"add(float *)\",\"0.5\",\"2\"\n");
        tool("ncu",
             "for program; do :; done\n"
             "grep -q 'kSize = 100;' \"$program\" || exit 1\n"
             "grep -q 'kSamples = 1;' \"$program\" || exit 1\n"
             "case \"$*\" in *'--kernel-name regex:^('*) ;; *) exit 1;; "
             "esac\n"
             "cat '" +
                 (dir_.path() / "csv").string() + "'\n");
    }
    // Checks a ledger of one record with these checks.
    Outcome check(const std::string &checks, const std::string &targets) {
        writeFile(root() / "research/CLAIMS.md",
                  "## one-add\n\n> Adds.\n\n- file: tiny/tiny.cu\n" + checks +
                      "- showed: it\n- for: " + targets + "; CUDA 12.5\n");
        return runThere("env -C " + ::quoted(root()) +
                        " build/check_claims sm_90");
    }
};

TEST_F(CheckClaims, CountsInstructionsForEachArchitecture) {
    const Outcome sound =
        check("- sass: sum: `RED.*ADD` = 1\n- sass: sum: `ATOM` = 0\n",
              "sm_75, sm_90, sm_120");
    EXPECT_EQ(sound.status, 0) << sound.err;
    EXPECT_TRUE(
        std::regex_search(sound.out, std::regex("\none-add +4  passed\n")))
        << sound.out;
    const Outcome wrong = check("- sass: sum: `RED` = 2\n", "sm_75");
    EXPECT_EQ(wrong.status, 1);
    EXPECT_TRUE(
        std::regex_search(wrong.out, std::regex("\none-add +1  failed\n")));
    EXPECT_EQ(wrong.err,
              "one-add:\nsm_75, `RED`: _Z3sumPf has 1 lines that match:\n"
              "    RED.E.ADD R1 ;\n");
    EXPECT_EQ(check("- sass: other: `RED` = 1\n", "sm_75").status, 1);
    EXPECT_EQ(check("- sass: sum: `RED` = 1\n", "sm_120").status, 1);
}

TEST_F(CheckClaims, ComparesCountersOfEachLaunch) {
    const auto passes = [&](const std::string &counter) {
        const Outcome outcome = check("- counter: " + counter + "\n", "sm_90");
        const bool passed = std::regex_search(
            outcome.out, std::regex("\none-add +1  passed\n"));
        EXPECT_EQ(passed, outcome.status == 0) << outcome.out << outcome.err;
        EXPECT_EQ(passed, outcome.err.empty()) << outcome.err;
        return passed;
    };
    EXPECT_TRUE(passes("sum<float>: `lts__t.sum = 2 * lts__t.max`"));
    EXPECT_TRUE(passes("sum: `lts__t.sum >= 7`; in words"));
    EXPECT_FALSE(passes("sum: `lts__t.sum >= 7.5`"));
    EXPECT_TRUE(passes("sum<float>: part 2 of 2: `lts__t.sum = 1952`; n"));
    EXPECT_FALSE(passes("sum<float>: part 1 of 2: `lts__t.sum = 1952`"));
    EXPECT_TRUE(passes("add: `lts__t.max <= 64 / 4 / 8`"));
    EXPECT_FALSE(passes("add: `lts__t.max <= 64 / 4 / 8.1`"));
    EXPECT_TRUE(passes("add: `lts__t.sum * 2 = 1`"));
    // What cannot be compared.
    EXPECT_FALSE(passes("sum: part 1 of 2: `lts__t.sum >= 0`"));
    EXPECT_FALSE(passes("sum<float>: part 3 of 2: `lts__t.sum >= 0`"));
    EXPECT_FALSE(passes("ad: `lts__t.sum >= 0`"));
    ncu("1,952.5");
    EXPECT_FALSE(passes("sum<float>: part 2 of 2: `lts__t.sum = 1952`"));
    const Outcome wrong = check("- counter: add: `lts__t.sum = 2`\n", "sm_90");
    EXPECT_EQ(wrong.err,
              "one-add:\nadd, launch 1: lts__t.sum is 0.500000, 2 is "
              "2.000000\n");
}

TEST_F(CheckClaims, EndsWhereACounterIsNotThere) {
    const auto complaint = [&](const std::string &counter) {
        const Outcome outcome = check("- counter: " + counter + "\n", "sm_90");
        EXPECT_EQ(outcome.status, 1);
        return outcome.err;
    };
    EXPECT_EQ(complaint("add: `other.sum = 0`"),
              "check_claims: ncu gives no other.sum\n");
    EXPECT_EQ(complaint("sum: `lts__t.max >= 0`"),
              "check_claims: lts__t.max is 'n/a', no number\n");
    EXPECT_EQ(complaint("add: `lts__t.sum + 1 = 0`"),
              "check_claims: no * or /: +\n");
    tool("ncu", "echo '==ERROR== Failed to find metric other'; exit 1\n");
    EXPECT_NE(complaint("add: `other.sum = 0`").find("Failed to find metric"),
              std::string::npos);
}

// Launches may be missing from what a profiler that fails has printed.
TEST_F(CheckClaims, EndsWhereTheProfilerFails) {
    const char kCounter[] = "- counter: sum: `lts__t.sum >= 7`\n";
    tool("ncu", "cat '" + (dir_.path() / "csv").string() + "'; exit 3\n");
    const Outcome failed = check(kCounter, "sm_90");
    EXPECT_EQ(failed.status, 1);
    EXPECT_EQ(failed.err.find("check_claims: ncu exits 3 for tiny/tiny.cu:"),
              0u)
        << failed.err;
}

TEST_F(CheckClaims, NoticesThatItCannotWrite) {
    check("", "sm_90");
    const Outcome outcome =
        runThere("sh -c " + ::quoted("cd " + ::quoted(root()) +
                                     "; build/check_claims sm_90 >/dev/full"));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err, "check_claims: the results could not be written\n");
}

TEST_F(CheckClaims, SkipsWhatCannotBeAskedHere) {
    const char kCounter[] = "- counter: sum: `lts__t.sum >= 7`\n";
    const auto skips = [](const Outcome &outcome, const std::string &why) {
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.err, "");
        EXPECT_TRUE(std::regex_search(outcome.out,
                                      std::regex("\none-add +1  skipped\n")));
        EXPECT_NE(outcome.out.find("\nwhy_skipped: " + why), std::string::npos)
            << outcome.out;
    };
    skips(check(kCounter, "sm_75"), "some claims are about other GPUs\n");
    tool("ncu",
         "echo '==PROF== Connected'; echo '==ERROR== ERR_NVGPUCTRPERM - no "
         "permission.'; exit 1\n");
    skips(check(kCounter, "sm_90"), "ERR_NVGPUCTRPERM - no permission.\n");
    if (run("command -v cuobjdump").status == 0) return;
    std::filesystem::remove(dir_.path() / "bin/cuobjdump");
    skips(check("- sass: sum: `RED` = 1\n", "sm_90"), "cuobjdump is not there");
}

TEST_F(CheckClaims, SaysWhatItCouldNotRun) {
    tool("nvcc", "echo broken >&2; exit 1\n");
    const Outcome outcome = check("- sass: sum: `RED` = 1\n", "sm_90");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("check_claims: "), std::string::npos);
    EXPECT_NE(outcome.err.find("broken"), std::string::npos);
}

class Repeat : public StandIns {
   protected:
    Repeat() : StandIns({"research/repeat.sh", "research/figures.awk"}) {}
    // Runs repeat.sh on a program that prints this, N being 1, 2, ... 5.
    Outcome repeat(const std::string &output) {
        const auto file = root() / "build/tiny";
        writeFile(root() / "build/tiny.runs", "");
        writeFile(file,
                  "#!/bin/sh\necho . >>\"$0.runs\"\nN=$(wc -l <\"$0.runs\")\n" +
                      output);
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        return runThere(::quoted(root() / "research/repeat.sh") + " tiny");
    }
};

TEST_F(Repeat, SetsTheSpreadOverProcessesBesideThePrintedOne) {
    const Outcome outcome = repeat(
        "cat <<END\nTiny\n\n== device: x ==\nsms: 14\n\n== sweep: x ==\n"
        "n ms us fastest GB/s spread_%\n"
        "8 1.$N $((6 - N)).0* a 100 2.$N\n16 10.$N - - -5 99\n\n"
        "All checks passed.\nEND\n");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out,
              "\n== tiny-sweep: medians of five processes, and their spread "
              "==\n"
              "             row              ms              us            GB/s"
              "  printed_%\n"
              "               8       1.3~30.8!        3~133.3*         100~0.0"
              "        2.3\n"
              "              16        10.3~3.9               -          -5~0.0"
              "         99\n"
              "\ntiny: 5 figures, 1 marked\n");
}

TEST_F(Repeat, KnowsATableOfSpreads) {
    const Outcome outcome = repeat(
        "cat <<END\n== ns: x ==\nk a b\n1 1.$N 1.$N\n\n"
        "== spread: x ==\nk a b\n1 50 9\nEND\n");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("        1.3~30.8       1.3~30.8!          -\n"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("tiny: 2 figures, 1 marked\n"),
              std::string::npos);
}

TEST_F(Repeat, FailsWhereARunDoes) {
    const Outcome outcome =
        repeat("echo 'FAILED: tiny' >&2; exit $((N / 3))\n");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err, "repeat.sh: tiny fails: FAILED: tiny\n");
    EXPECT_EQ(repeat("exit 9\n").err, "repeat.sh: tiny fails: exit status 9\n");
}

TEST_F(Repeat, MarksWhatNotEveryProcessTold) {
    const Outcome outcome = repeat(
        "ratio=9.99; [ $N != 3 ] || ratio=-\n"
        "echo \"== ns: x ==\nk a b\n1 5 $ratio\"\n");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("           5~0.0       9.99~0.0?          -\n"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("tiny: 2 figures, 1 marked\n"),
              std::string::npos);
}

TEST_F(Repeat, FailsWhereThereIsNoFigure) {
    const Outcome outcome = repeat("echo nothing\n");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err, "repeat.sh: tiny prints no figure in a table\n");
    EXPECT_EQ(repeat("[ $N != 5 ] || exit 77\n").err,
              "repeat.sh: tiny fails: exit status 77\n");
}

TEST_F(Repeat, RunsBesideNoCapture) {
    writeFile(root() / "build/tiny", "");
    const Outcome outcome =
        runThere("flock " + ::quoted(root() / "build/capture.lock") + " " +
                 ::quoted(root() / "research/repeat.sh") + " tiny");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err.find("repeat.sh: a capture, make check-gpu or"), 0u)
        << outcome.err;
}

TEST_F(Repeat, SkipsWhatLacksItsHardware) {
    const Outcome outcome = repeat("echo 'needs more' >&2; exit 77\n");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "tiny: skipped\n");
    EXPECT_EQ(outcome.err, "");
}

TEST_F(Repeat, SaysWhyARunFailedOnAFullDiskToo) {
    repeat("");
    writeFile(root() / "build/tiny",
              "#!/bin/sh\necho 'FAILED: no room' >&2; exit 1\n");
    const Outcome outcome =
        run("(trap '' XFSZ; ulimit -f 0; " +
            ::quoted(root() / "research/repeat.sh") + " tiny 2>&1) | cat");
    EXPECT_NE(outcome.out.find("repeat.sh: tiny fails: FAILED: no room\n"),
              std::string::npos)
        << outcome.out;
}

TEST_F(Repeat, NeedsANameAndAPlaceToWriteTo) {
    const std::string script = ::quoted(root() / "research/repeat.sh");
    const Outcome nameless = runThere(script);
    EXPECT_EQ(nameless.status, 1);
    EXPECT_EQ(nameless.err.find("repeat.sh: name what to run"), 0u);
    writeFile(root() / "build", "a file, no folder\n");
    const Outcome outcome = runThere(script + " tiny");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("repeat.sh: cannot make a folder in build/"),
              std::string::npos)
        << outcome.err;
}

}  // namespace
