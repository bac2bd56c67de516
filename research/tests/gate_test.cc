// SPDX-License-Identifier: MIT
//
// The gate over small repositories that a test makes up: a sound one, in which
// it finds nothing, and many that differ from it in one place, where it must
// say exactly what is wrong. Fingerprints come from the real
// evidence/capture.sh.

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <locale>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../gate/weave.h"
#include "shell.h"

namespace {

using Texts = std::vector<std::string>;

const char kAlphaHeader[] = R"(// SPDX-License-Identifier: MIT
//
// Day 1: a sum
//
// Needs: compute capability 7.5 or newer, CUDA 12.5 or newer, C++17.
// Build: nvcc -std=c++17 -O3 -arch=native -o alpha alpha.cu
//
// Verified: run on an NVIDIA H200 (compute capability 9.0), driver
// 580.159.04, CUDA 13.0 (V13.0.88), on 2026-11-30. The only output that may
// be published is evidence/alpha/nvidia-h200-2026-11-30.txt.
// How that was decided: research/REVIEW-PROCESS.md
)";

const char kBetaHeader[] = R"(// SPDX-License-Identifier: MIT
//
// Day 2: a product
//
// Needs: compute capability 8.0 or newer, CUDA 12.5 or newer, C++17.
// Build:
//   nvcc -std=c++17 -O3 -arch=native -o beta beta.cu
//
// UNVERIFIED: not run on real hardware; nothing it prints may be published.
// How that changes: research/REVIEW-PROCESS.md
)";

const char kBody[] = R"(
#include <cstdio>

// Ends the program.
#define CUDA_CHECK(call) \
    do {                 \
        check(call);     \
    } while (0)

// How every lesson times.
constexpr int kWarmupRuns = 3;
constexpr int kLaunches = kWarmupRuns + 70;

// Each thread makes one add, and the
// adds of a warp are not combined.
constexpr size_t kSizes[2] = {4'096, 65536u};
constexpr const char *kColumns[] = {"n", "sum_ms",
                                    "fastest"};

// What timeKernel returns.
struct Timing {
    float median;
};

// Times launch(run).
template <typename Launch>
Timing timeKernel(Launch launch) {
    launch(kWarmupRuns);

    return {1.0f};
}

__global__ void sum(float *total) {
    // snippet: add
    if (threadIdx.x < 32) {
        atomicAdd(total, 1.0f);  // "//" is no comment in "a//b"
    }
    // end snippet
}

int main() {
    static_assert(kSizes[0] < kSizes[1], "smallest first");
    std::printf("\n== device: what this ran on ==\n");
    // Table sweep: rows kSizes, columns kColumns.
    std::printf("\n== sweep: one sum ==\n");
    return 0;
}

double spreadPercent(const Timing &t) { return t.median; }

bool nearFloor(float ms, float floorMs) { return ms < 2 * floorMs; }

void printCell(const char *label) { std::printf("%s", label); }

template <int kNumColumns>
void printLabels(const char *const (&labels)[kNumColumns]) {
    printCell(labels[0]);
}

std::string figure(double value) { return std::to_string(value); }
)";

const char kOutput[] = R"(Day 1: a sum

== device: what this ran on ==
gpu: NVIDIA H200
compute_capability: 9.0
sms: 132
floor_us: 3.4123

== sweep: one sum ==
       n  sum_ms  fastest
    4096 0.0037*        -
   65536  1.2500     tree

All checks passed.
)";

const char kReadme[] = R"(# Lessons

Adds <!--= alpha/sweep/65536/sum_ms --><!--/--> ms in 90 minutes of reading,
above <!--= alpha/device/floor_us --><!--/--> us.

<!-- output alpha/sweep -->
<!-- end output -->

<!-- snippet beta/add -->
<!-- end snippet -->

<!-- output beta/sweep -->
<!-- end output -->

<!-- figure alpha/sweep: time against n -->
<!-- end figure -->

```sh
make run
```
)";

const char kAlphaReadme[] = R"(# Alpha

Adds <!--= alpha/sweep/65536/sum_ms --><!--/--> ms.

    nvcc -std=c++17 -O3 -arch=native -o alpha alpha.cu && ./alpha

<!-- snippet beta/add -->
<!-- end snippet -->

<!-- snippet alpha/add -->
<!-- end snippet -->
)";

const char kClaims[] = R"(# Claims

## one-add

> Each thread makes one add, and the adds
> of a warp are not combined.

- file: alpha/alpha.cu
- ptx: sum: `red\.global\.add\.f32` = 1
- document: CUDA C++ Programming Guide; Atomic Functions; 13.0
- showed: one reduction, whatever
  the architecture
- for: sm_75, sm_90a; CUDA 13.0.88
)";

std::string replaced(const std::string &text, const std::string &from,
                     const std::string &to) {
    const size_t at = text.find(from);
    if (at == text.npos || text.find(from, at + 1) != text.npos)
        throw std::runtime_error("not there exactly once: " + from);
    return text.substr(0, at) + to + text.substr(at + from.size());
}

std::string sha256(const std::string &text) {
    TempDir dir;
    writeFile(dir.path() / "text", text);
    return run("sha256sum <" + ::quoted(dir.path() / "text")).out.substr(0, 64);
}

