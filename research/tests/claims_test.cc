// SPDX-License-Identifier: MIT
//
// The PTX checks of research/CLAIMS.md: nvcc compiles the lesson for each
// architecture that a claim names, and in the code of the kernel or device
// function that a check names, so many lines have to match.

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "../gate/read.h"
#include "shell.h"

namespace {

// The lines between the braces of each function in ptx, without comments and
// blank lines; under the function's name as PTX has it, and all under *.
std::map<std::string, gate::Lines> functions(const std::string &ptx) {
    static const std::regex kHead(
        "(?:\\.\\w+ )*\\.(?:entry|func) *(?:\\([^)]*\\) *)?([\\w$]+).*");
    std::map<std::string, gate::Lines> found;
    std::string name;
    size_t depth = 0;  // of braces
    for (std::string line : gate::splitLines(ptx)) {
        line = gate::trim(line.substr(0, line.find("//")));
        std::smatch head;
        if (line.empty()) continue;
        found["*"].push_back(line);
        if (depth == 0 && std::regex_match(line, head, kHead)) name = head[1];
        const bool inside = depth > 0;
        for (char c : line) {
            if (c == '{') ++depth;
            if (c == '}' && depth > 0) --depth;
        }
        if (inside && depth > 0 && !name.empty()) found[name].push_back(line);
        if (depth == 0 && (inside || line.back() == ';')) name.clear();
    }
    return found;
}

// Whether PTX's name is that of a C++ function: the same, or mangled from it.
bool isNameOf(const std::string &mangled, const std::string &name) {
    const std::string part = std::to_string(name.size()) + name;
    const size_t at = mangled.find(part);
    return mangled == name ||
           (mangled.compare(0, 2, "_Z") == 0 && at != mangled.npos &&
            !std::isdigit(mangled[at - 1]));
}

// What is wrong with ptx by this check; empty if nothing is.
std::string complaint(const std::string &ptx, const gate::CodeCheck &check) {
    std::string text;
    size_t matched = 0;
    try {
        const std::regex regex(check.regex);
        for (const auto &[name, lines] : functions(ptx)) {
            if (!isNameOf(name, check.name)) continue;
            ++matched;
            size_t count = 0;
            std::string which;
            for (const std::string &line : lines)
                if (std::regex_search(line, regex)) {
                    ++count;
                    which += "    " + line + "\n";
                }
            if (check.relation == "="    ? count != check.count
                : check.relation == ">=" ? count < check.count
                                         : count > check.count)
                text += name + " has " + std::to_string(count) +
                        " lines that match:\n" + which;
        }
    } catch (const std::regex_error &) {
        return "no regular expression: " + check.regex + "\n";
    }
    if (matched == 0) return "there is no function " + check.name + "\n";
    return text;
}

TEST(Functions, AreReadFromPtx) {
    const std::string ptx =
        ".version 9.0\n.visible .entry _Z3sumPf(\n.param .u64 a\n)\n"
        ".maxntid 256\n{\n.reg .b32 %r<2>;\n// red.global\n"
        "red.global.add.f32 [%rd1], %f1; // add\n@%p1 bra $L1;\n\n{\n"
        "call.uni (_), f;\n}\nret;\n}\n"
        ".func (.param .b32 func_retval0) _Z3addf(.param .b32 x)\n;\n"
        ".func (.param .b32 func_retval0) _Z3addf(\n.param .b32 x\n)\n{\n"
        "add.f32 %f1, %f1, %f1;\nret;\n}\n";
    const auto found = functions(ptx);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found.at("_Z3addf").size(), 2u);
    const auto check = [&](const std::string &text) {
        return complaint(ptx, gate::readCodeCheck(text).value());
    };
    EXPECT_EQ(check("sum: `red\\.global` = 1"), "");
    EXPECT_EQ(check("sum: `ret` = 1"), "");
    EXPECT_EQ(found.at("_Z3sumPf").size(), 7u);
    EXPECT_EQ(check("add: `red\\.global` = 0"), "");
    EXPECT_EQ(check("*: `\\.func` = 2"), "");
    EXPECT_EQ(check("*: `ret;` >= 2"), "");
    EXPECT_EQ(check("sum: `red\\.global` = 2"),
              "_Z3sumPf has 1 lines that match:\n"
              "    red.global.add.f32 [%rd1], %f1;\n");
    EXPECT_EQ(check("sum: `shfl` >= 1"), "_Z3sumPf has 0 lines that match:\n");
    EXPECT_NE(check("sum: `.` <= 2"), "");
    EXPECT_EQ(check("su: `ret` = 1"), "there is no function su\n");
    EXPECT_EQ(check("sum: `(` = 1"), "no regular expression: (\n");
}

