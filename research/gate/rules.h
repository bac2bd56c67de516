// SPDX-License-Identifier: MIT
//
// The rules of the gate, 1 to 10, each a function over the repository as a
// whole. What each asks for is said above its definition, and in words in
// research/REVIEW-PROCESS.md.

#ifndef RESEARCH_GATE_RULES_H_
#define RESEARCH_GATE_RULES_H_

#include <map>
#include <string>
#include <vector>

#include "read.h"

namespace gate {

struct Readme {
    std::string path;
    std::string text;
};

struct Repository {
    std::string root;                     // paths are relative to it
    std::vector<Lesson> lessons;          // in the order of the Makefile
    std::vector<Transcript> transcripts;  // by path
    std::vector<Readme> readmes;
    std::vector<Readme> notes;  // the other pages, in research/
    std::vector<Claim> claims;
    // The fingerprint of each source that is named; empty where it has none.
    std::map<std::string, std::string> fingerprints;
    Faults faults;  // seen in reading

    const Lesson *lesson(const std::string &name) const;
    const Transcript *transcript(const std::string &path) const;
};

// The text of a file; throws CouldNotRun if it cannot be read.
std::string readFile(const std::string &path);

// Reads all that the gate looks at; throws CouldNotRun if sha256sum,
// evidence/capture.sh, the Makefile's list or the claims ledger is missing.
Repository readRepository(const std::string &root);

void rule1(const Repository &repository, Faults *faults);
void rule2(const Repository &repository, Faults *faults);
void rule3(const Repository &repository, Faults *faults);
void rule4(const Repository &repository, Faults *faults);
void rules5And6(const Repository &repository, Faults *faults);
void rule7(const Repository &repository, Faults *faults);
void rule8(const Repository &repository, Faults *faults);
void rule9(const Repository &repository, Faults *faults);
void rule10(const Repository &repository, Faults *faults);

// Rules 1 to 4, on which hangs what may be woven: marks as usable the lessons
// and transcripts in which they find no fault.
Faults checkEvidence(Repository *repository);

// All rules; the faults by file, line and rule.
Faults checkAll(Repository *repository);

// file:line: rule N: what is wrong, and what to do
std::string faultLine(const Fault &fault);

}  // namespace gate

#endif  // RESEARCH_GATE_RULES_H_