// A transcript with a closing line that fits what is above.
std::string sealed(const std::string &text) {
    const std::string above = text.substr(0, text.find("-- end "));
    return above + "-- end " + sha256(above) + " --\n";
}

std::string transcript(const std::string &fingerprint, const std::string &date,
                       const std::string &sanitizer) {
    return sealed("lesson: alpha/alpha.cu\nfingerprint: " + fingerprint +
                  "\nbuild: nvcc -std=c++17 -O3 -arch=native -o alpha alpha.cu"
                  "\ntoolkit: 13.0.88\nhost compiler: g++ 13.3.0"
                  "\ngpu: NVIDIA H200\ncompute capability: 9.0\nsms: 132"
                  "\nmig: off\necc: on\ndriver: 580.159.04\ndate: " +
                  date + "T10:20:30Z\nexit: 0\nsanitizer: " + sanitizer +
                  "\n-- stdout --\n" + kOutput + "-- stderr --\n");
}

const char kRun[] = "evidence/alpha/nvidia-h200-2026-11-30.txt";
const char kOldRun[] = "evidence/alpha/nvidia-h200-2026-11-29.txt";
const char kKnobsRun[] = "evidence/knobs-alpha/nvidia-h200-2026-11-30.txt";
const char kFigure[] = "evidence/figures/alpha-sweep.svg";
const char kClean[] = "memcheck 0, racecheck 0, synccheck 0, initcheck 0";

// A repository in a folder of its own.
class Tree {
   public:
    explicit Tree(const std::map<std::string, std::string> &files) {
        for (const auto &[path, text] : files) write(path, text);
    }
    void write(const std::string &path, const std::string &text) const {
        writeFile(dir_.path() / path, text);
    }
    std::string read(const std::string &path) const {
        return readFile(dir_.path() / path);
    }
    void remove(const std::string &path) const {
        std::filesystem::remove_all(dir_.path() / path);
    }
    std::string root() const { return dir_.path().string(); }
    gate::Repository repository() const { return gate::readRepository(root()); }
    Texts faults() const {
        gate::Repository read = repository();
        return lines(gate::checkAll(&read));
    }
    Texts weave() const {
        gate::Repository read = repository();
        return lines(gate::weaveAll(&read));
    }

   private:
    static Texts lines(const gate::Faults &faults) {
        Texts result;
        for (const gate::Fault &fault : faults)
            result.push_back(gate::faultLine(fault));
        return result;
    }
    TempDir dir_;
};

// The fingerprint of a source as it stands.
std::string fingerprint(const Tree &tree, const std::string &path) {
    return run("sh evidence/capture.sh --fingerprint " +
               ::quoted(tree.root() + "/" + path))
        .out.substr(0, 64);
}

// The files of the sound repository, woven.
const std::map<std::string, std::string> &soundFiles() {
    static const std::map<std::string, std::string> files = [] {
        std::map<std::string, std::string> result = {
            {"Makefile", "LESSONS := alpha/alpha \\\n\talpha/beta\n"},
            {"alpha/alpha.cu", std::string(kAlphaHeader) + kBody},
            {"alpha/beta.cu", std::string(kBetaHeader) + kBody},
            {"alpha/README.md", kAlphaReadme},
            {"README.md", kReadme},
            {"evidence/README.md",
             "# Evidence\n\n<!-- index -->\n<!-- end index -->\n\n"
             "With one producer: <!--= knobs-alpha/sweep/65536/sum_ms -->"
             "<!--/--> ms.\n"},
            {"evidence/capture.sh", readFile("evidence/capture.sh")},
            {"research/CLAIMS.md", kClaims}};
        Tree tree(result);
        const std::string current = fingerprint(tree, "alpha/alpha.cu");
        result[kRun] = transcript(current, "2026-11-30", kClean);
        result[kOldRun] =
            transcript(std::string(64, '0'), "2026-11-29", kClean);
        result[kKnobsRun] = transcript(current, "2026-11-30", "not applicable");
        result[kFigure] = "<svg>\n<!-- drawn from " + std::string(kRun) + " " +
                          result[kRun].substr(result[kRun].size() - 68, 64) +
                          " -->\n</svg>\n";
        for (const char *path : {kRun, kOldRun, kKnobsRun, kFigure})
            tree.write(path, result[path]);
        tree.weave();
        for (const char *path :
             {"README.md", "alpha/README.md", "evidence/README.md"})
            result[path] = tree.read(path);
        return result;
    }();
    return files;
}

TEST(Gate, FindsNothingInASoundRepository) {
    EXPECT_EQ(Tree(soundFiles()).faults(), Texts());
}