TEST(Functions, AreFoundByTheirMangledNames) {
    EXPECT_TRUE(isNameOf("_Z3sumPf", "sum"));
    EXPECT_TRUE(isNameOf("_Z3sumILi4EEvPf", "sum"));
    EXPECT_TRUE(isNameOf("_ZN12_GLOBAL__N_13sumEPf", "sum") ||
                isNameOf("_ZN4gate3sumEPf", "sum"));
    EXPECT_TRUE(isNameOf("sum", "sum"));
    EXPECT_FALSE(isNameOf("_Z6sumAllPf", "sum"));
    EXPECT_FALSE(isNameOf("_Z13sumXXXXXXXXXX", "sum"));
    EXPECT_FALSE(isNameOf("_Z5mysumPf", "sum"));
}

// The PTX of a lesson for one architecture, made once.
const std::string &ptxOf(const std::string &source, const std::string &arch) {
    static std::map<std::string, std::string> made;
    std::string &ptx = made[source + " " + arch];
    if (!ptx.empty()) return ptx;
    const TempDir dir;
    const Outcome outcome =
        run("timeout 300 " + environment("NVCC", "nvcc") +
            " -std=c++17 -O3 -arch=" + arch + " -ptx -o " +
            ::quoted(dir.path() / "ptx") + " " + ::quoted(source));
    if (outcome.status != 0)
        throw std::runtime_error(source + " does not compile for " + arch +
                                 ":\n" + outcome.err);
    return ptx = readFile(dir.path() / "ptx");
}

std::vector<gate::Claim> claimsWithPtx() {
    gate::Faults ignored;  // the gate reports them
    std::vector<gate::Claim> claims;
    for (const gate::Claim &claim :
         gate::readClaims("", readFile("research/CLAIMS.md"), &ignored))
        if (!claim.values("ptx").empty()) claims.push_back(claim);
    return claims;
}

}  // namespace

namespace gate {
void PrintTo(const Claim &claim, std::ostream *out) { *out << claim.name; }
}  // namespace gate

namespace {

class Claims : public testing::TestWithParam<gate::Claim> {};

TEST_P(Claims, AreBorneOutByThePtx) {
    const gate::Claim &claim = GetParam();
    const std::string source = claim.values("source").empty()
                                   ? claim.values("file").at(0)
                                   : claim.values("source")[0];
    const Outcome known = run(environment("NVCC", "nvcc") + " --list-gpu-arch");
    ASSERT_EQ(known.status, 0) << known.err;
    size_t checked = 0;
    const std::string targets = claim.values("for").at(0);
    for (std::string arch :
         gate::split(targets.substr(0, targets.find(';')), ", ")) {
        // This nvcc may be too old, or too new, for an architecture.
        if (arch.empty() || known.out.find("compute_" + arch.substr(3) +
                                           "\n") == std::string::npos)
            continue;
        ++checked;
        for (const std::string &value : claim.values("ptx"))
            EXPECT_EQ(complaint(ptxOf(source, arch),
                                gate::readCodeCheck(value).value()),
                      "")
                << value << " in " << source << " for " << arch;
    }
    EXPECT_GT(checked, 0u) << "nvcc knows none of " << targets;
}

INSTANTIATE_TEST_SUITE_P(, Claims, testing::ValuesIn(claimsWithPtx()),
                         [](const testing::TestParamInfo<gate::Claim> &info) {
                             std::string name = info.param.name;
                             for (char &c : name)
                                 if (c == '-') c = '_';
                             return name;
                         });

}  // namespace
