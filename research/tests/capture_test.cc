// SPDX-License-Identifier: MIT
//
// evidence/capture.sh, and what it runs besides lessons, in a tree of their
// own, with stand-ins for nvcc, nvidia-smi and compute-sanitizer: what it
// records, and that it records nothing when anything is wrong.

#include <regex>

#include "stand_ins.h"

namespace {

namespace fs = std::filesystem;

const char kLesson[] =
    "// Build: nvcc -std=c++17 -O3 -arch=native -o tiny tiny.cu\n"
    "constexpr int kSize = 100;\n";

// What the stand-in for the lesson prints and does when it runs.
const char kGoodRun[] =
    "printf 'Day 0: tiny\\n\\n== device: what this ran on ==\\n"
    "gpu: NVIDIA T1000\\nsms: 14\\n\\nAll checks passed.\\n'\n";

class Capture : public StandIns {
   protected:
    Capture()
        : StandIns({"evidence/capture.sh", "research/sanitize.sh",
                    "research/reason.sh", "research/left.sh",
                    "research/limit.sh", "research/reduced/reduce.sh",
                    "research/racecheck.awk", "research/knobs.sh",
                    "research/figures.awk", "research/peers/run.sh"}) {
        writeFile(root() / "tiny/tiny.cu", kLesson);
        tool("nvidia-smi",
             "echo 'GPU-1, NVIDIA T1000, 7.5, [N/A], Disabled, 550.54'\n");
        program(kGoodRun);
    }