TEST(Gate, WeavesWhatTheSourcesHave) {
    EXPECT_EQ(soundFiles().at("README.md"), R"(# Lessons

Adds <!--= alpha/sweep/65536/sum_ms -->1.2500<!--/--> ms in 90 minutes of reading,
above <!--= alpha/device/floor_us -->3.4123<!--/--> us.

<!-- output alpha/sweep -->
```text
== sweep: one sum ==
       n  sum_ms  fastest
    4096 0.0037*        -
   65536  1.2500     tree
```
<!-- end output -->

<!-- snippet beta/add -->
```cuda
if (threadIdx.x < 32) {
    atomicAdd(total, 1.0f);  // "//" is no comment in "a//b"
}
```
<!-- end snippet -->

<!-- output beta/sweep -->
not yet recorded
<!-- end output -->

<!-- figure alpha/sweep: time against n -->
![time against n](evidence/figures/alpha-sweep.svg)
<!-- end figure -->

```sh
make run
```
)");
    EXPECT_EQ(soundFiles().at("evidence/README.md"), R"(# Evidence

<!-- index -->
| lesson | GPU | capability | toolkit | driver | sanitizer | source | transcript |
|---|---|---|---|---|---|---|---|
| alpha | NVIDIA H200 | 9.0 | 13.0.88 | 580.159.04 | clean | earlier | [2026-11-29](alpha/nvidia-h200-2026-11-29.txt) |
| alpha | NVIDIA H200 | 9.0 | 13.0.88 | 580.159.04 | clean | current | [2026-11-30](alpha/nvidia-h200-2026-11-30.txt) |
| knobs-alpha | NVIDIA H200 | 9.0 | 13.0.88 | 580.159.04 | - | current | [2026-11-30](knobs-alpha/nvidia-h200-2026-11-30.txt) |
<!-- end index -->

With one producer: <!--= knobs-alpha/sweep/65536/sum_ms -->1.2500<!--/--> ms.
)");
}

// A fault of gate_faults.txt: one place of the sound repository put otherwise,
// and all that the gate says.
struct Fault {
    std::string name;
    std::string file;
    std::string from;
    std::string to;
    Texts lines;
};

void PrintTo(const Fault &fault, std::ostream *out) { *out << fault.name; }

std::string unescaped(const std::string &text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i)
        if (text.compare(i, 2, "\\x") == 0) {
            result += char(std::stoi(text.substr(i + 2, 2), nullptr, 16));
            i += 3;
        } else {
            result += text[i];
        }
    return result;
}

std::vector<Fault> readFaults() {
    std::vector<Fault> faults;
    bool open = false;
    for (const std::string &line :
         gate::splitLines(readFile("research/tests/gate_faults.txt"))) {
        const char kind = line.empty() ? '#' : line[0];
        open = open && !line.empty();
        if (kind == '#') continue;
        const std::string rest = unescaped(line.substr(1));
        if (!open) {
            const gate::Lines parts = gate::words(line);
            faults.push_back({parts.at(0), parts.at(1), "", "", {}});
            open = true;
        } else if (kind == '>') {
            faults.back().lines.push_back(rest.substr(1));
        } else {
            (kind == '-' ? faults.back().from : faults.back().to) +=
                rest + "\n";
        }
    }
    for (Fault &fault : faults)
        for (std::string *text : {&fault.from, &fault.to})
            if (!text->empty()) text->pop_back();
    return faults;
}

class Planted : public testing::TestWithParam<Fault> {};

TEST_P(Planted, IsReportedInTheseWords) {
    const Fault &fault = GetParam();
    const Tree tree(soundFiles());
    std::string text = replaced(tree.read(fault.file), fault.from, fault.to);
    if (fault.name.find("Sealed") != fault.name.npos) text = sealed(text);
    tree.write(fault.file, text);
    ASSERT_FALSE(fault.lines.empty());
    EXPECT_EQ(tree.faults(), fault.lines);
}

INSTANTIATE_TEST_SUITE_P(, Planted, testing::ValuesIn(readFaults()),
                         [](const testing::TestParamInfo<Fault> &info) {
                             return info.param.name;
                         });

// --- what no replacement in one place can show ---

std::string line(const std::string &file, size_t number, int rule,
                 const std::string &text) {
    return file + ":" + std::to_string(number) + ": rule " +
           std::to_string(rule) + ": " + text;
}
const char kAgain[] = "; remove the transcript or capture it again";

TEST(Gate, LinksAFigureFromTheFolderOfTheReadme) {
    for (const auto &[readme, link] :
         {std::pair("README.md", "evidence/figures/alpha-sweep.svg"),
          std::pair("alpha/README.md", "../evidence/figures/alpha-sweep.svg"),
          std::pair("evidence/README.md", "figures/alpha-sweep.svg")}) {
        const Tree tree(soundFiles());
        const std::string open = "<!-- figure alpha/sweep: time -->\n";
        const std::string close = "<!-- end figure -->\n";
        const std::string before = tree.read(readme) + "\n";
        tree.write(readme, before + open + close);
        EXPECT_EQ(tree.weave(), Texts());
        EXPECT_EQ(tree.read(readme),
                  before + open + "![time](" + link + ")\n" + close);
    }
}

TEST(Gate, LetsACommentBeMendedWithoutANewRun) {
    const Tree tree(soundFiles());
    tree.write("alpha/alpha.cu",
               replaced(tree.read("alpha/alpha.cu"), "// Day 1: a sum",
                        "// Day 1: one sum"));
    EXPECT_EQ(tree.faults(), Texts());
}

