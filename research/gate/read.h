// SPDX-License-Identifier: MIT
//
// What the gate and the weaver read: lessons, transcripts and the claims
// ledger, each by a function from the text of a file to its parts. What cannot
// be read is a fault, never a crash. Lines count from 1, and nothing here
// looks at the locale.

#ifndef RESEARCH_GATE_READ_H_
#define RESEARCH_GATE_READ_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gate {

using Lines = std::vector<std::string>;

// One place where a rule is broken: what is wrong there, and what to do.
struct Fault {
    std::string file;
    size_t line;
    int rule;
    std::string text;
};
using Faults = std::vector<Fault>;

// The gate could not do its work: a file or a tool that it needs is missing.
struct CouldNotRun : std::runtime_error {
    using std::runtime_error::runtime_error;
};

bool startsWith(const std::string &text, const std::string &prefix);
std::string trim(const std::string &text);
// What stands between the separators (any of these characters); lines.
Lines split(const std::string &text, const std::string &separators);
Lines splitLines(const std::string &text);
// The words of text, as blanks and line ends separate them; and joined again
// by single blanks, which is how sentences are compared.
Lines words(const std::string &text);
std::string join(const Lines &parts);
// How many lines the two have in common before the first that differs.
size_t firstDifference(const Lines &one, const Lines &other);
// Whether text is printable ASCII, and the fault where it is not.
bool isPlain(const std::string &text);
constexpr char kNotPlain[] =
    "a byte of this line is no printable ASCII (a tab or carriage return is "
    "not); replace it";
// Whether a character is a letter, a digit or _.
bool isWord(char c);
// The groups of an ECMAScript regular expression that matches all of text.
// Text of more than 2000 bytes matches nothing.
std::optional<Lines> match(const std::string &text, const std::string &regex);
// The pattern with a value for each ~ in it, in turn.
std::string fill(const std::string &pattern, const Lines &values);

// Reports faults of one rule in one file. The text is filled with values, and
// ends with the advice.
struct Reporter {
    std::string file;
    int rule;
    Faults *faults;
    std::string advice = "";

    void operator()(size_t line, const std::string &text,
                    const Lines &values = {}) const {
        faults->push_back({file, line, rule, fill(text, values) + advice});
    }
};

// A piece of a file and the line where it begins.
struct Piece {
    size_t line;
    std::string text;
};

// A section that a lesson prints; it has a table if it has columns.
struct SourceSection {
    std::string name;
    Lines rows;
    Lines columns;
};

// The code between // snippet: name and // end snippet, dedented.
struct Snippet {
    std::string name;
    std::string code;
};

struct Lesson {
    std::string path;  // atomics/atomics.cu
    std::string name;  // atomics
    std::string text;
    Lines lines;           // of the text
    Lines code;            // the same without // comments
    size_t headerEnd = 0;  // the last line of the header comment
    std::vector<Piece> statuses, builds, needs;
    std::vector<SourceSection> sections;  // by its titles and // Table comments
    std::vector<Snippet> snippets;
    Faults faults;        // in these two: of rules 4 and 7
    bool usable = false;  // rules 1, 2 and 4 find no fault in it

    // What stands in the // comment of line i, counted from 0.
    std::string comment(size_t i) const;
    bool verified() const;
    // The transcript that its Verified block names, or an empty string.
    std::string published() const;
};
Lesson readLesson(const std::string &path, const std::string &text);

// line without what stands in its string and character literals.
std::string withoutStrings(const std::string &line);

// A section of a transcript.
struct Section {
    std::string name;
    size_t line;
    Lines lines;  // the title and all up to the next section
    std::vector<std::pair<std::string, std::string>> labels;  // label: value
    std::vector<std::pair<size_t, Lines>>
        table;  // header and rows: line, words

    // The figure at ROW/COLUMN of the table, or the value of LABEL.
    std::optional<std::string> figure(const std::string &place) const;
};

struct Transcript {
    std::string path;    // evidence/atomics/nvidia-h200-2026-11-30.txt
    std::string folder;  // atomics
    std::map<std::string, std::string> fields;
    // One a source that took part: its fingerprint and its path.
    std::vector<std::pair<std::string, std::string>> sources;
    std::string checksum;
    std::vector<Section> sections;
    bool whole = false;     // read to the end
    bool complete = false;  // its output ends by saying that all passed
    bool current = false;   // its sources stand as in that run
    bool partial = false;   // of check-gpu: a claim did not pass in it
    bool usable = false;    // current, and rules 3 and 4 find no fault in it

    std::string field(const std::string &key) const;
    const Section *section(const std::string &name) const;
};
// checksum returns the sha256, in hex, of so many bytes from the start of the
// file. Faults of rule 3.
Transcript readTranscript(const std::string &path, const std::string &text,
                          const std::function<std::string(size_t)> &checksum,
                          Faults *faults);

// A claim of the ledger: a name, a quoted sentence, and fields - key: value.
struct Claim {
    struct Field {
        size_t line;
        std::string key;
        std::string value;
    };
    std::string name;
    size_t line;
    std::string quote;
    std::vector<Field> fields;

    Lines values(const std::string &key) const;
};
// Faults of rule 10.
std::vector<Claim> readClaims(const std::string &path, const std::string &text,
                              Faults *faults);

// NAME: `REGEX` = COUNT: how many lines of the code of NAME match, or with
// before `REGEX` behind it, how many above the first that matches that. Nothing
// if the text is another, or the check cannot fail.
struct CodeCheck {
    std::string name;
    std::string regex;
    std::string relation;  // =, >= or <=
    size_t count;
    std::string before;
};
std::optional<CodeCheck> readCodeCheck(const std::string &value);

}  // namespace gate

#endif  // RESEARCH_GATE_READ_H_
