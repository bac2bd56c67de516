// SPDX-License-Identifier: MIT
//
// Checks of research/CLAIMS.md on the code of a lesson's functions: in PTX, or
// in machine code as cuobjdump -sass lists it.

#ifndef RESEARCH_CLAIMS_CODE_H_
#define RESEARCH_CLAIMS_CODE_H_

#include <cctype>
#include <map>
#include <regex>
#include <string>

#include "../gate/read.h"

// The lines of each function, under its mangled name, and all under *.
using Functions = std::map<std::string, gate::Lines>;

// From PTX: what stands between a function's braces, without comments and
// blank lines.
inline Functions functionsOfPtx(const std::string &ptx) {
    static const std::regex kHead(
        "(?:\\.\\w+ )*\\.(?:entry|func) *(?:\\([^)]*\\) *)?([\\w$]+).*");
    Functions found;
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

// From a listing of machine code: a function's instructions, without their
// addresses and encodings.
inline Functions functionsOfSass(const std::string &sass) {
    static const std::regex kInstruction("/\\*[0-9a-f]+\\*/ +([^;]*;).*");
    Functions found;
    std::string name;
    for (const std::string &line : gate::splitLines(sass)) {
        const auto head = gate::match(gate::trim(line), "Function : (\\S+)");
        std::smatch instruction;
        const std::string text = gate::trim(line);
        if (head) {
            name = (*head)[0];
            found[name];
        } else if (!name.empty() &&
                   std::regex_match(text, instruction, kInstruction)) {
            found[name].push_back(gate::trim(instruction[1]));
            found["*"].push_back(found[name].back());
        }
    }
    return found;
}

// Whether a name is that of a C++ function: the same, or mangled from it.
inline bool isNameOf(const std::string &mangled, const std::string &name) {
    const std::string part = std::to_string(name.size()) + name;
    const size_t at = mangled.find(part);
    return mangled == name ||
           (mangled.compare(0, 2, "_Z") == 0 && at != mangled.npos &&
            !std::isdigit(static_cast<unsigned char>(mangled[at - 1])));
}

// Whether a count, or another figure, is as a check says.
inline bool holds(double figure, const gate::CodeCheck &check) {
    const double count = double(check.count);
    return check.relation == "="    ? figure == count
           : check.relation == ">=" ? figure >= count
                                    : figure <= count;
}

// What is wrong with the code by this check; empty if nothing is. All functions
// of the name, as templates have many, must pass.
inline std::string complaint(const Functions &functions,
                             const gate::CodeCheck &check) {
    std::string text;
    size_t matched = 0;
    try {
        const std::regex regex(check.regex), before(check.before);
        for (const auto &[name, lines] : functions) {
            if (!isNameOf(name, check.name)) continue;
            ++matched;
            size_t count = 0;
            std::string which;
            bool ended = check.before.empty();
            for (const std::string &line : lines) {
                if (!check.before.empty() && std::regex_search(line, before)) {
                    ended = true;
                    break;
                }
                if (!std::regex_search(line, regex)) continue;
                ++count;
                which += "    " + line + "\n";
            }
            if (!holds(double(count), check))
                text += name + " has " + std::to_string(count) +
                        " lines that match:\n" + which;
            if (!ended)
                text +=
                    name + " has no line that matches " + check.before + "\n";
        }
    } catch (const std::regex_error &) {
        return "no regular expression: " + check.regex + "\n";
    }
    if (matched == 0) return "there is no function " + check.name + "\n";
    return text;
}

// The file whose code a claim is about.
inline std::string sourceOf(const gate::Claim &claim) {
    const gate::Lines named = claim.values("source");
    return named.empty() ? claim.values("file").at(0) : named[0];
}

// The architectures that a claim names, as sm_90, and that nvcc knows by the
// output of nvcc --list-gpu-arch: it may be too old, or too new, for one.
inline gate::Lines targetsOf(const gate::Claim &claim,
                             const std::string &known) {
    gate::Lines targets;
    const std::string text = claim.values("for").at(0);
    for (const std::string &arch :
         gate::split(text.substr(0, text.find(';')), ", "))
        if (arch.size() > 3 &&
            known.find("compute_" + arch.substr(3) + "\n") != known.npos)
            targets.push_back(arch);
    return targets;
}

#endif  // RESEARCH_CLAIMS_CODE_H_