TEST(Gate, FindsATranscriptThatIsNoTranscript) {
    const std::string sound = soundFiles().at(kRun);
    const std::string cut = sound.substr(0, sound.size() / 2);
    const std::string noEnd = std::string(
                                  "the last line is not '-- end "
                                  "CHECKSUM --': the file was cut off "
                                  "or added to") +
                              kAgain;
    const std::string noText =
        std::string("a byte here is no printable ASCII") + kAgain;
    std::string returns;
    for (char c : sound) returns += c == '\n' ? "\r\n" : std::string(1, c);
    const struct {
        std::string text;
        std::string line;
    } kCases[] = {{"", line(kRun, 1, 3, noEnd)},
                  {"\n", line(kRun, 1, 3, noEnd)},
                  {cut, line(kRun, std::count(cut.begin(), cut.end(), '\n') + 1,
                             3, noEnd)},
                  {sound.substr(0, sound.size() - 1), line(kRun, 31, 3, noEnd)},
                  {sound + "\n", line(kRun, 32, 3, noEnd)},
                  {std::string("\x7f"
                               "ELF\0\1\2\n\xff\xfe",
                               10),
                   line(kRun, 1, 3, noText)},
                  {returns, line(kRun, 1, 3, noText)}};
    for (const auto &[text, want] : kCases) {
        const Tree tree(soundFiles());
        tree.write(kRun, text);
        EXPECT_EQ(tree.faults(), Texts{want}) << text;
    }
}

TEST(Gate, FindsATranscriptOfAnotherLesson) {
    const Tree tree(soundFiles());
    const std::string file = "evidence/beta/nvidia-h200-2026-11-30.txt";
    tree.write(file, soundFiles().at(kRun));
    tree.weave();  // the index
    EXPECT_EQ(tree.faults(),
              Texts{line(file, 1, 3,
                         "this is a transcript of alpha/alpha.cu, not of "
                         "alpha/beta.cu; remove it")});
}

TEST(Gate, FindsATranscriptOfNoLesson) {
    const Tree tree(soundFiles());
    const std::string file = "evidence/gone/nvidia-h200-2026-11-29.txt";
    tree.write(file, soundFiles().at(kOldRun));
    tree.weave();
    EXPECT_EQ(
        tree.faults(),
        Texts{line(file, 1, 3, "'gone' is no lesson; remove the transcript")});
}

TEST(Gate, FindsASealedTranscriptOfOtherCode) {
    const Tree tree(soundFiles());
    tree.write(kRun, transcript(std::string(64, '0'), "2026-11-30", kClean));
    EXPECT_EQ(tree.faults(),
              (Texts{line("alpha/alpha.cu", 8, 2,
                          std::string(kRun) +
                              " is from a run of other code than this; capture "
                              "again or mark the lesson UNVERIFIED"),
                     line("evidence/README.md", 7, 5,
                          "this is not what the source of 'index' has; run "
                          "make docs")}));
}

// Else code could change, and a file that never does would vouch for it.
TEST(Gate, FindsAFingerprintOfAnotherSource) {
    const Tree tree(soundFiles());
    tree.write("alpha/alpha.cu", replaced(tree.read("alpha/alpha.cu"),
                                          "total, 1.0f", "total, 2.0f"));
    tree.write("LICENSE", "MIT\n");
    tree.write(kRun, transcript(fingerprint(tree, "LICENSE") + " LICENSE",
                                "2026-11-30", kClean));
    tree.remove(kKnobsRun);
    tree.weave();  // the index
    EXPECT_EQ(tree.faults(),
              Texts{line(kRun, 2, 3,
                         "the first fingerprint is that of alpha/alpha.cu, and "
                         "the only one of a lesson; capture again")});
}

// An honest run, but no sentence on a page says that it is of another GPU.
TEST(Gate, WeavesKnobsOfTheGpuOfTheirLessonAlone) {
    const Tree tree(soundFiles());
    std::string other = soundFiles().at(kKnobsRun);
    for (const auto &[from, to] :
         {std::pair("gpu: NVIDIA H200\ncompute ", "gpu: Tesla T4\ncompute "),
          std::pair("gpu: NVIDIA H200\ncompute_", "gpu: Tesla T4\ncompute_"),
          std::pair("11-30T", "12-01T"), std::pair("1.2500", "9.9999")})
        other = replaced(other, from, to);
    tree.write("evidence/knobs-alpha/tesla-t4-2026-12-01.txt", sealed(other));
    EXPECT_EQ(tree.weave(), Texts());
    EXPECT_NE(tree.read("evidence/README.md").find("-->1.2500<!--/-->"),
              std::string::npos);
    tree.remove(kKnobsRun);
    EXPECT_EQ(tree.weave(), Texts());
    EXPECT_NE(tree.read("evidence/README.md").find("-->not yet recorded<"),
              std::string::npos);
}

TEST(Gate, CallsARunPartialThatDidNotLookAtEverything) {
    Tree tree(soundFiles());
    tree.write("research/CLAIMS.md",
               replaced(kClaims,
                        "- document:", "- sass: sum: `RED` = 1\n- document:"));
    const std::string end = "\nAll checks passed.\n";
    const auto indexed = [&](const std::string &claims,
                             const std::string &skipped = "0") {
        const std::string sections =
            claims + "\n== total: all ==\nskipped: " + skipped + "\n";
        tree.write(
            "evidence/check-gpu/nvidia-h200-2026-11-30.txt",
            sealed(replaced(soundFiles().at(kKnobsRun), end, sections + end)));
        tree.weave();
        const std::string index = tree.read("evidence/README.md");
        const size_t row = index.find("| check-gpu |");
        EXPECT_NE(row, index.npos);
        return index.substr(row, index.find('\n', row) - row);
    };
    const std::string head = "\n== sass: claims ==\nclaim checks result\n";
    const std::string kPartial = "| partial |", kCurrent = "| current |";
    for (const std::string &claims :
         {std::string(), head + "two-adds 1 passed\n",
          head + "one-add 1 skipped\n"})
        EXPECT_NE(indexed(claims).find(kPartial), std::string::npos) << claims;
    const std::string all = head + "one-add 1 passed\n";
    EXPECT_NE(indexed(all).find(kCurrent), std::string::npos);
    EXPECT_NE(indexed(all, "1").find(kPartial), std::string::npos);
}

