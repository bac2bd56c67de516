// SPDX-License-Identifier: MIT
//
// The checks of research/CLAIMS.md that make check cannot run: those on machine
// code, for which cuobjdump is needed, and those on counters of the profiler,
// for which a GPU is. Run from the repository root, with the GPU's
// architecture:
//
//     check_claims sm_90
//
// Prints two sections with a row a claim, whose last word is passed, failed or
// skipped; on stderr stands what failed. A sass check is for every architecture
// that its claim names. A counter is read in every launch of its kernel that
// the reduced copy of the lesson makes, and the largest value is compared. Exit
// status 0 if nothing failed, 1 if something did or could not be run.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../tests/shell.h"
#include "code.h"

namespace {

const std::string kNvcc = "timeout 300 \"${NVCC:-nvcc}\" -std=c++17 -O3 ";

// Runs a command; throws what it said if it fails.
std::string must(const std::string &command) {
    const Outcome outcome = run(command);
    if (outcome.status != 0)
        throw std::runtime_error(command + "\n" + outcome.out + outcome.err);
    return outcome.out;
}

// The machine code of a source for an architecture.
Functions sassOf(const std::string &source, const std::string &arch) {
    const TempDir dir;
    const std::string cubin = ::quoted(dir.path() / "cubin");
    must(kNvcc + "-cubin -arch=" + arch + " -o " + cubin + " " + source);
    return functionsOfSass(must("cuobjdump -sass " + cubin));
}

// The fields of a line of comma-separated values, each in quotation marks.
gate::Lines fieldsOf(const std::string &line) {
    gate::Lines fields = {""};
    bool quoted = false;
    for (char c : line)
        if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            fields.push_back("");
        else
            fields.back() += c;
    return fields;
}

// The largest value of a metric over the launches that ncu saw; none if it saw
// none. ncu writes 1,952 for 1952.
std::optional<double> largestOf(const std::string &metric,
                                const std::string &csv) {
    std::optional<double> largest;
    size_t name = 0, value = 0;  // columns
    for (const std::string &line : gate::splitLines(csv)) {
        if (line.empty() || line[0] != '"') continue;
        gate::Lines fields = fieldsOf(line);
        if (fields[0] == "ID") {
            const auto at = [&](const char *label) {
                return size_t(std::find(fields.begin(), fields.end(), label) -
                              fields.begin());
            };
            name = at("Metric Name");
            value = at("Metric Value");
        } else if (std::max(name, value) < fields.size() &&
                   fields[name] == metric) {
            std::string &digits = fields[value];
            digits.erase(std::remove(digits.begin(), digits.end(), ','),
                         digits.end());
            largest = std::max(largest.value_or(std::stod(digits)),
                               std::stod(digits));
        }
    }
    return largest;
}

// What ncu prints for one metric of a kernel, in the reduced copy of a lesson
// or in a source of research/ as it stands. Each is built once.
Outcome profile(const std::string &source, const std::string &kernel,
                const std::string &metric) {
    static const TempDir dir;
    static std::map<std::string, std::string> programs;
    std::string &program = programs[source];
    if (program.empty()) {
        const auto copy = dir.path() / std::to_string(programs.size());
        const bool lesson = !gate::startsWith(source, "research/");
        must((lesson ? "research/reduced/reduce.sh " : "cat ") + source + " >" +
             ::quoted(copy.string() + ".cu"));
        must(kNvcc + "-arch=native -o " + ::quoted(copy) + " " +
             ::quoted(copy.string() + ".cu"));
        program = ::quoted(copy);
    }
    return run(
        "timeout 300 ncu --csv --clock-control none --print-units base "
        "--kernel-name " +
        kernel + " --metrics " + metric + " " + program);
}

// Claims that failed.
int failures = 0;

void printRow(const gate::Claim &claim, size_t checks, bool skipped,
              const std::string &faults) {
    std::printf("%-44s %6zu  %s\n", claim.name.c_str(), checks,
                skipped          ? "skipped"
                : faults.empty() ? "passed"
                                 : "failed");
    if (!faults.empty())
        std::fprintf(stderr, "%s:\n%s", claim.name.c_str(), faults.c_str());
    failures += !faults.empty();
}

// The checks of one kind that a claim has. That they can be read is for the
// gate to see; here it throws.
std::vector<gate::CodeCheck> checksOf(const gate::Claim &claim,
                                      const std::string &kind) {
    std::vector<gate::CodeCheck> checks;
    for (const std::string &value : claim.values(kind))
        checks.push_back(gate::readCodeCheck(value).value());
    return checks;
}

void checkSass(const std::vector<gate::Claim> &claims) {
    std::printf("\n== sass: claims on machine code ==\n");
    const bool listed = run("command -v cuobjdump").status == 0;
    if (!listed)
        std::printf(
            "why_skipped: cuobjdump is not there, which is part of "
            "the CUDA Toolkit\n");
    const std::string known = must(kNvcc + "--list-gpu-arch");
    // Each listing once, all at a time.
    std::map<std::pair<std::string, std::string>, std::shared_future<Functions>>
        listings;
    for (const gate::Claim &claim : claims)
        if (listed && !claim.values("sass").empty())
            for (const std::string &arch : targetsOf(claim, known)) {
                auto &listing = listings[{sourceOf(claim), arch}];
                if (!listing.valid())
                    listing = std::async(std::launch::async, sassOf,
                                         sourceOf(claim), arch);
            }
    std::printf("%-44s %6s  %s\n", "claim", "checks", "result");
    for (const gate::Claim &claim : claims) {
        const auto checks = checksOf(claim, "sass");
        if (checks.empty()) continue;
        const gate::Lines targets = targetsOf(claim, known);
        std::string faults;
        if (targets.empty()) faults = "nvcc knows none of its architectures\n";
        for (const std::string &arch : targets)
            for (const gate::CodeCheck &check : checks) {
                const std::string fault =
                    listed ? complaint(listings[{sourceOf(claim), arch}].get(),
                                       check)
                           : "";
                if (!fault.empty())
                    faults += arch + ", `" + check.regex + "`: " + fault;
            }
        printRow(claim, checks.size() * targets.size(), !listed, faults);
    }
}

void checkCounters(const std::vector<gate::Claim> &claims,
                   const std::string &arch) {
    std::printf("\n== counters: claims on the profiler's counters ==\n");
    std::printf("%-44s %6s  %s\n", "claim", "checks", "result");
    // A machine may have no profiler, or not let it read counters; a claim may
    // be about other GPUs.
    std::string why =
        run("command -v ncu").status == 0
            ? ""
            : "ncu is not there, which is part of the CUDA Toolkit";
    std::string others;
    for (const gate::Claim &claim : claims) {
        const auto checks = checksOf(claim, "counter");
        if (checks.empty()) continue;
        const bool mine =
            !targetsOf(claim, "compute_" + arch.substr(3) + "\n").empty();
        std::string faults;
        for (const gate::CodeCheck &check : checks) {
            if (!why.empty() || !mine) break;
            const Outcome outcome =
                profile(sourceOf(claim), check.name, check.regex);
            const std::optional<double> value =
                largestOf(check.regex, outcome.out);
            const size_t error = outcome.out.find("==ERROR== ERR_");
            if (!value && error != std::string::npos)
                why = gate::splitLines(outcome.out.substr(error + 10))[0];
            else if (!value)
                faults += "ncu gives no " + check.regex + " of " + check.name +
                          ":\n" + outcome.out + outcome.err;
            else if (!holds(*value, check))
                faults += "the largest " + check.regex + " of " + check.name +
                          " is " + std::to_string(*value) + "\n";
        }
        printRow(claim, checks.size(), !mine || !why.empty(), faults);
        if (!mine) others = "some claims are about other GPUs";
    }
    if (why.empty()) why = others;
    if (!why.empty()) std::printf("why_skipped: %s\n", why.c_str());
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 2 || !gate::startsWith(argv[1], "sm_")) {
        std::fprintf(stderr, "usage: check_claims sm_NN\n");
        return EXIT_FAILURE;
    }
    try {
        gate::Faults ignored;  // the gate reports them
        const std::vector<gate::Claim> claims =
            gate::readClaims("", readFile("research/CLAIMS.md"), &ignored);
        checkSass(claims);
        checkCounters(claims, argv[1]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "check_claims: %s\n", error.what());
        return EXIT_FAILURE;
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