    Outcome capture(const std::string &arguments = "tiny/tiny.cu") {
        return runThere(quoted(root() / "evidence/capture.sh") + " " +
                        arguments);
    }
    std::string fingerprint(const std::string &source,
                            const std::string &name = "print.cu") {
        writeFile(root() / name, source);
        const Outcome printed =
            capture("--fingerprint " + quoted(root() / name));
        EXPECT_TRUE(std::regex_match(printed.out, std::regex("[0-9a-f]{64}\n")))
            << printed.out << printed.err;
        return printed.out;
    }
    // Captures, expects a refusal that says so, and that nothing has changed.
    void expectRefusal(const std::string &sentence,
                       const std::string &what = "tiny/tiny.cu") {
        const fs::path earlier =
            root() / "evidence/tiny/nvidia-t1000-2026-01-01.txt";
        if (fs::is_directory(root() / "evidence/tiny") ||
            !fs::exists(root() / "evidence/tiny"))
            writeFile(earlier, "earlier\n");
        const Outcome refused = capture(what);
        EXPECT_EQ(refused.status, 1);
        EXPECT_EQ(refused.out, "");
        EXPECT_NE(refused.err.find("capture.sh: " + sentence),
                  std::string::npos)
            << refused.err;
        if (!fs::is_directory(root() / "evidence/tiny")) return;
        EXPECT_EQ(readFile(earlier), "earlier\n");
        for (const auto &entry : fs::directory_iterator(earlier.parent_path()))
            EXPECT_EQ(entry.path(), earlier);
        if (!fs::exists(root() / "build")) return;
        for (const auto &entry : fs::directory_iterator(root() / "build"))
            EXPECT_EQ(entry.path().filename(), "capture.lock");
    }
};

TEST_F(Capture, RecordsEveryFieldOnceAndInOrder) {
    const Outcome captured = capture();
    ASSERT_EQ(captured.status, 0) << captured.err;
    ASSERT_TRUE(std::regex_match(
        captured.out,
        std::regex("evidence/tiny/nvidia-t1000-\\d{4}-\\d\\d-\\d\\d.txt\n")))
        << captured.out;
    const fs::path file =
        root() / captured.out.substr(0, captured.out.size() - 1);
    const std::string text = readFile(file);
    EXPECT_TRUE(std::regex_match(
        text,
        std::regex(
            "lesson: tiny/tiny\\.cu\n"
            "fingerprint: [0-9a-f]{64}\n"
            "build: nvcc -std=c\\+\\+17 -O3 -arch=native -o tiny tiny\\.cu\n"
            "toolkit: 12\\.5\\.82\n"
            "host compiler: g\\+\\+ [0-9.]+\n"
            "gpu: NVIDIA T1000\n"
            "compute capability: 7\\.5\n"
            "sms: 14\n"
            "mig: none\n"
            "ecc: off\n"
            "driver: 550\\.54\n"
            "date: \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ\n"
            "exit: 0\n"
            "sanitizer: memcheck 0, racecheck 0, synccheck 0, initcheck 0\n"
            "-- stdout --\n"
            "Day 0: tiny\n\n== device: what this ran on ==\n"
            "gpu: NVIDIA T1000\nsms: 14\n\nAll checks passed\\.\n"
            "-- stderr --\n"
            "-- end [0-9a-f]{64} --\n")))
        << text;
    const std::string sum =
        run("head -n -1 " + quoted(file) + " | sha256sum").out.substr(0, 64);
    EXPECT_NE(text.find("-- end " + sum + " --\n"), std::string::npos);
}

TEST_F(Capture, NamesALessonByNoPathOfThisMachine) {
    for (const std::string &path :
         {quoted(root() / "tiny/tiny.cu"), std::string("./tiny/tiny.cu")}) {
        const Outcome captured = capture(path);
        ASSERT_EQ(captured.status, 0) << captured.err;
        const std::string text =
            readFile(root() / captured.out.substr(0, captured.out.size() - 1));
        EXPECT_EQ(text.find("lesson: tiny/tiny.cu\n"), 0u) << text;
    }
}

TEST_F(Capture, RunsTheReducedCopyUnderTheSanitizers) {
    tool("compute-sanitizer",
         "grep -q 'kSize = 7;' \"$3.cu\" && "
         "echo '========= ERROR SUMMARY: 0 errors'; \"$3\" >/dev/null\n");
    EXPECT_EQ(capture().status, 0);
}

TEST_F(Capture, RefusesAFailedRun) {
    program("echo 'FAILED: tiny' >&2; exit 1\n");
    expectRefusal("the reduced copy of tiny/tiny.cu exits 1 under memcheck");
    // The copy passes, the lesson does not.
    program("case $PWD in */full) echo 'wrong\ntwice' >&2; exit 1;; esac\n" +
            std::string(kGoodRun));
    expectRefusal("tiny/tiny.cu exits 1 and nothing is recorded: wrong");
    // Of many faults, each is told.
    EXPECT_EQ(capture().err.rfind("twice\n", 0), 0u);
}

TEST_F(Capture, RefusesComplaintsAndIncompleteOutput) {
    program(std::string(kGoodRun) + "echo careful >&2\n");
    expectRefusal("tiny/tiny.cu complains and nothing is recorded: careful");
    program("echo 'gpu: NVIDIA T1000'\n");
    expectRefusal("tiny/tiny.cu does not end with 'All checks passed.'");
    program("printf 'gpu: the CPU\\nAll checks passed.\\n'\n");
    expectRefusal("tiny/tiny.cu did not run on the NVIDIA T1000");
}

TEST_F(Capture, RefusesASourceThatChangedMeanwhile) {
    program("echo 'int x;' >>" + quoted(root() / "tiny/tiny.cu") + "\n" +
            kGoodRun);
    expectRefusal("tiny/tiny.cu changed during the run: capture again");
}

TEST_F(Capture, RefusesAnOldReduction) {
    writeFile(root() / "research/reduced/tiny.sed", "s/200/7/\n");
    expectRefusal("");
    EXPECT_NE(capture().err.find("the command no longer applies to tiny"),
              std::string::npos);
}

TEST_F(Capture, EndsItsProgramsWhereItIsEnded) {
    tool("compute-sanitizer", "echo '========= ERROR SUMMARY: 0 errors'\n");
    expectEndsAtOnce(quoted(root() / "evidence/capture.sh") + " tiny/tiny.cu");
    EXPECT_FALSE(fs::exists(root() / "evidence/tiny"));
    tool("compute-sanitizer", "\"$3\"\n");
    expectEndsAtOnce(quoted(root() / "evidence/capture.sh") + " tiny/tiny.cu");
}

TEST_F(Capture, RefusesAnotherBuildThanItsFieldsSay) {
    const std::string script = quoted(root() / "evidence/capture.sh");
    const auto with = [&](const std::string &variable) {
        return runThere("env " + variable + " " + script + " tiny/tiny.cu");
    };
    EXPECT_NE(with("NVCC_APPEND_FLAGS=-G").err.find("changes the build"),
              std::string::npos);
    EXPECT_NE(with("NVCC_PREPEND_FLAGS=-G").err.find("changes the build"),
              std::string::npos);
    EXPECT_NE(with("NVCC_CCBIN=nonesuch").err.find("the host compiler gives"),
              std::string::npos);
    tool("g++", "echo 99.1\n");
    const Outcome folder = with("NVCC_CCBIN=" + quoted(dir_.path() / "bin"));
    EXPECT_EQ(folder.status, 0) << folder.err;
    EXPECT_NE(readFile(root() / folder.out.substr(0, folder.out.size() - 1))
                  .find("\nhost compiler: g++ 99.1\n"),
              std::string::npos);
}

TEST_F(Capture, RefusesSanitizerReportsAndToolsThatCannotRun) {
    tool("compute-sanitizer",
         "case $2 in racecheck) n=3;; *) n=0;; esac\n"
         "echo \"========= RACECHECK SUMMARY: $n hazards displayed\"\n");
    expectRefusal("racecheck reports 3 faults in the reduced copy");
    tool("compute-sanitizer", "echo 'Error: device not supported'; exit 1\n");
    expectRefusal("compute-sanitizer --tool memcheck cannot run here: Error");
}

// What the ledger has to say for racecheck's reports to be recorded.
class Racecheck : public Capture {
   protected:
    Racecheck() {
        writeFile(root() / "tiny/tiny.cu",
                  std::string(kLesson) +
                      "tile[i] = x;  // The write.\n    x = tile[j];\n");
        claim("take: `x = tile[j];`;\n  copy: `tile[i] = x;`");
    }
    // A ledger in which a record, the second about the lesson, has this field.
    void claim(const std::string &field,
               const std::string &lesson = "tiny/tiny.cu") {
        writeFile(root() / "research/CLAIMS.md",
                  "# Claims\n\n## other\n\n> One.\n\n- file: tiny/tiny.cu\n"
                  "- racecheck: f: `a`; g: `b`\n\n"
                  "## in-order\n\n> Two.\n\n- racecheck: " +
                      field + "\n- file: " + lesson + "\n- showed: it\n");
    }
    // Makes racecheck report these lines.
    void reports(const std::string &lines) {
        writeFile(dir_.path() / "reports", lines);
        tool(
            "compute-sanitizer",
            "\"$3\" >/dev/null\n"
            "echo '========= COMPUTE-SANITIZER'\n"
            "case $2 in racecheck) cat '" +
                (dir_.path() / "reports").string() +
                "'; n=2;; *) n=0;; esac\n"
                "echo \"========= RACECHECK SUMMARY: $n hazards displayed\"\n");
    }
};

const char kWrite[] =
    "========= Error: Race reported between Write access at "
    "void n::copy<(int)4, S<int>>(T1 *, int)+0x70 in tiny.cu:3\n";
const char kRead[] =
    "=========     and Read access at take(float const *)+0x1a0 in "
    "/home/a b/tiny.cu:4 [128 hazards]\n=========\n";

TEST_F(Racecheck, IsRecordedWithTheClaimThatExplainsIt) {
    reports(std::string(kWrite) + kRead);
    const Outcome captured = capture();
    ASSERT_EQ(captured.status, 0) << captured.err;
    const std::string text =
        readFile(root() / captured.out.substr(0, captured.out.size() - 1));
    EXPECT_NE(text.find("\nsanitizer: memcheck 0, racecheck 2 (in-order), "
                        "synccheck 0, initcheck 0\n"),
              std::string::npos)
        << text;
}

TEST_F(Racecheck, IsRefusedWhereALineOrAFunctionIsAnother) {
    const std::string kRefusal = "racecheck reports 2 faults in the reduced";
    reports(std::string(kWrite) + kRead +
            "=========     and Read access at take(int)+0x1a0 in tiny.cu:2 "
            "[1 hazard]\n");
    expectRefusal(kRefusal);
    EXPECT_NE(capture().err.find("unexplained: copy: tile[i] = x; and take: "
                                 "constexpr int kSize = 7;\n"),
              std::string::npos);
    reports(std::string(kWrite) + kRead);
    claim("take: `x = tile[j];`; other: `tile[i] = x;`");
    expectRefusal(kRefusal);
    claim("take: `x = tile[j];`; copy: `tile[i] = x;`", "other/other.cu");
    expectRefusal(kRefusal);
    fs::remove(root() / "research/CLAIMS.md");
    expectRefusal(kRefusal);
}

TEST_F(Racecheck, KnowsWhatIsNotInTheLessonByItsFile) {
    reports(
        "========= Warning: Race reported between Read access at "
        "take(int)+0x10 in tiny.cu:4\n"
        "=========     and Write access at void cuda::copy_tx<float>(T1)+0x20 "
        "in copy_tx.h:77 [2 hazards]\n");
    claim("take: `x = tile[j];`; copy_tx: `copy_tx.h`");
    EXPECT_EQ(capture().status, 0) << capture().err;
    reports(
        "========= Warning: Race reported between Read access at "
        "take(int)+0x10 in tiny.cu:4\n"
        "=========     and Write access at k(int)+0x20 [2 hazards]\n");
    claim("take: `x = tile[j];`; k: `?`");
    EXPECT_EQ(capture().status, 0) << capture().err;
}

TEST_F(Racecheck, IsRefusedWhereAReportCannotBeRead) {
    reports("");
    expectRefusal("racecheck reports 2 faults");
    reports(std::string(kWrite) + kRead +
            "========= Warning: Maximum number of hazards reached.\n");
    expectRefusal("racecheck reports 2 faults");
}

TEST_F(Capture, RefusesWithoutItsTools) {
    tool("nvidia-smi", "echo 'no devices' >&2; exit 9\n");
    expectRefusal("nvidia-smi finds no GPU 0");
    std::filesystem::remove(dir_.path() / "bin/nvidia-smi");
    const std::string script = quoted(root() / "evidence/capture.sh");
    const auto without = [&](const std::string &missing) {
        const Outcome refused = runWithout(missing, script + " tiny/tiny.cu");
        EXPECT_EQ(refused.status, 1);
        return refused.err;
    };
    EXPECT_EQ(without("nvidia-smi"),
              "capture.sh: no nvidia-smi: a transcript needs an NVIDIA GPU and "
              "its driver\n");
    tool("nvidia-smi", "echo 'GPU-1, NVIDIA T1000, 7.5, a, b, 550'\n");
    EXPECT_EQ(without("flock"),
              "capture.sh: no flock: install it (it is part of util-linux)\n");
    tool("nvcc", "echo 'release 12.5'\n");
    expectRefusal("nvcc --version names no version");
    tool("nvcc",
         "[ $1 != --version ] || { echo ', V12.5.82'; exit; }\n"
         "echo 'nvcc warning : Cannot find valid GPU'; "
         "echo 'tiny.cu: error: broken'; echo 'other: error'; exit 1\n");
    expectRefusal(
        "tiny/tiny.cu does not build by its Build line: tiny.cu: error");
    writeFile(root() / "tiny/tiny.cu", "// no header\n");
    expectRefusal("tiny/tiny.cu needs a line '// Build: nvcc FLAGS -o tiny");
}

TEST_F(Capture, RefusesWhatIsNotThere) {
    expectRefusal("there is no source none/none.cu: name one", "none/none.cu");
    for (const std::string other :
         {"tiny", "tiny.cu", "/tiny/tiny.cu", "../tiny/tiny.cu", "tiny/tiny",
          "research/tiny/tiny.cu", "check-gpu /tiny/tiny.cu"}) {
        const std::string lesson = other.substr(other.find(' ') + 1);
        expectRefusal(lesson + " is no lesson: name one as FOLDER/NAME.cu",
                      other);
    }
    fs::create_directories(root() / "tiny/folder.cu");
    const Outcome folder = capture("tiny/folder.cu");
    EXPECT_EQ(folder.err,
              "capture.sh: there is no source tiny/folder.cu: name one, as in "
              "atomics/atomics.cu\n");
    EXPECT_EQ(capture("").status, 1);
    EXPECT_EQ(capture("--fingerprint nowhere.cu").status, 1);
    const Outcome hidden =
        run("NVCC=nonesuch evidence/capture.sh atomics/atomics.cu");
    EXPECT_EQ(hidden.status, 1);
    EXPECT_NE(hidden.err.find("no CUDA compiler nonesuch"), std::string::npos);
}

TEST_F(Capture, RefusesAPlaceItCannotWriteTo) {
    writeFile(root() / "evidence/tiny", "a file, no folder\n");
    expectRefusal("cannot make build/ and evidence/tiny/");
}

TEST_F(Capture, RefusesToRunTwiceAtOnce) {
    fs::create_directories(root() / "build");
    tool("nvidia-smi",
         "echo 'GPU-1, NVIDIA T1000, 7.5, [N/A], Disabled, 550.54'\n");
    const std::string lock = quoted(root() / "build/capture.lock");
    const std::string again = quoted(root() / "evidence/capture.sh");
    const Outcome both =
        runThere("flock " + lock + " " + again + " tiny/tiny.cu");
    EXPECT_EQ(both.status, 1);
    EXPECT_NE(both.err.find("another capture, or make check-gpu, is"),
              std::string::npos)
        << both.err;
}

// What a knob's lesson prints, with its constant kTurn in it.
const char kKnobRun[] =
    "printf 'Day 0: tiny\\n\\n== device: what this ran on ==\\n"
    "gpu: NVIDIA T1000\\nsms: 14\\n\\n== sweep: times ==\\nfloor_us: 3.1\\n"
    "  n    ms  GB/s\\n  8 0.%s 1.5*\\n 16   2.%s     -\\n\\n"
    "All checks passed.\\n' $kTurn $kTurn\n";

class Knobs : public Capture {
   protected:
    Knobs() {
        writeFile(root() / "tiny/tiny.cu",
                  std::string(kLesson) + "constexpr int kTurn = 20;\n");
        knobs(
            "tiny/tiny :: kTurn :: 10 20 :: 0 :: first_ms=sweep/8/ms "
            "last=sweep/16/GB/s floor=sweep/floor_us\n"
            "tiny/tiny :: kSize :: 100 :: 0 :: ms=sweep/16/ms\n");
        program(kKnobRun);
    }
    void knobs(const std::string &lines) {
        writeFile(root() / "research/knobs.txt", "# Knobs.\n" + lines);
    }
};

TEST_F(Knobs, AreRecordedWithARowAValue) {
    const Outcome captured = capture("knobs-tiny");
    ASSERT_EQ(captured.status, 0) << captured.err;
    ASSERT_EQ(captured.out.find("evidence/knobs-tiny/nvidia-t1000-"), 0u);
    const std::string text =
        readFile(root() / captured.out.substr(0, captured.out.size() - 1));
    EXPECT_EQ(text.find("lesson: tiny/tiny.cu\nfingerprint: "), 0u) << text;
    EXPECT_NE(text.find("\nbuild: nvcc -std=c++17 -O3 -arch=native -o tiny "
                        "tiny.cu with kTurn = KNOB or kSize = KNOB\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("\nsms: 14\nmig: none\n"), std::string::npos);
    EXPECT_NE(text.find("\nsanitizer: not applicable\n-- stdout --\n"
                        "tiny: the knobs turned\n\n"
                        "== device: what this ran on ==\n"
                        "gpu: NVIDIA T1000\nsms: 14\n\n"
                        "== kTurn: tiny at each value ==\nlesson: 20\n"
                        "    kTurn  first_ms      last     floor\n"
                        "       10      0.10         -       3.1\n"
                        "       20      0.20         -       3.1\n\n"
                        "== kSize: tiny at each value ==\nlesson: 100\n"
                        "    kSize        ms\n"
                        "      100      2.20\n\n"
                        "All checks passed.\n-- stderr --\n"),
              std::string::npos)
        << text;
}

TEST_F(Knobs, AreNotRecordedWhereARunOrAFigureIsMissing) {
    const char kWhat[] = "knobs-tiny";
    program("[ $kTurn = 20 ] || { echo FAILED: x >&2; exit 1; }\n" +
            std::string(kKnobRun));
    expectRefusal(
        "tiny/tiny.cu exits 1 and nothing is recorded: knobs.sh: tiny does "
        "not pass with kTurn = 10 (exit 1): FAILED: x",
        kWhat);
    program(kKnobRun);
    knobs("tiny/tiny :: kTurn :: 10 20 :: 0 :: ms=sweep/9/ms\n");
    expectRefusal(
        "tiny/tiny.cu exits 1 and nothing is recorded: knobs.sh: tiny prints "
        "no figure sweep/9/ms",
        kWhat);
    knobs("tiny/tiny :: kNone :: 1 :: 0 :: ms=sweep/8/ms\n");
    expectRefusal(
        "tiny/tiny.cu exits 1 and nothing is recorded: knobs.sh: tiny/tiny.cu "
        "needs one line 'constexpr TYPE kNone = N;'",
        kWhat);
    knobs("");
    expectRefusal("research/knobs.txt has no knob of tiny", kWhat);
    tool("nvcc",
         "[ $1 != --version ] || { echo ', V12.5.82'; exit; }\n"
         "echo 'warning: old'; echo 'error: broken'; exit 1\n");
    knobs("tiny/tiny :: kTurn :: 10 :: 0 :: ms=sweep/8/ms\n");
    expectRefusal(
        "tiny/tiny.cu exits 1 and nothing is recorded: knobs.sh: kTurn.10 does "
        "not build: error: broken",
        kWhat);
    const Outcome bare = runThere(
        "env NVCC=nonesuch " + quoted(root() / "research/knobs.sh") + " tiny");
    EXPECT_EQ(bare.status, 1);
    EXPECT_EQ(bare.err,
              "knobs.sh: no CUDA compiler nonesuch: install the CUDA Toolkit, "
              "or set NVCC to where it is\n");
}

// A timeout whose two minutes are over at once.
TEST_F(Knobs, AreNotRecordedWhereAProgramTakesTooLong) {
    tool("timeout",
         "case \" $* \" in *' 120 '*) exit 124;; esac\n"
         "exec /usr/bin/timeout \"$@\"\n");
    expectRefusal("tiny/tiny.cu takes more than two minutes and nothing");
    expectRefusal(
        "tiny/tiny.cu exits 1 and nothing is recorded: knobs.sh: tiny does "
        "not pass with kTurn = 10 (exit 124): ",
        "knobs-tiny");
}

TEST_F(Capture, RecordsAllPeersInOneTranscript) {
    for (const std::string name : {"sum", "bulk"})
        writeFile(root() / ("research/peers/" + name + "_peers.cu"),
                  "#include \"../../tiny/tiny.cu\"\n"
                  "// Build:\n//   nvcc -O2 -o " +
                      name + "_peers " + name + "_peers.cu\n");
    const Outcome captured = capture("peers");
    ASSERT_EQ(captured.status, 0) << captured.err;
    const std::string text =
        readFile(root() / captured.out.substr(0, captured.out.size() - 1));
    EXPECT_TRUE(std::regex_search(
        text, std::regex("lesson: research/peers/bulk_peers\\.cu\n"
                         "fingerprint: [0-9a-f]{64}\n"
                         "fingerprint: [0-9a-f]{64} research/peers/sum_peers"
                         "\\.cu\nfingerprint: [0-9a-f]{64} tiny/tiny\\.cu\n"
                         "build: nvcc -O2 -o bulk_peers bulk_peers\\.cu\n")))
        << text;
    EXPECT_NE(text.find("-- stdout --\n"
                        "The lessons' best kernels beside the libraries\n\n"
                        "== bulk-device: what this ran on ==\n"
                        "gpu: NVIDIA T1000\nsms: 14\n\n"
                        "== sum-device: what this ran on ==\n"
                        "gpu: NVIDIA T1000\nsms: 14\n\n"
                        "All checks passed.\n-- stderr --\n"),
              std::string::npos)
        << text;
    program("exit 77\n");
    EXPECT_EQ(capture("peers").status, 1);
    tool("nvcc", "echo 'warning: old'; echo 'error: broken'; exit 1\n");
    const std::string peers = quoted(root() / "research/peers/run.sh");
    EXPECT_EQ(runThere(peers).err,
              "peers/run.sh: research/peers/bulk_peers.cu does not build: "
              "error: broken\n");
    fs::remove_all(root() / "build");
    writeFile(root() / "build", "a file, no folder\n");
    EXPECT_NE(runThere(peers).err.find("peers/run.sh: cannot make a folder"),
              std::string::npos);
}

TEST_F(Capture, FingerprintsCodeAndNotComments) {
    const std::string plain = fingerprint("int a = 1;\nint b;\n");
    EXPECT_EQ(fingerprint("// A comment.\nint a = 1;  // One.\n\nint b;\n"),
              plain);
    EXPECT_EQ(fingerprint("int a = 1; \t\n   \nint b;"), plain);
    EXPECT_NE(fingerprint("int a = 2;\nint b;\n"), plain);
    EXPECT_NE(fingerprint("int  a = 1;\nint b;\n"), plain);
    EXPECT_NE(fingerprint("int b;\nint a = 1;\n"), plain);
}

// A list of faults is full of // that deletes something, and no comment.
TEST_F(Capture, FingerprintsAllOfAListButItsComments) {
    const std::string list = "a :: s/x// :: plain: y\n";
    const std::string plain = fingerprint(list, "faults.txt");
    EXPECT_EQ(fingerprint("# Why.\n\n" + list, "faults.txt"), plain);
    EXPECT_NE(fingerprint("a :: s/x// :: holds\n", "faults.txt"), plain);
}

TEST_F(Capture, FingerprintsAllOfCppAlike) {
    for (const char *name : {"print.cc", "print.h"})
        EXPECT_EQ(fingerprint("int a;  // One.\n", name),
                  fingerprint("int a;\n"));
}

TEST_F(Capture, FingerprintsWhatALedgerLetsCheck) {
    const std::string checks = "## one\n- file: a.cu\n- sass: f: `RED` = 1\n";
    const std::string plain = fingerprint(checks, "CLAIMS.md");
    EXPECT_EQ(fingerprint("# Claims\n\n" + checks + "- showed: it\n> It.\n",
                          "CLAIMS.md"),
              plain);
    for (const char *other : {"## two\n- file: a.cu\n- sass: f: `RED` = 1\n",
                              "## one\n- file: b.cu\n- sass: f: `RED` = 1\n",
                              "## one\n- file: a.cu\n- sass: f: `RED` = 2\n"})
        EXPECT_NE(fingerprint(other, "CLAIMS.md"), plain);
    for (const char *more : {"source", "ptx", "counter", "racecheck", "for"})
        EXPECT_NE(fingerprint(checks + "- " + more + ": x\n", "CLAIMS.md"),
                  plain);
}

TEST_F(Capture, FingerprintsWhatOnlyLooksLikeAComment) {
    EXPECT_NE(fingerprint("f(\"a // b\");\n"), fingerprint("f(\"a\n"));
    EXPECT_NE(fingerprint("f(\"a // b\");\n"), fingerprint("f(\"a // c\");\n"));
    EXPECT_NE(fingerprint("f(\"\\\"// b\");\n"), fingerprint("f(\"\\\"\n"));
    EXPECT_NE(fingerprint("f('\"', \"// b\");\n"), fingerprint("f('\"', \"\n"));
    EXPECT_EQ(fingerprint("f('\"');  // b\n"), fingerprint("f('\"');\n"));
    EXPECT_EQ(fingerprint("f(1'000);  // it's\n"), fingerprint("f(1'000);\n"));
    EXPECT_EQ(fingerprint("f('\\'');  // b\n"), fingerprint("f('\\'');\n"));
}

}  // namespace