TEST(Gate, WeavesANameThatIsAskedFor) {
    const Tree tree(soundFiles());
    tree.write("README.md", "On an <!--= alpha/device/gpu --><!--/-->.\n" +
                                tree.read("README.md"));
    EXPECT_EQ(tree.weave(), Texts());
    EXPECT_EQ(
        tree.read("README.md")
            .find("On an <!--= alpha/device/gpu -->NVIDIA H200<!--/-->.\n"),
        0u);
}

TEST(Gate, TakesAClaimForTheExplanationOfReports) {
    const Tree tree(soundFiles());
    tree.write("research/CLAIMS.md",
               replaced(kClaims, "- ptx:",
                        "- racecheck: sum: `a`; sum: `b`\n"
                        "- ptx:"));
    tree.write(kRun, sealed(replaced(tree.read(kRun), "racecheck 0",
                                     "racecheck 2 (one-add)")));
    tree.write(kFigure,
               "<!-- drawn from " + std::string(kRun) + " " +
                   tree.read(kRun).substr(tree.read(kRun).size() - 68, 64) +
                   " -->");
    tree.weave();
    EXPECT_EQ(tree.faults(), Texts());
}

TEST(Gate, FindsALedgerThatIsNoLedger) {
    const std::string file = "research/CLAIMS.md";
    const std::string none =
        line(file, 1, 10,
             "there is no claim, which begins '## name'; put them back");
    const std::string bytes =
        line(file, 1, 10,
             "a byte of this line is no printable ASCII (a tab or carriage "
             "return is not); replace it");
    std::string returns;
    for (char c : std::string(kClaims))
        returns += c == '\n' ? "\r\n" : std::string(1, c);
    const struct {
        std::string text;
        std::string line;
    } kCases[] = {{"", none},
                  {"# Claims\n", none},
                  {std::string("\x7f"
                               "ELF\0\n## one-add\n",
                               16),
                   bytes},
                  {returns, bytes}};
    for (const auto &[text, want] : kCases) {
        const Tree tree(soundFiles());
        tree.write(file, text);
        EXPECT_EQ(tree.faults(), Texts{want}) << text;
    }
}

TEST(Gate, FindsWhatBelongsNowhere) {
    const Tree tree(soundFiles());
    const Texts paths = {"RESULTS.md",
                         "alpha/notes.txt",
                         "alpha/old/x.cu",
                         "evidence/alpha/notes.md",
                         "evidence/figures/alpha-old.svg",
                         "evidence/knobs-alpha/x.txt/y",
                         "evidence/results.csv",
                         "lib/x.h"};
    Texts want;
    for (const std::string &path : paths) {
        tree.write(path, "");
        const std::string at = path == paths[2]   ? "alpha/old"
                               : path == paths[5] ? "evidence/knobs-alpha/x.txt"
                               : path == paths[7] ? "lib"
                                                  : path;
        want.push_back(
            line(at, 1, 1, "nothing of this name belongs here; remove it"));
    }
    for (const char *path : {".hidden", "build/gate", "alpha/alpha"})
        tree.write(path, "");
    EXPECT_EQ(tree.faults(), want);
}

TEST(Gate, NamesAFolderThatStandsForALesson) {
    const Tree tree(soundFiles());
    tree.remove("alpha/beta.cu");
    tree.write("alpha/beta.cu/x", "");
    EXPECT_EQ(tree.faults()[0],
              line("Makefile", 1, 1,
                   "there is no file alpha/beta.cu; write it or take it from "
                   "the list"));
}

TEST(Gate, UnderstandsACommentBehindTheList) {
    const Tree tree(soundFiles());
    tree.write("Makefile",
               "LESSONS_NOTE = x\nLESSONS := alpha/alpha alpha/beta # both\n");
    EXPECT_EQ(tree.faults(), Texts());
}

TEST(Gate, FindsAMissingReadme) {
    const Tree tree(soundFiles());
    tree.remove("alpha/README.md");
    EXPECT_EQ(tree.faults(), Texts{line("alpha/README.md", 1, 5,
                                        "this README is missing; write it")});
}

TEST(Gate, KeepsCountWhateverTheLocale) {
    struct Commas : std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };
    const Tree tree(soundFiles());
    tree.write("README.md",
               tree.read("README.md") + std::string(2000, '\n') + "7.37 ms\n");
    std::setlocale(LC_ALL, "de_DE.UTF-8");
    const std::locale before =
        std::locale::global(std::locale(std::locale(), new Commas));
    const Texts faults = tree.faults();
    std::locale::global(before);
    std::setlocale(LC_ALL, "C");
    EXPECT_EQ(faults,
              Texts{line("README.md", 2034, 5,
                         "'7.37 ms' has a unit, three decimals or a cell of "
                         "its own, outside markers; weave it from a "
                         "transcript or leave it out")});
}

