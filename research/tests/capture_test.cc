// SPDX-License-Identifier: MIT
//
// evidence/capture.sh in a tree of its own, with stand-ins for nvcc,
// nvidia-smi and compute-sanitizer: what it records, and that it records
// nothing when anything is wrong.

#include <gtest/gtest.h>

#include <regex>

#include "shell.h"

namespace {

namespace fs = std::filesystem;

const char kLesson[] =
    "// Build: nvcc -std=c++17 -O3 -arch=native -o tiny tiny.cu\n"
    "constexpr int kSize = 100;\n";

// What the stand-in for the lesson prints and does when it runs.
const char kGoodRun[] =
    "printf 'Day 0: tiny\\n\\n== device: what this ran on ==\\n"
    "gpu: NVIDIA T1000\\nsms: 14\\n\\nAll checks passed.\\n'\n";

class Capture : public testing::Test {
   protected:
    Capture() {
        fs::create_directories(root() / "evidence");
        fs::copy_file("evidence/capture.sh", root() / "evidence/capture.sh");
        writeFile(root() / "tiny/tiny.cu", kLesson);
        writeFile(root() / "research/reduced/tiny.sed", "s/100/7/\n");
        tool(
            "nvcc",
            "case $1 in --version) echo 'release 12.5, V12.5.82'; exit;; esac\n"
            "grep -c . tiny.cu >/dev/null || exit 1\n"
            "{ echo '#!/bin/sh'; cat '" +
                (dir_.path() / "program").string() +
                "'; } >tiny && chmod +x tiny\n");
        tool("nvidia-smi",
             "echo 'GPU-1, NVIDIA T1000, 7.5, [N/A], Disabled, 550.54'\n");
        tool("compute-sanitizer",
             "echo '========= ERROR SUMMARY: 0 errors'; \"$3\" >/dev/null\n");
        program(kGoodRun);
    }

    fs::path root() const { return dir_.path() / "tree"; }
    void tool(const std::string &name, const std::string &body) {
        const fs::path file = dir_.path() / "bin" / name;
        writeFile(file, "#!/bin/sh\n" + body);
        fs::permissions(file, fs::perms::owner_all);
    }
    void program(const std::string &body) {
        writeFile(dir_.path() / "program", body);
    }
    Outcome capture(const std::string &arguments = "tiny/tiny.cu") {
        return run("PATH=" + quoted(dir_.path() / "bin") +
                   ":$PATH; export PATH; unset NVCC CUDA_VISIBLE_DEVICES; " +
                   "timeout 60 " + quoted(root() / "evidence/capture.sh") +
                   " " + arguments);
    }
    std::string fingerprint(const std::string &source) {
        writeFile(root() / "print.cu", source);
        const Outcome printed =
            capture("--fingerprint " + quoted(root() / "print.cu"));
        EXPECT_TRUE(std::regex_match(printed.out, std::regex("[0-9a-f]{64}\n")))
            << printed.out << printed.err;
        return printed.out;
    }
    // Captures, expects a refusal that says so, and that nothing has changed.
    void expectRefusal(const std::string &sentence) {
        const fs::path earlier =
            root() / "evidence/tiny/nvidia-t1000-2026-01-01.txt";
        if (fs::is_directory(root() / "evidence/tiny") ||
            !fs::exists(root() / "evidence/tiny"))
            writeFile(earlier, "earlier\n");
        const Outcome refused = capture();
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
    TempDir dir_;
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
    program("case $PWD in */full) echo wrong >&2; exit 1;; esac\n" +
            std::string(kGoodRun));
    expectRefusal("tiny/tiny.cu exits 1 and nothing is recorded: wrong");
}

TEST_F(Capture, RefusesComplaintsAndIncompleteOutput) {
    program(std::string(kGoodRun) + "echo careful >&2\n");
    expectRefusal("tiny/tiny.cu complains and nothing is recorded: careful");
    program("echo 'gpu: NVIDIA T1000'\n");
    expectRefusal("tiny/tiny.cu does not end with 'All checks passed.'");
    program("printf 'gpu: the CPU\\nAll checks passed.\\n'\n");
    expectRefusal("tiny/tiny.cu did not run on the NVIDIA T1000");
}

TEST_F(Capture, RefusesSanitizerReportsAndToolsThatCannotRun) {
    tool("compute-sanitizer",
         "case $2 in racecheck) n=3;; *) n=0;; esac\n"
         "echo \"========= RACECHECK SUMMARY: $n hazards displayed\"\n");
    expectRefusal("racecheck reports 3 faults in the reduced copy");
    tool("compute-sanitizer", "echo 'Error: device not supported'; exit 1\n");
    expectRefusal("compute-sanitizer --tool memcheck cannot run here: Error");
}

TEST_F(Capture, RefusesWithoutItsTools) {
    tool("nvidia-smi", "echo 'no devices' >&2; exit 9\n");
    expectRefusal("nvidia-smi finds no GPU 0");
    tool("nvcc", "echo 'tiny.cu: error: broken'; exit 1\n");
    tool("nvidia-smi", "echo 'GPU-1, NVIDIA T1000, 7.5, a, b, 550'\n");
    expectRefusal(
        "tiny/tiny.cu does not build by its Build line: tiny.cu: error");
    writeFile(root() / "tiny/tiny.cu", "// no header\n");
    expectRefusal("tiny/tiny.cu needs a line '// Build: nvcc FLAGS -o tiny");
}

TEST_F(Capture, RefusesWhatIsNotThere) {
    EXPECT_EQ(capture("none/none.cu").status, 1);
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
        run("PATH=" + quoted(dir_.path() / "bin") + ":$PATH; export PATH; " +
            "unset NVCC; cd " + quoted(root()) + " && flock " + lock +
            " timeout 60 " + again + " tiny/tiny.cu");
    EXPECT_EQ(both.status, 1);
    EXPECT_NE(both.err.find("another capture is running"), std::string::npos)
        << both.err;
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
