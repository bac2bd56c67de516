// SPDX-License-Identifier: MIT
//
// The PTX checks of research/CLAIMS.md: nvcc compiles the lesson for each
// architecture that a claim names, and in the code of the kernel or device
// function that a check names, so many lines have to match.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "../claims/code.h"
#include "shell.h"

namespace {

TEST(Functions, AreReadFromPtx) {
    const std::string ptx =
        ".version 9.0\n.visible .entry _Z3sumPf(\n.param .u64 a\n)\n"
        ".maxntid 256\n{\n.reg .b32 %r<2>;\n// red.global\n"
        "red.global.add.f32 [%rd1], %f1; // add\n@%p1 bra $L1;\n\n{\n"
        "call.uni (_), f;\n}\nret;\n}\n"
        ".func (.param .b32 func_retval0) _Z3addf(.param .b32 x)\n;\n"
        ".func (.param .b32 func_retval0) _Z3addf(\n.param .b32 x\n)\n{\n"
        "add.f32 %f1, %f1, %f1;\nret;\n}\n";
    const Functions found = functionsOfPtx(ptx);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found.at("_Z3addf").size(), 2u);
    const auto check = [&](const std::string &text) {
        return complaint(found, gate::readCodeCheck(text).value());
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
    EXPECT_EQ(check("sum: `red\\.global` = 1 before `ret`"), "");
    EXPECT_EQ(check("sum: `ret` = 0 before `red\\.global`"), "");
    EXPECT_EQ(check("sum: `ret` = 1 before `red\\.global`"),
              "_Z3sumPf has 0 lines that match:\n");
    // Nothing was before what is not there.
    EXPECT_EQ(check("sum: `ret` = 1 before `shfl`"),
              "_Z3sumPf has no line that matches shfl\n");
    EXPECT_EQ(check("su: `ret` = 1"), "there is no function su\n");
    EXPECT_EQ(check("sum: `(` = 1"), "no regular expression: (\n");
}

TEST(Functions, AreReadFromMachineCode) {
    const Functions found = functionsOfSass(
        "\tcode for sm_90\n\t\tFunction : _Z3sumPf\n"
        "\t.headerflags\t@\"EF_CUDA_SM90\"\n"
        "        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x0a "
        "*/\n"
        "                                                        /* 0x0f */\n"
        "        /*0010*/              @!P0 RED.E.ADD.F32 [R2], R3 ; /* 0x0b "
        "*/\n"
        "\t\t..........\n\n\t\tFunction : _Z3addf\n"
        "        /*0000*/                   EXIT ;                   /* 0x0c "
        "*/\n");
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found.at("_Z3sumPf"),
              (gate::Lines{"LDC R1, c[0x0][0x28] ;",
                           "@!P0 RED.E.ADD.F32 [R2], R3 ;"}));
    EXPECT_EQ(found.at("_Z3addf"), gate::Lines{"EXIT ;"});
    EXPECT_EQ(found.at("*").size(), 3u);
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
        run("timeout 300 " + ::quoted(environment("NVCC", "nvcc")) +
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
    const std::string source = sourceOf(claim);
    const Outcome known =
        run(::quoted(environment("NVCC", "nvcc")) + " --list-gpu-arch");
    ASSERT_EQ(known.status, 0) << known.err;
    const gate::Lines targets = targetsOf(claim, known.out);
    EXPECT_FALSE(targets.empty()) << "nvcc knows no architecture of these";
    for (const std::string &arch : targets)
        for (const std::string &value : claim.values("ptx"))
            EXPECT_EQ(complaint(functionsOfPtx(ptxOf(source, arch)),
                                gate::readCodeCheck(value).value()),
                      "")
                << value << " in " << source << " for " << arch;
}

INSTANTIATE_TEST_SUITE_P(, Claims, testing::ValuesIn(claimsWithPtx()),
                         [](const testing::TestParamInfo<gate::Claim> &info) {
                             std::string name = info.param.name;
                             for (char &c : name)
                                 if (c == '-') c = '_';
                             return name;
                         });

}  // namespace