TEST(FindUnits, TellsUnitsFromOtherWords) {
    for (const char *text : {"5 us",
                             "5us",
                             "5 ns",
                             "1e-3 s",
                             "5\nms",
                             "`5` ms",
                             "**5** ms",
                             "_5_ ms",
                             "[5](a) ms",
                             "5 GB/s",
                             "5 GB / s",
                             "32.5 TFMA/s",
                             "92%",
                             "92 %",
                             "5 percent",
                             "5 per cent",
                             "4x",
                             "1.05 x",
                             "4 x",
                             "10 TFLOPS",
                             "1,024 ms",
                             "> 5\n> ms",
                             "4 x 4 ms",
                             "3 seconds",
                             "7.3700",
                             "7.*3*700",
                             "4096 0.0037*",
                             "it was 1.250.",
                             "(5 ms)",
                             "5 nsec",
                             "700 cycles",
                             "1980 MHz",
                             "1.98 GHz",
                             "5-fold",
                             "5 fold",
                             "a factor of 5",
                             "a factor\nof 5",
                             "a speedup of 5",
                             "speed-up of 5",
                             "| ms |\n|---|\n| 5 |",
                             "n | ms\n---|---\n5 | a",
                             "x230",
                             "x2.5",
                             "230:1",
                             "5 times better",
                             "5 times faster",
                             "1.5 times"})
        EXPECT_EQ(gate::findUnits(text).size(), 1u) << text;
    for (const char *text : {"90 minutes",
                             "sm_90 x",
                             "4 x 4 tiles",
                             "128x128",
                             "0x10",
                             "V13.0.88 says",
                             "580.159.04",
                             "CUDA 12.5",
                             "1.25 of 4",
                             "sm_1.250",
                             "5\n\nms",
                             "day 26",
                             "4 Mi",
                             "2^22 adds",
                             "float4 s",
                             "run it 20 times",
                             "H200 ms",
                             "five ms",
                             "5 items",
                             "| ms |\n|---|\n| a |",
                             "| 4 lanes | n 5 |",
                             "48 KiB",
                             "32 lanes",
                             "1 of 4 streams",
                             "0.001f",
                             "version 580.159",
                             "[a](https://b.c/1.2500/5ms)",
                             "x86-64",
                             "x0 and x1",
                             "at 12:10",
                             "4 times the adds"})
        EXPECT_EQ(gate::findUnits(text).size(), 0u) << text;
}

// --- the program ---

const std::string kGate =
    ::quoted(std::filesystem::absolute("build/gate").string());

Outcome runGate(const Tree &tree, const std::string &arguments) {
    return run("cd " + ::quoted(tree.root()) + " && LC_ALL=de_DE.UTF-8 " +
               kGate + " " + arguments);
}

TEST(Program, SaysThatAllIsWell) {
    const Tree tree(soundFiles());
    const Outcome outcome = runGate(tree, "");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out,
              "gate: no fault in 2 lessons, 3 transcripts, 3 "
              "READMEs and 1 claims\n");
    EXPECT_EQ(outcome.err, "");
}

TEST(Program, ReportsAllFaultsInOrderAndFails) {
    const Tree tree(soundFiles());
    tree.write("README.md", "takes 5 ms\n" + tree.read("README.md"));
    tree.write("alpha/README.md",
               "takes 4x\n\nand 5%\n" + tree.read("alpha/README.md"));
    const Outcome outcome = runGate(tree, "");
    EXPECT_EQ(outcome.status, 1);
    const std::string text =
        "' has a unit, three decimals or a cell of its own, outside markers; "
        "weave it "
        "from a transcript or leave it out\n";
    EXPECT_EQ(outcome.out, line("README.md", 1, 5, "'5 ms" + text) +
                               line("alpha/README.md", 1, 5, "'4 x" + text) +
                               line("alpha/README.md", 3, 5, "'5 %" + text));
}

// This repository itself.
TEST(Program, FindsNoFaultHere) {
    const Outcome outcome = run(kGate);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
}

TEST(Program, SaysWhyItCannotRun) {
    const struct {
        const char *file;
        const char *text;  // or nullptr for no file
        const char *error;
    } kCases[] = {
        {"Makefile", nullptr,
         "gate: Makefile is missing; put it back, or run this in the "
         "repository's top folder\n"},
        {"Makefile", "all:\n",
         "gate: Makefile: no list 'LESSONS := ...'; write it\n"},
        {"Makefile", "LESSONS := alpha/alpha\nLESSONS := alpha/beta\n",
         "gate: Makefile: a second list LESSONS; keep one\n"},
        {"alpha/alpha.cu", "",
         "gate: alpha/alpha.cu is empty or has carriage returns; write its "
         "lines and end them plainly\n"},
        {"alpha/beta.cu", "int main() {}\r\n",
         "gate: alpha/beta.cu is empty or has carriage returns; write its "
         "lines and end them plainly\n"},
        {"Makefile/x", "", "gate: ./Makefile is no file; put it there\n"},
        {"research/CLAIMS.md", nullptr,
         "gate: research/CLAIMS.md is missing; put it back, or run this in the "
         "repository's top folder\n"},
        {"evidence/capture.sh", nullptr,
         "gate: evidence/capture.sh is missing; put it back, or run this in "
         "the repository's top folder\n"},
        {"evidence/capture.sh", "echo\n",
         "gate: this prints no sha256; run it and see why: cd '.' && sh "
         "evidence/capture.sh --fingerprint 'alpha/alpha.cu'\n"}};
    for (const auto &[file, text, error] : kCases) {
        const Tree tree(soundFiles());
        tree.remove(std::string(file).substr(0, std::string(file).find("/x")));
        if (text) tree.write(file, text);
        const Outcome outcome = runGate(tree, "");
        EXPECT_EQ(outcome.status, 2);
        EXPECT_EQ(outcome.err, error);
    }
    const Tree tree(soundFiles());
    EXPECT_EQ(runGate(tree, ">/dev/full").status, 2);
    EXPECT_EQ(runGate(tree, "--skip").err,
              "gate: usage: gate [--weave | --snippets FOLDER]\n");
}

