// SPDX-License-Identifier: MIT
//
// The weaver: what a README shows as output, code or figure stands between
// markers, and is put there from its source. The gate weaves as well, and
// compares.

#ifndef RESEARCH_GATE_WEAVE_H_
#define RESEARCH_GATE_WEAVE_H_

#include <string>
#include <vector>

#include "rules.h"

namespace gate {

struct Woven {
    std::string text;   // the README as it should be
    Faults faults;      // of rules 5, 6 and 7
    bool whole = true;  // its markers pair up, so that text may replace it
};

// The markers, each block marker alone in its line:
//   <!-- output LESSON/SECTION -->         to <!-- end output -->
//   <!-- snippet LESSON/NAME -->           to <!-- end snippet -->
//   <!-- figure LESSON/NAME: words -->     to <!-- end figure -->
//   <!-- index -->                         to <!-- end index -->
//   <!--= LESSON/SECTION/ROW/COLUMN -->    to <!--/--> in the same line, and
//   <!--= LESSON/SECTION/LABEL -->         the same
Woven weaveReadme(const Repository &repository, const Readme &readme);

// The lines of text (counted from 1) where a number with a unit stands, and
// what stands there. See its definition for what counts as one.
std::vector<Piece> findUnits(const std::string &text);

// Weaves every README in place. Returns the faults that this did not cure.
Faults weaveAll(Repository *repository);

// Writes every snippet to folder/LESSON/NAME.cu, and removes what else is
// called *.cu there. Throws CouldNotRun if a file cannot be written.
void writeSnippets(const Repository &repository, const std::string &folder);

}  // namespace gate

#endif  // RESEARCH_GATE_WEAVE_H_
