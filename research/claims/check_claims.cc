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
// that its claim names; a counter's is for each launch of its kernel. Exit
// status 0 if nothing failed, 1 if something did or could not be run.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <future>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../tests/shell.h"
#include "code.h"

namespace {

const std::string kNvcc =
    "timeout --foreground -k 10 300 \"${NVCC:-nvcc}\" -std=c++17 -O3 ";

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

// One launch of a kernel: the values of metrics, and the kernel's name.
using Launch = std::map<std::string, std::string>;

// The launches that ncu saw, in their order, from what it printed with --csv
// --page raw: other lines, then a line of labels, one of units, a line a
// launch.
std::vector<Launch> launchesOf(const std::string &csv) {
    std::vector<Launch> launches;
    gate::Lines labels;
    for (const std::string &line : gate::splitLines(csv)) {
        if (line.empty() || line[0] != '"') continue;
        const gate::Lines fields = fieldsOf(line);
        if (fields[0] == "ID") labels = fields;
        if (fields[0] == "ID" || fields[0].empty()) continue;
        launches.emplace_back();
        for (size_t i = 0; i < std::min(fields.size(), labels.size()); ++i)
            launches.back()[labels[i]] = fields[i];
    }
    return launches;
}

// KERNEL: part 2 of 8: `LEFT <= RIGHT`; words. CLAIMS.md says what it means.
struct CounterCheck {
    std::string kernel;
    size_t part, parts;
    std::string left, relation, right;
};
CounterCheck readCounterCheck(const std::string &value) {
    const auto text = gate::match(
        value,
        "(\\S+): (?:part (\\d+) of (\\d+): )?`(.+) (=|<=|>=) (.+)`(?:; .*)?");
    if (!text) throw std::runtime_error("no counter: " + value);
    const auto &t = *text;
    return {t[0],
            t[1].empty() ? 1 : std::stoul(t[1]),
            t[2].empty() ? 1 : std::stoul(t[2]),
            t[3],
            t[4],
            t[5]};
}

// Whether a word of a comparison is a metric.
bool isMetric(const std::string &word) {
    return std::isalpha(static_cast<unsigned char>(word[0]));
}

// A number, or a metric of a launch, for which ncu writes 1,952 for 1952.
// Throws if it is neither.
double valueOf(const std::string &word, const Launch &launch) {
    const auto found = launch.find(word);
    if (isMetric(word) && found == launch.end())
        throw std::runtime_error("ncu gives no " + word);
    std::string digits = isMetric(word) ? found->second : word;
    digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
    char *end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0')
        throw std::runtime_error(word + " is '" + digits + "', no number");
    return value;
}

// Numbers and metrics with * and / between them, from left to right.
double evaluate(const std::string &side, const Launch &launch) {
    const gate::Lines words = gate::words(side);
    double value = valueOf(words.at(0), launch);
    for (size_t i = 1; i + 1 < words.size(); i += 2)
        if (words[i] == "*")
            value *= valueOf(words[i + 1], launch);
        else if (words[i] == "/")
            value /= valueOf(words[i + 1], launch);
        else
            throw std::runtime_error("no * or /: " + words[i]);
    return value;
}

// Whether a launch, of void sum<float>(T1 *), is of a kernel: sum or
// sum<float>.
bool isOf(const Launch &launch, const std::string &kernel) {
    const auto found = launch.find("Kernel Name");
    if (found == launch.end()) return false;
    std::string name = found->second.substr(0, found->second.find('('));
    name = name.substr(name.rfind(' ') + 1);
    return name == kernel || name.substr(0, name.find('<')) == kernel;
}

// What is wrong with the launches by this check; empty if nothing is.
std::string counterComplaint(const std::vector<Launch> &all,
                             const CounterCheck &check) {
    std::vector<Launch> launches;
    for (const Launch &launch : all)
        if (isOf(launch, check.kernel)) launches.push_back(launch);
    const size_t each = launches.size() / check.parts;
    if (each == 0 || each * check.parts != launches.size() ||
        check.part > check.parts)
        return std::to_string(launches.size()) + " launches of " +
               check.kernel + " do not make " + std::to_string(check.parts) +
               " parts\n";
    std::string text;
    for (size_t i = (check.part - 1) * each; i < check.part * each; ++i) {
        const double left = evaluate(check.left, launches[i]);
        const double right = evaluate(check.right, launches[i]);
        const bool holds = check.relation == "="    ? left == right
                           : check.relation == ">=" ? left >= right
                                                    : left <= right;
        if (!holds)
            text += check.kernel + ", launch " + std::to_string(i + 1) + ": " +
                    check.left + " is " + std::to_string(left) + ", " +
                    check.right + " is " + std::to_string(right) + "\n";
    }
    return text;
}

// What ncu prints of these kernels and metrics in a lesson at its own sizes,
// but with few launches, all of which it sees. What is no lesson has none of
// the constants.
Outcome profile(const std::string &source, const std::set<std::string> &kernels,
                const std::set<std::string> &metrics) {
    const TempDir dir;
    const std::string copy = ::quoted(dir.path() / "copy.cu");
    const std::string program = ::quoted(dir.path() / "copy");
    std::string few = "sed";
    for (const char *constant : {"kWarmupRuns = 1", "kSamples = 1",
                                 "kTimedRuns = 2", "kDetRuns = 2"}) {
        const std::string text = constant;
        few += " -e 's/^\\(constexpr int " + text.substr(0, text.find('=')) +
               "\\)= [0-9]*;/\\1" + text.substr(text.find('=')) + ";/'";
    }
    must(few + " " + source + " >" + copy);
    must(kNvcc + "-arch=native -o " + program + " " + copy);
    std::string names, wanted;
    for (const std::string &kernel : kernels)
        names +=
            (names.empty() ? "" : "|") + kernel.substr(0, kernel.find('<'));
    for (const std::string &metric : metrics)
        wanted += (wanted.empty() ? "" : ",") + metric;
    return run(
        "timeout --foreground -k 10 300 ncu --csv --page raw "
        "--print-units base --clock-control none --cache-control none "
        "--kernel-name 'regex:^(" +
        names + ")$' --metrics " + wanted + " " + program);
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
    const auto isMine = [&](const gate::Claim &claim) {
        return !targetsOf(claim, "compute_" + arch.substr(3) + "\n").empty();
    };
    // What is asked of each source, and then the answers.
    std::map<std::string, std::set<std::string>> kernels, metrics;
    std::map<std::string, std::vector<Launch>> launches;
    // A machine may have no profiler, or not let it read counters; a claim may
    // be about other GPUs.
    std::string why =
        run("command -v ncu").status == 0
            ? ""
            : "ncu is not there, which is part of the CUDA Toolkit";
    std::string others;
    for (const gate::Claim &claim : claims)
        for (const std::string &value : claim.values("counter")) {
            const CounterCheck check = readCounterCheck(value);
            if (!isMine(claim)) continue;
            kernels[sourceOf(claim)].insert(check.kernel);
            for (const std::string &word :
                 gate::words(check.left + " " + check.right))
                if (isMetric(word)) metrics[sourceOf(claim)].insert(word);
        }
    for (const auto &[source, names] : kernels) {
        if (!why.empty()) break;
        const Outcome outcome = profile(source, names, metrics[source]);
        launches[source] = launchesOf(outcome.out);
        const size_t error = outcome.out.find("==ERROR== ERR_NVGPUCTRPERM");
        if (error != std::string::npos)
            why = gate::splitLines(outcome.out.substr(error + 10))[0];
        else if (outcome.status != 0 || launches[source].empty())
            throw std::runtime_error(
                "ncu exits " + std::to_string(outcome.status) + " for " +
                source + ":\n" + outcome.out + outcome.err);
    }
    for (const gate::Claim &claim : claims) {
        const gate::Lines values = claim.values("counter");
        if (values.empty()) continue;
        const bool asked = why.empty() && isMine(claim);
        std::string faults;
        for (const std::string &value : values)
            if (asked)
                faults += counterComplaint(launches[sourceOf(claim)],
                                           readCounterCheck(value));
        printRow(claim, values.size(), !asked, faults);
        if (!isMine(claim)) others = "some claims are about other GPUs";
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
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
        std::fprintf(stderr,
                     "check_claims: the results could not be written\n");
        return EXIT_FAILURE;
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