TEST(Program, WeavesTheSameTwice) {
    const Tree tree(soundFiles());
    tree.write("README.md", kReadme);
    EXPECT_EQ(runGate(tree, "--weave").status, 0);
    EXPECT_EQ(tree.read("README.md"), soundFiles().at("README.md"));
    const auto written = [&] {
        return std::filesystem::last_write_time(tree.root() + "/README.md");
    };
    const auto before = written();
    EXPECT_EQ(runGate(tree, "--weave").status, 0);
    EXPECT_EQ(written(), before);
}

TEST(Program, WeavesNothingIntoAReadmeWhoseMarkersDoNotPairUp) {
    const Tree tree(soundFiles());
    const std::string text =
        kReadme + std::string("<!-- output beta/sweep -->\n");
    tree.write("README.md", text);
    const Outcome outcome = runGate(tree, "--weave");
    EXPECT_EQ(outcome.status, 1);
    const std::string last =
        line("README.md", std::count(text.begin(), text.end(), '\n'), 5,
             "this marker is incomplete, or inside a fence, or the next "
             "marker is not its end; mend it\n");
    ASSERT_GT(outcome.out.size(), last.size());
    EXPECT_EQ(outcome.out.substr(outcome.out.size() - last.size()), last);
    EXPECT_EQ(tree.read("README.md"), text);
}

TEST(Program, WeavesNothingOverProse) {
    const Tree tree(soundFiles());
    const std::string text = replaced(
        kReadme, "sweep -->\n<!-- end output -->\n\n<!-- snippet",
        "sweep -->\nThis is why.\n<!-- end output -->\n\n<!-- snippet");
    tree.write("README.md", text);
    tree.write("alpha/README.md", kAlphaReadme);
    const Outcome outcome = runGate(tree, "--weave");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out.substr(0, outcome.out.find('\n', 120)),
              "alpha/README.md: woven\n" +
                  line("README.md", 3, 5,
                       "this is not what the source of "
                       "'alpha/sweep/65536/sum_ms' has; run make docs"));
    EXPECT_EQ(tree.read("README.md"), text);
}

TEST(Program, LosesNothingWhenTheDiskIsFull) {
    const Tree tree(soundFiles());
    tree.write("README.md", kReadme);
    const Outcome outcome =
        run("(trap '' XFSZ; ulimit -f 0; cd " + ::quoted(tree.root()) + " && " +
            kGate + " --weave 2>&1) | cat");
    EXPECT_EQ(outcome.out,
              "gate: ./README.md cannot be written (File too "
              "large); it is as it was\n");
    EXPECT_EQ(tree.read("README.md"), kReadme);
    size_t files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(tree.root()))
        files += entry.is_regular_file();
    EXPECT_EQ(files, 2u);  // Makefile and README.md
}

TEST(Program, WritesSnippetsReadyToPaste) {
    const Tree tree(soundFiles());
    tree.write("build/s/alpha/gone.cu", "");
    EXPECT_EQ(runGate(tree, "--snippets build/s").status, 0);
    EXPECT_EQ(tree.read("build/s/alpha/add.cu"),
              "if (threadIdx.x < 32) {\n"
              "    atomicAdd(total, 1.0f);  // \"//\" is no comment in "
              "\"a//b\"\n}\n");
    EXPECT_FALSE(
        std::filesystem::exists(tree.root() + "/build/s/alpha/gone.cu"));
    tree.write("blocked", "");
    const Outcome outcome = runGate(tree, "--snippets blocked");
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err,
              "gate: blocked/alpha cannot be made (Not a directory)\n");
    std::filesystem::create_symlink("nowhere", tree.root() + "/dangling");
    EXPECT_NE(runGate(tree, "--snippets dangling").err.find("File exists"),
              std::string::npos);
}

// --- damage by the thousand ---

