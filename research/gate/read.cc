// SPDX-License-Identifier: MIT

#include "read.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace gate {

// --- text ---

static const char kBlanks[] = " \t\r\n\v\f";

bool startsWith(const std::string &text, const std::string &prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
}

std::string trim(const std::string &text) {
    const size_t first = text.find_first_not_of(kBlanks);
    if (first == text.npos) return "";
    return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

Lines split(const std::string &text, const std::string &separators) {
    Lines parts;
    for (size_t at = 0; at < text.size();) {
        const size_t end =
            std::min(text.find_first_of(separators, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

Lines splitLines(const std::string &text) { return split(text, "\n"); }

Lines words(const std::string &text) {
    Lines parts = split(text, kBlanks);
    parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
    return parts;
}

std::string join(const Lines &parts) {
    std::string text;
    for (const std::string &part : parts)
        text += (text.empty() ? "" : " ") + part;
    return text;
}

size_t firstDifference(const Lines &one, const Lines &other) {
    return std::mismatch(one.begin(), one.end(), other.begin(), other.end())
               .first -
           one.begin();
}

bool isPlain(const std::string &text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c >= ' ' && c <= '~'; });
}

bool isWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

std::optional<Lines> match(const std::string &text, const std::string &regex) {
    static std::map<std::string, std::regex> known;
    if (text.size() > 2000) return std::nullopt;
    const auto found = known.try_emplace(regex, regex).first;
    std::smatch groups;
    if (!std::regex_match(text, groups, found->second)) return std::nullopt;
    return Lines(groups.begin() + 1, groups.end());
}

std::string fill(const std::string &pattern, const Lines &values) {
    std::string text;
    auto value = values.begin();
    for (char c : pattern)
        text +=
            c == '~' && value != values.end() ? *value++ : std::string(1, c);
    return text;
}

// --- a lesson ---

// A line up to its // comment, or without what stands in its literals. An
// apostrophe behind a letter or digit separates digits.
static std::string strip(const std::string &line, bool comment, bool strings) {
    std::string result;
    char quote = '\0';
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (comment && quote == '\0' && line.compare(i, 2, "//") == 0) break;
        const bool escape = quote != '\0' && c == '\\';
        if (quote != '\0' && c == quote)
            quote = '\0';
        else if (quote == '\0' &&
                 (c == '"' || (c == '\'' && (i == 0 || !isWord(line[i - 1])))))
            quote = c;
        if (!strings || quote == '\0' || c == quote)
            result += line.substr(i, escape ? 2 : 1);
        if (escape) ++i;
    }
    return result;
}

std::string withoutStrings(const std::string &line) {
    return strip(line, false, true);
}

// The elements of a constexpr array of decimal integers or one-word strings;
// none if it is no such array.
static Lines readArray(const Lesson &lesson, const std::string &name) {
    std::string text;
    for (const std::string &line : lesson.code)
        if (!text.empty() ||
            match(line, "constexpr .*\\b" + name + "\\[[^\\]]*\\] = *\\{?.*")) {
            text += line;
            if (line.find(';') != line.npos) break;
        }
    Lines elements;
    const size_t open = std::min(text.find('{') + 1, text.size());
    for (const std::string &part :
         split(text.substr(open, text.find('}') - open), ",")) {
        if (trim(part).empty()) continue;  // behind a last comma
        const auto word = match(trim(part), "\"([^\"\\\\\\s]+)\"");
        const auto number = match(trim(part), "([0-9']+)[uUlLzZ]*");
        if (!word && !number) return {};
        elements.push_back(word ? (*word)[0] : (*number)[0]);
        if (word) continue;
        std::string &digits = elements.back();
        digits.erase(std::remove(digits.begin(), digits.end(), '\''),
                     digits.end());
    }
    return elements;
}

static void readSections(Lesson *read) {
    const Lesson &lesson = *read;
    std::vector<SourceSection> &sections = read->sections;
    const Reporter fault = {lesson.path, 4, &read->faults};
    const auto find = [&](const std::string &name) {
        return std::find_if(sections.begin(), sections.end(),
                            [&](const auto &s) { return s.name == name; });
    };
    for (size_t i = 0; i < lesson.code.size(); ++i) {
        if (lesson.code[i].find("== ") == std::string::npos) continue;
        const auto title = match(lesson.code[i], ".*\"(?:\\\\n)*== (.*)");
        if (!title) continue;
        const auto name = match((*title)[0], "([^\\s:%\"\\\\]+): .*");
        if (!name)
            fault(i + 1,
                  "a section title begins '== name: ', the name one "
                  "word that is written out; write it so");
        else if (find((*name)[0]) != sections.end())
            fault(i + 1, "the section '~' has two titles; rename one", *name);
        else
            sections.push_back({(*name)[0], {}, {}});
    }
    for (size_t i = 0; i < lesson.lines.size(); ++i) {
        const auto table =
            match(trim(lesson.lines[i]),
                  "// Table (\\S+): rows (\\w+), columns (\\w+)\\.");
        if (!table) continue;
        const auto section = find((*table)[0]);
        if (section == sections.end() || !section->columns.empty()) {
            fault(i + 1,
                  "there is no section '~', or this is its second "
                  "table; mend the // Table comment",
                  *table);
            continue;
        }
        section->rows = readArray(lesson, (*table)[1]);
        section->columns = readArray(lesson, (*table)[2]);
        if (section->rows.empty() || section->columns.empty())
            fault(i + 1,
                  "~ is no constexpr array of decimal integers or of "
                  "one-word strings in this file; make it one",
                  {(*table)[section->rows.empty() ? 1 : 2]});
    }
}

static void readSnippets(Lesson *read) {
    const Lesson &lesson = *read;
    std::vector<Snippet> &snippets = read->snippets;
    const Reporter fault = {lesson.path, 7, &read->faults};
    size_t open = 0;  // the line of the marker that is open, or 0
    size_t indent = 0;
    for (size_t i = 0; i < lesson.lines.size(); ++i) {
        const std::string line = trim(lesson.lines[i]);
        if (startsWith(line, "// snippet:")) {
            const std::string name = trim(line.substr(11));
            if (open != 0)
                fault(i + 1, "'~' begins inside a snippet; end that first",
                      {name});
            if (!match(name, "[a-z0-9-]+") ||
                std::any_of(snippets.begin(), snippets.end(),
                            [&](const auto &s) { return s.name == name; }))
                fault(i + 1,
                      "'~' is no name of lower-case letters, digits and "
                      "dashes, or is taken; rename the snippet",
                      {name});
            open = i + 1;
            indent = lesson.lines[i].find('/');
            snippets.push_back({name, ""});
        } else if (startsWith(line, "// end snippet")) {
            if (open == 0 || line != "// end snippet")
                fault(i + 1,
                      "'// end snippet', alone in its line, ends a "
                      "snippet that is open; mend the markers");
            else if (trim(snippets.back().code).empty())
                fault(open, "this snippet is empty; remove it");
            open = 0;
        } else if (open != 0) {
            const std::string &code = lesson.lines[i];
            if (code.find("<!--") != code.npos || code.find("```") != code.npos)
                fault(i + 1,
                      "'<!--' or '```' would end what shows this snippet; "
                      "write it otherwise");
            snippets.back().code +=
                code.substr(std::min(
                    {indent, code.find_first_not_of(' '), code.size()})) +
                "\n";
        }
    }
    if (open != 0)
        fault(open, "this snippet does not end; write '// end snippet'");
}

Lesson readLesson(const std::string &path, const std::string &text) {
    Lesson lesson;
    lesson.path = path;
    lesson.name = path.substr(path.rfind('/') + 1);
    lesson.name.resize(lesson.name.rfind('.'));
    lesson.text = text;
    lesson.lines = splitLines(text);
    bool header = true;
    for (size_t i = 0; i < lesson.lines.size(); ++i) {
        const std::string line = trim(lesson.lines[i]);
        lesson.code.push_back(strip(lesson.lines[i], true, false));
        header = header && startsWith(line, "//");
        if (header) lesson.headerEnd = i + 1;
        if (startsWith(line, "// Build:")) {
            // The command may stand alone in the next line.
            const bool here = line.size() > 9 || i + 1 == lesson.lines.size();
            const std::string command =
                here ? line.substr(9) : trim(lesson.lines[i + 1]).erase(0, 2);
            lesson.builds.push_back({i + 1 + !here, trim(command)});
        }
        if (startsWith(line, "// Needs:"))
            lesson.needs.push_back({i + 1, trim(line.substr(9))});
        if (!startsWith(line, "// Verified:") &&
            !startsWith(line, "// UNVERIFIED:"))
            continue;
        std::string status;
        for (size_t j = i; j < lesson.lines.size() &&
                           startsWith(trim(lesson.lines[j]), "// ");
             ++j)
            status += trim(lesson.lines[j]).substr(2);
        lesson.statuses.push_back({i + 1, join(words(status))});
    }
    readSections(&lesson);
    readSnippets(&lesson);
    return lesson;
}

std::string Lesson::comment(size_t i) const {
    return lines[i].substr(std::min(code[i].size() + 2, lines[i].size()));
}

bool Lesson::verified() const {
    return statuses.size() == 1 && startsWith(statuses[0].text, "Verified:");
}

std::string Lesson::published() const {
    if (!verified()) return "";
    const auto path =
        match(statuses[0].text, ".* may be published is (\\S+)\\. .*");
    return path ? (*path)[0] : "";
}

// --- a transcript ---

// The fields in their order, and what a value of each looks like. A source is
// named from the top of the repository: no part of its path begins with a dot.
static const char *const kFields[][2] = {
    {"lesson", "(?:\\w[\\w.-]*/)*\\w[\\w.-]*"},
    {"fingerprint", "([0-9a-f]{64})(?: ((?:\\w[\\w.-]*/)*\\w[\\w.-]*))?"},
    {"build", "nvcc \\S.*"},
    {"toolkit", "\\d+\\.\\d+\\.\\d+"},
    {"host compiler", "\\S.*"},
    {"gpu", "\\S.*"},
    {"compute capability", "\\d+\\.\\d+"},
    {"sms", "\\d+"},
    {"mig", "on|off|none"},
    {"ecc", "on|off|none"},
    {"driver", "[\\d.]+"},
    {"date", "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ"},
    {"exit", "0"},
    {"sanitizer", "\\S.*"}};

static std::vector<Section> readOutput(const Lines &lines, size_t first,
                                       size_t last) {
    std::vector<Section> sections;
    for (size_t i = first; i < last; ++i) {
        if (startsWith(lines[i], "== ")) {
            const auto title = match(lines[i], "== ([^\\s:]+): .* ==");
            sections.push_back(
                {title ? (*title)[0] : "", i + 1, {lines[i]}, {}, {}});
            continue;
        }
        if (sections.empty()) continue;
        Section &section = sections.back();
        section.lines.push_back(lines[i]);
        const auto label = match(lines[i], "(\\S+): +(.*)");
        if (label)
            section.labels.emplace_back((*label)[0], trim((*label)[1]));
        else if (!words(lines[i]).empty())
            section.table.emplace_back(i + 1, words(lines[i]));
    }
    for (Section &section : sections)
        while (trim(section.lines.back()).empty()) section.lines.pop_back();
    return sections;
}

Transcript readTranscript(const std::string &path, const std::string &text,
                          const std::function<std::string(size_t)> &checksum,
                          Faults *faults) {
    Transcript transcript;
    transcript.path = path;
    transcript.folder = path.substr(path.find('/') + 1);
    transcript.folder.resize(transcript.folder.find('/'));
    const Reporter fault = {path, 3, faults,
                            "; remove the transcript or capture it again"};
    const Lines lines = splitLines(text);
    for (size_t i = 0; i < lines.size(); ++i)
        if (!isPlain(lines[i])) {
            fault(i + 1, "a byte here is no printable ASCII");
            return transcript;
        }
    const std::string last = lines.empty() ? "" : lines.back();
    const auto end = match(last, "-- end ([0-9a-f]{64}) --");
    if (!end || text.back() != '\n') {
        fault(std::max<size_t>(lines.size(), 1),
              "the last line is not '-- end CHECKSUM --': the file was cut "
              "off or added to");
        return transcript;
    }
    transcript.checksum = (*end)[0];
    if (checksum(text.size() - last.size() - 1) != transcript.checksum)
        fault(lines.size(),
              "the checksum is not that of the lines above: they "
              "were changed after the run");
    size_t at = 0;
    for (const auto &[key, shape] : kFields) {
        const std::string prefix = key + std::string(": ");
        const bool several = prefix == "fingerprint: ";
        size_t found = 0;
        for (; startsWith(lines[at], prefix) && (several || found == 0);
             ++at, ++found) {
            const std::string value = lines[at].substr(prefix.size());
            const auto parts = match(value, shape);
            if (!parts)
                fault(at + 1, "'~' cannot be the field '~'", {value, key});
            else if (several)
                transcript.sources.emplace_back((*parts)[0],
                                                (*parts)[1].empty()
                                                    ? transcript.field("lesson")
                                                    : (*parts)[1]);
            transcript.fields[key] = value;
        }
        if (found == 0) {
            fault(at + 1, "the field '~' should stand here", {key});
            return transcript;
        }
    }
    const auto stop = std::find(lines.rbegin(), lines.rend(), "-- stderr --");
    const size_t errors = lines.rend() - stop;  // the line's number
    if (lines[at] != "-- stdout --" || errors < at + 2) {
        fault(at + 1,
              "'-- stdout --', and below the output '-- stderr --', "
              "should stand here");
        return transcript;
    }
    if (errors + 1 < lines.size()) fault(errors + 1, "the run wrote to stderr");
    transcript.whole = true;
    transcript.complete =
        match(lines[errors - 2],
              "All checks passed\\.|\\d+ passed, 0 failed, \\d+ skipped")
            .has_value();
    transcript.sections =
        readOutput(lines, at + 1, errors - 1 - transcript.complete);
    return transcript;
}

std::string Transcript::field(const std::string &key) const {
    const auto found = fields.find(key);
    return found == fields.end() ? "" : found->second;
}

const Section *Transcript::section(const std::string &name) const {
    for (const Section &section : sections)
        if (section.name == name) return &section;
    return nullptr;
}

std::optional<std::string> Section::figure(const std::string &place) const {
    for (const auto &[label, value] : labels)
        if (label == place) return value;
    for (const auto &[line, row] : table)
        for (size_t k = 1; k < row.size() && k < table[0].second.size(); ++k)
            if (line != table[0].first &&
                row[0] + "/" + table[0].second[k] == place)
                return row[k];
    return std::nullopt;
}

// --- the claims ledger ---

Lines Claim::values(const std::string &key) const {
    Lines result;
    for (const Field &field : fields)
        if (field.key == key) result.push_back(field.value);
    return result;
}

std::vector<Claim> readClaims(const std::string &path, const std::string &text,
                              Faults *faults) {
    std::vector<Claim> claims;
    const Reporter fault = {path, 10, faults};
    const Lines lines = splitLines(text);
    for (size_t i = 0; i < lines.size(); ++i) {
        const std::string &line = lines[i];
        if (!isPlain(line)) {
            fault(i + 1, kNotPlain);
            return claims;
        }
        const auto name = match(line, "## (.*)");
        const auto field = match(line, "- ([a-z]+): (.*)");
        if (name) {
            if (!match((*name)[0], "[a-z0-9-]+") ||
                std::any_of(claims.begin(), claims.end(), [&](const Claim &c) {
                    return c.name == (*name)[0];
                }))
                fault(i + 1,
                      "'~' is no name of lower-case letters, digits and "
                      "dashes, or is taken; rename the claim",
                      *name);
            claims.push_back({(*name)[0], i + 1, "", {}});
            continue;
        }
        if (trim(line).empty() || (i == 0 && startsWith(line, "# "))) continue;
        if (claims.empty()) {
            if (match(line, " *[-#<>].*"))
                fault(i + 1,
                      "a heading, a quotation or a field above the first "
                      "claim, which begins '## name'; mend it");
            continue;
        }
        Claim &claim = claims.back();
        if (line[0] == '>' && claim.fields.empty())
            claim.quote = join(words(claim.quote + " " + line.substr(1)));
        else if (field)
            claim.fields.push_back({i + 1, (*field)[0], trim((*field)[1])});
        else if (match(line, "  [^-\\s#<>].*") && !claim.fields.empty())
            claim.fields.back().value += " " + trim(line);
        else
            fault(i + 1,
                  "a claim is a quotation and then a list of '- key: "
                  "value'; this line is neither; mend it");
    }
    if (claims.empty())
        fault(std::max<size_t>(lines.size(), 1),
              "there is no claim, which begins '## name'; put them back");
    return claims;
}

std::optional<CodeCheck> readCodeCheck(const std::string &value) {
    const auto parts = match(value,
                             "(\\S+): `([^`]+)` (=|>=|<=) (\\d{1,6})"
                             "(?: before `([^`]+)`)?");
    if (!parts || ((*parts)[2] == ">=" && std::stoul((*parts)[3]) == 0))
        return std::nullopt;
    return CodeCheck{(*parts)[0], (*parts)[1], (*parts)[2],
                     std::stoul((*parts)[3]), (*parts)[4]};
}

}  // namespace gate
