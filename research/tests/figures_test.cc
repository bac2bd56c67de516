// SPDX-License-Identifier: MIT
//
// The figures: drawn in a small tree with made-up transcripts, and what is said
// when they cannot be.

#include <gtest/gtest.h>

#include "shell.h"

namespace {

namespace fs = std::filesystem;

bool holds(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

size_t countOf(const std::string &part, const std::string &text) {
    size_t count = 0;
    for (size_t at = text.find(part); at != text.npos;
         at = text.find(part, at + 1))
        ++count;
    return count;
}

const char kSweep[] =
    "== floor: x ==\nfloor_ms: 0.0034\nspread_%: 0.8\nmarked_*: words\n\n"
    "== sweep: x ==\n"
    " n global_GB/s shared_GB/s tree_GB/s fastest\n"
    " 4096 1.64 1.42 4.43* -\n"
    " 65536 2.22 21.14 62.42 tree\n\n"
    "== determinism: x ==\nn: 4\nkernel distinct min max max-min\n"
    "global 20 1 2 1\n";
const char kNs[] =
    "== floor: x ==\nfloor_ns_an_add: 0.00081\n\n"
    "== ns: x ==\nadds: 4194304\n"
    " k adjacent apart warp int shared shared_int\n"
    " 1 1.75 1.76 1.74 0.73 0.04 0.01\n"
    " 4 0.44 0.64 0.63 0.18 0.01 0.0012*\n"
    " 16 0.11 0.24 0.24 0.07 - -\n";
const char kLadder[] =
    "== n26: x ==\nrung us limit_% distinct\n global 1 2 3\n\n"
    "== n28: x ==\nelements: 268435456\nMiB: 1024\n"
    " rung us GB/s limit_% times_faster distinct\n"
    " global - - - - -\n shared 12159.3 88.3 2.0 - 8\n"
    " last 5.0* 99.9* 97.3* 1.00 1\n limit 4.9 98.0 100.0 - -\n";

class Figures : public testing::Test {
   protected:
    Figures() {
        for (const char *name : {"research/figures", "evidence/capture.sh"}) {
            fs::create_directories((root() / name).parent_path());
            fs::copy(name, root() / name, fs::copy_options::recursive);
        }
        lesson("atomics", true);
        lesson("contention", true);
        lesson("sum_ladder", true);
        transcript("atomics", kSweep);
        transcript("contention", kNs);
        transcript("sum_ladder", kLadder);
    }

    fs::path root() const { return dir_.path() / "a tree"; }
    std::string figure(const std::string &name) const {
        return readFile(root() / "evidence/figures" / (name + ".svg"));
    }
    void lesson(const std::string &name, bool verified) {
        writeFile(root() / "atomics" / (name + ".cu"),
                  "// See notes.txt.\n//\n" +
                      (verified ? "// Verified: run on a GPU. The only output "
                                  "that may\n// be published is " +
                                      path(name) + ".\n// How: x\n"
                                : "// UNVERIFIED: not run.\n// How: x\n") +
                      "int " + name + ";\n");
    }
    static std::string path(const std::string &name) {
        return "evidence/" + name + "/gpu-2026-11-30.txt";
    }
    std::string fingerprint(const std::string &name) {
        return run("cd " + quoted(root()) +
                   " && evidence/capture.sh --fingerprint atomics/" + name +
                   ".cu")
            .out.substr(0, 64);
    }
    void transcript(const std::string &name, const std::string &out) {
        writeFile(root() / path(name), "fingerprint: " + fingerprint(name) +
                                           "\ngpu: O'Brien <3\n-- stdout --\n" +
                                           out + "-- stderr --\n-- end " +
                                           std::string(64, 'a') + " --\n");
    }
    // Puts a program before those of the same name.
    void tool(const std::string &name, const std::string &body) {
        const fs::path file = dir_.path() / "bin" / name;
        writeFile(file, "#!/bin/sh\n" + body);
        fs::permissions(file, fs::perms::owner_all);
    }
    Outcome draw() {
        return run("PATH=" + quoted(dir_.path() / "bin") +
                   ":$PATH timeout 60 " +
                   quoted(root() / "research/figures/draw.sh"));
    }
    // That drawing fails with this sentence, and loses and leaves nothing.
    void expectFailure(const std::string &sentence) {
        const std::string before = figure("atomics-sweep");
        const Outcome drawn = draw();
        EXPECT_EQ(drawn.status, 1);
        EXPECT_TRUE(holds(drawn.err, sentence)) << drawn.err;
        EXPECT_EQ(countOf("\n", drawn.err), 1u) << drawn.err;
        EXPECT_EQ(figure("atomics-sweep"), before);
        EXPECT_EQ(run("ls -A " + quoted(root() / "evidence/figures")).out,
                  "atomics-sweep.svg\ncontention-ns.svg\nsum_ladder-n28.svg\n");
        EXPECT_EQ(run("ls -A " + quoted(root() / "build")).out, "");
    }
    TempDir dir_;
};

TEST_F(Figures, NameTheirTranscriptAndHaveATitle) {
    const Outcome drawn = draw();
    ASSERT_EQ(drawn.status, 0) << drawn.err;
    EXPECT_EQ(drawn.out,
              "evidence/figures/atomics-sweep.svg\n"
              "evidence/figures/contention-ns.svg\n"
              "evidence/figures/sum_ladder-n28.svg\n");
    EXPECT_EQ(drawn.err, "");
    const std::string svg = figure("atomics-sweep");
    EXPECT_TRUE(holds(svg, "<title>One sum of n floats, three ways</title>"));
    EXPECT_TRUE(holds(svg, "<desc>Drawn from " + path("atomics") +
                               ", fingerprint " + fingerprint("atomics") +
                               "</desc>"));
    EXPECT_TRUE(holds(svg, "<!-- drawn from " + path("atomics") + " " +
                               std::string(64, 'a') + " -->"));
    EXPECT_TRUE(holds(svg, "three ways (O'Brien &lt;3)"));
    EXPECT_TRUE(holds(figure("contention-ns"), path("contention")));
}

// Each figure has a point of its own, a hollow one if it is marked; '-' has
// none. The legend has one point a curve and a hollow circle.
TEST_F(Figures, ShowEveryFigureOnceAndMarkedOnesHollow) {
    ASSERT_EQ(draw().status, 0);
    const auto points = [&](const char *name, const std::string &kind) {
        return countOf(kind + "' transform='translate(", figure(name));
    };
    EXPECT_EQ(points("atomics-sweep", "gpPt6"), 2u + 1);
    EXPECT_EQ(points("atomics-sweep", "gpPt8"), 1u + 1);
    EXPECT_EQ(points("atomics-sweep", "gpPt7"), 1u);
    EXPECT_EQ(points("atomics-sweep", ""), 6u + 3 + 1);
    EXPECT_EQ(points("contention-ns", ""), 16u + 6 + 1);
    transcript("atomics", std::string(kSweep).replace(
                              std::string(kSweep).find("4.43*"), 5, "4.43"));
    ASSERT_EQ(draw().status, 0);
    EXPECT_EQ(points("atomics-sweep", "gpPt7"), 0u);
    EXPECT_EQ(points("atomics-sweep", ""), 6u + 3 + 1);
}

TEST_F(Figures, ShowEachRungsShareAsABar) {
    ASSERT_EQ(draw().status, 0);
    const std::string svg = figure("sum_ladder-n28");
    for (const char *label :
         {">shared<", ">last<", ">2.0<", ">97.3<", ">100.0<"})
        EXPECT_TRUE(holds(svg, label)) << label;
}

TEST_F(Figures, HaveNoBackgroundAndNoColourOfOnePageOnly) {
    ASSERT_EQ(draw().status, 0);
    for (const char *name :
         {"atomics-sweep", "contention-ns", "sum_ladder-n28"}) {
        const std::string svg = figure(name);
        EXPECT_EQ(countOf("<rect x=", svg), 1u);
        EXPECT_TRUE(holds(svg, "<rect x=\"0\" y=\"0\" width=\"760\""));
        EXPECT_TRUE(holds(svg, "height=\"520\" fill=\"none\"/>"));
        EXPECT_FALSE(holds(svg, "rgb(  0,   0,   0)"));
        EXPECT_FALSE(holds(svg, "rgb(255, 255, 255)"));
    }
}

TEST_F(Figures, AreTheSameEachTime) {
    ASSERT_EQ(draw().status, 0);
    const std::string first = figure("contention-ns");
    ASSERT_EQ(draw().status, 0);
    EXPECT_EQ(figure("contention-ns"), first);
}

TEST_F(Figures, WaitUntilTheLessonIsRecorded) {
    lesson("contention", false);
    const Outcome drawn = draw();
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    EXPECT_TRUE(holds(drawn.out,
                      "evidence/figures/contention-ns.svg: not drawn, "
                      "atomics/contention.cu is not yet recorded\n"));
    EXPECT_FALSE(fs::exists(root() / "evidence/figures/contention-ns.svg"));
    EXPECT_TRUE(fs::exists(root() / "evidence/figures/atomics-sweep.svg"));
}

TEST_F(Figures, AreNotDrawnFromWhatDoesNotCount) {
    ASSERT_EQ(draw().status, 0);
    std::string none = kSweep;
    none.replace(none.find("== sweep"), 8, "== sleep");
    transcript("atomics", none);
    expectFailure("draw.sh: " + path("atomics") +
                  " has no table in section sweep");
    writeFile(root() / path("atomics"),
              "fingerprint: " + fingerprint("atomics") + "\n" + kSweep);
    expectFailure("draw.sh: " + path("atomics") + " is not whole");
    transcript("atomics", kSweep);
    run("echo 'int more;' >>" + quoted(root() / "atomics/atomics.cu"));
    expectFailure("draw.sh: " + path("atomics") +
                  " is of an earlier atomics/atomics.cu: record it again");
    fs::remove(root() / path("atomics"));
    expectFailure("draw.sh: atomics/atomics.cu names " + path("atomics") +
                  ", which is not there");
}

TEST_F(Figures, SayWhatIsWrongWithGnuplot) {
    ASSERT_EQ(draw().status, 0);
    tool("gnuplot", "echo 'line 1: bad terminal' >&2; exit 1\n");
    expectFailure(
        "draw.sh: gnuplot does not draw atomics-sweep: line 1: bad terminal");
    tool("gnuplot",
         "sed -n \"s/^svg = '\\(.*\\)'/\\1/p\" \"$1\" >x\n"
         "echo '<title>' >\"$(cat x)\"; rm x\n");
    expectFailure("draw.sh: cannot write evidence/figures/atomics-sweep.svg");
}

TEST_F(Figures, SayThatGnuplotIsMissing) {
    ASSERT_EQ(draw().status, 0);
    fs::create_directories(dir_.path() / "few");
    for (const char *name : {"dirname", "sh"})
        run("ln -s \"$(command -v " + std::string(name) + ")\" " +
            quoted(dir_.path() / "few"));
    const Outcome drawn = run("PATH=" + quoted(dir_.path() / "few") + " " +
                              quoted(root() / "research/figures/draw.sh"));
    EXPECT_EQ(drawn.status, 1);
    EXPECT_TRUE(holds(drawn.err, "draw.sh: no gnuplot to draw the figures"));
    EXPECT_EQ(countOf("\n", drawn.err), 1u) << drawn.err;
}

}  // namespace