// Damages text in one to three places: bytes changed, put in, left out; lines
// twice, swapped, left out; the end cut off; line ends of another system.
std::string damaged(std::string text, std::mt19937 &random) {
    const auto below = [&](size_t n) {
        return std::uniform_int_distribution<size_t>(
            0, n == 0 ? 0 : n - 1)(random);
    };
    for (size_t times = 1 + below(3); times > 0; --times) {
        gate::Lines lines = gate::splitLines(text);
        const size_t at = below(text.size()), i = below(lines.size());
        const std::string kBytes("\0\r\n\t \"'\\/`<>-=:|*~{}x9\xff", 22);
        switch (below(8)) {
            case 0:
                if (!text.empty()) text[at] = kBytes[below(kBytes.size())];
                continue;
            case 1:
                text.insert(at, 1 + below(3), kBytes[below(kBytes.size())]);
                continue;
            case 2:
                text.erase(at, 1 + below(40));
                continue;
            case 3:
                text.resize(at);
                continue;
            case 4:
                if (!text.empty()) text[at] ^= char(1 << below(8));
                continue;
            case 5:
                if (!lines.empty()) lines.insert(lines.begin() + i, lines[i]);
                break;
            case 6:
                if (!lines.empty())
                    std::swap(lines[i], lines[below(lines.size())]);
                break;
            case 7:
                if (!lines.empty()) lines.erase(lines.begin() + i);
                break;
        }
        text.clear();
        for (const std::string &line : lines) text += line + "\n";
    }
    return text;
}

constexpr int kDamages = 1000;

TEST(Fuzz, NoDamagedTranscriptPasses) {
    std::mt19937 random(1);
    const std::string sound = soundFiles().at(kRun);
    const std::string above = sound.substr(0, sound.find("-- end "));
    const std::string hash = sound.substr(sound.size() - 68, 64);
    int damages = 0;
    for (int i = 0; i < kDamages; ++i) {
        const std::string text = damaged(sound, random);
        if (text == sound) continue;
        // What sha256sum would say, as two texts never have one sha256.
        const auto checksum = [&](size_t bytes) {
            return text.substr(0, bytes) == above ? hash : std::string(64, '?');
        };
        gate::Faults faults;
        gate::readTranscript(kRun, text, checksum, &faults);
        ASSERT_FALSE(faults.empty()) << text;
        ++damages;
    }
    EXPECT_GT(damages, kDamages * 9 / 10);
}

// Damage that the checksum covers: nothing but the other rules can object.
TEST(Fuzz, SealedDamageIsReadWithoutACrash) {
    std::mt19937 random(2);
    const Tree tree(soundFiles());
    gate::Repository repository = tree.repository();
    for (int i = 0; i < kDamages; ++i) {
        const std::string text = damaged(soundFiles().at(kRun), random) +
                                 "-- stderr --\n-- end " +
                                 std::string(64, '0') + " --\n";
        gate::Faults faults;
        gate::Transcript read = gate::readTranscript(
            kRun, text, [](size_t) { return std::string(64, '0'); }, &faults);
        read.current = true;
        for (gate::Transcript &other : repository.transcripts)
            if (other.path == kRun) other = read;
        gate::checkEvidence(&repository);
        if (i % 4 == 0) gate::weaveReadme(repository, repository.readmes[0]);
    }
}

TEST(Fuzz, DamagedLessonsAreReadWithoutACrash) {
    std::mt19937 random(3);
    gate::Repository repository;
    repository.lessons.resize(1);
    int quiet = 0;
    for (int i = 0; i < kDamages; ++i) {
        repository.lessons[0] = gate::readLesson(
            "alpha/beta.cu", damaged(soundFiles().at("alpha/beta.cu"), random));
        quiet += gate::checkAll(&repository).empty();
    }
    EXPECT_LT(quiet, kDamages / 2);
}

// And what is woven from a damaged README stays as it is when woven again.
TEST(Fuzz, DamagedReadmesAreWovenWithoutACrash) {
    std::mt19937 random(4);
    const Tree tree(soundFiles());
    gate::Repository repository = tree.repository();
    gate::checkEvidence(&repository);
    for (int i = 0; i < kDamages; ++i) {
        const char *path = i % 2 == 0 ? "README.md" : "evidence/README.md";
        const std::string text = damaged(soundFiles().at(path), random);
        const gate::Woven once = gate::weaveReadme(repository, {path, text});
        const gate::Woven twice =
            gate::weaveReadme(repository, {path, once.text});
        ASSERT_EQ(twice.text, once.text) << text;
    }
}

// A line that is long enough to exhaust a stack that grows with it.
TEST(Fuzz, LongLinesAreReadWithoutACrash) {
    for (const char *path :
         {"README.md", "alpha/beta.cu", "Makefile", kRun, "research/CLAIMS.md"})
        for (const char *part :
             {"x", "- ", "1", "\"", "1,", "<!--", "== ", "| "}) {
            const Tree tree(soundFiles());
            std::string line;
            while (line.size() < 200000) line += part;
            tree.write(path, tree.read(path) + line + "\n");
            if (path == std::string("Makefile"))
                EXPECT_EQ(tree.faults(), Texts());
            else
                EXPECT_NE(tree.faults(), Texts()) << path << " " << part;
        }
}

TEST(Fuzz, DamagedClaimsAreReadWithoutACrash) {
    std::mt19937 random(5);
    const Tree tree(soundFiles());
    gate::Repository repository = tree.repository();
    for (int i = 0; i < kDamages / 4; ++i) {
        gate::Faults faults;
        repository.claims = gate::readClaims("research/CLAIMS.md",
                                             damaged(kClaims, random), &faults);
        gate::rule10(repository, &faults);
    }
}

}  // namespace
