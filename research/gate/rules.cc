// SPDX-License-Identifier: MIT

#include "rules.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "weave.h"

namespace gate {

namespace fs = std::filesystem;

// --- reading the repository ---

std::string readFile(const std::string &path) {
    if (!fs::is_regular_file(path))
        throw CouldNotRun(path + " is no file; put it there");
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    if (!file.is_open() || text.size() != fs::file_size(path))
        throw CouldNotRun(path + " cannot be read; see who may read it");
    return text;
}

static std::string quoted(const std::string &path) {
    std::string result;
    for (char c : path) result += c == '\'' ? "'\\''" : std::string(1, c);
    return "'" + result + "'";
}

// The sha256 that a shell command prints.
static std::string hashFrom(const std::string &command) {
    std::FILE *pipe = popen(command.c_str(), "r");
    if (!pipe) throw CouldNotRun("no process can be started; free some memory");
    char text[256] = "";
    const size_t got = std::fread(text, 1, sizeof(text), pipe);
    pclose(pipe);
    const auto hash =
        match(trim(std::string(text, got)), "([0-9a-f]{64})(?: .*)?");
    if (!hash)
        throw CouldNotRun("this prints no sha256; run it and see why: " +
                          command);
    return (*hash)[0];
}

// What stands in a folder, by name, hidden things aside.
static Lines listFolder(const std::string &root, const std::string &folder) {
    Lines found;
    std::error_code error;
    for (const auto &entry : fs::directory_iterator(root + "/" + folder, error))
        if (entry.path().filename().string()[0] != '.')
            found.push_back(fs::path(folder) / entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
}

// The words of the Makefile's one line LESSONS := ..., and its number.
static Lines readLessonList(const std::string &makefile, size_t *line) {
    const Lines lines = splitLines(makefile);
    Lines found;
    for (size_t i = 0; i < lines.size(); ++i) {
        if (!match(lines[i], "LESSONS\\b.*")) continue;
        if (!found.empty() || !startsWith(lines[i], "LESSONS :="))
            throw CouldNotRun("Makefile: a second list LESSONS; keep one");
        *line = i + 1;
        std::string list = lines[i].substr(10);
        while (!list.empty() && list.back() == '\\' && i + 1 < lines.size())
            list.back() = ' ', list += lines[++i];
        found = words(list.substr(0, list.find('#')));
    }
    if (found.empty())
        throw CouldNotRun("Makefile: no list 'LESSONS := ...'; write it");
    return found;
}

Repository readRepository(const std::string &root) {
    Repository repository;
    repository.root = root;
    Faults *faults = &repository.faults;
    const auto exists = [&](const std::string &path) {
        return fs::is_regular_file(root + "/" + path);
    };
    const auto read = [&](const std::string &path) {
        return readFile(root + "/" + path);
    };
    for (const std::string path :
         {"Makefile", "evidence/capture.sh", "research/CLAIMS.md"})
        if (!fs::exists(root + "/" + path))
            throw CouldNotRun(path +
                              " is missing; put it back, or run this in the "
                              "repository's top folder");

    size_t listLine = 0;
    std::set<std::string> names, folders = {"", "evidence"}, sources;
    // What may stand at the top, in a lesson's folder and in evidence/.
    std::set<std::string> known = {"LICENSE",  "Makefile",
                                   "build",    "evidence",
                                   "research", "evidence/capture.sh"};
    for (const std::string &entry :
         readLessonList(read("Makefile"), &listLine)) {
        const std::string path = entry + ".cu";
        const std::string folder = entry.substr(0, entry.find('/'));
        if (!exists(path)) {
            faults->push_back({"Makefile", listLine, 1,
                               "there is no file " + path +
                                   "; write it or take it from the list"});
            continue;
        }
        const std::string text = read(path);
        if (text.empty() || text.find('\r') != text.npos)
            throw CouldNotRun(path +
                              " is empty or has carriage returns; "
                              "write its lines and end them plainly");
        repository.lessons.push_back(readLesson(path, text));
        sources.insert(path);
        folders.insert(folder);
        known.insert({path, entry, folder});  // entry: built as its header says
        if (!names.insert(repository.lessons.back().name).second)
            throw CouldNotRun("Makefile: two lessons have the name of " + path +
                              "; rename one");
    }
    for (const std::string &folder : folders) {
        const std::string readme = fs::path(folder) / "README.md";
        known.insert(readme);
        if (exists(readme))
            repository.readmes.push_back({readme, read(readme)});
        else
            faults->push_back(
                {readme, 1, 5, "this README is missing; write it"});
    }
    for (const Readme &readme : repository.readmes)
        for (const std::string &line : splitLines(readme.text))
            if (const auto name = match(line, "<!-- figure (\\S+)/(\\S+): .*"))
                known.insert(fill("evidence/figures/~-~.svg", *name));
    repository.claims =
        readClaims("research/CLAIMS.md", read("research/CLAIMS.md"), faults);
    for (const std::string &path : listFolder(root, "research"))
        if (fs::path(path).extension() == ".md")
            repository.notes.push_back({path, read(path)});

    for (const std::string &folder : listFolder(root, "evidence")) {
        if (!fs::is_directory(root + "/" + folder)) continue;
        known.insert(folder);
        folders.insert(folder);
        for (const std::string &path : listFolder(root, folder)) {
            if (fs::path(path).extension() != ".txt" || !exists(path)) continue;
            known.insert(path);
            repository.transcripts.push_back(readTranscript(
                path, read(path),
                [&](size_t bytes) {
                    return hashFrom("head -c " + std::to_string(bytes) +
                                    " -- " + quoted(root + "/" + path) +
                                    " | sha256sum");
                },
                faults));
        }
    }
    for (const std::string &folder : folders)
        for (const std::string &path : listFolder(root, folder))
            if (known.count(path) == 0)
                faults->push_back(
                    {path, 1, 1,
                     fs::path(path).extension() == ".cu"
                         ? "the Makefile's list lacks this lesson; add it"
                         : "nothing of this name belongs here; remove it"});
    for (const Transcript &transcript : repository.transcripts)
        for (const auto &source : transcript.sources)
            sources.insert(source.second);
    for (const std::string &path : sources)
        if (exists(path))
            repository.fingerprints[path] = hashFrom(
                "cd " + quoted(root) +
                " && sh evidence/capture.sh --fingerprint " + quoted(path));
    for (Transcript &transcript : repository.transcripts) {
        transcript.current = !transcript.sources.empty();
        for (const auto &[fingerprint, path] : transcript.sources)
            if (repository.fingerprints[path] != fingerprint)
                transcript.current = false;
        // check-gpu should have skipped nothing, and looked at all claims on
        // machine code and counters.
        if (transcript.folder != "check-gpu") continue;
        const Section *total = transcript.section("total");
        transcript.partial = !(total && total->figure("skipped") == "0");
        for (const Claim &claim : repository.claims)
            for (const auto &[key, name] : {std::pair("sass", "sass"),
                                            std::pair("counter", "counters")}) {
                const Section *section = transcript.section(name);
                if (!claim.values(key).empty() &&
                    !(section &&
                      section->figure(claim.name + "/result") == "passed"))
                    transcript.partial = true;
            }
    }
    return repository;
}

const Lesson *Repository::lesson(const std::string &name) const {
    for (const Lesson &lesson : lessons)
        if (lesson.name == name) return &lesson;
    return nullptr;
}

const Transcript *Repository::transcript(const std::string &path) const {
    for (const Transcript &transcript : transcripts)
        if (transcript.path == path) return &transcript;
    return nullptr;
}

// --- the rules ---

// The status block of a lesson that may publish this transcript, whose article
// before the GPU's name is taken from the block.
static std::string verifiedBlock(const Transcript &transcript, bool an) {
    const std::string toolkit = transcript.field("toolkit");
    return fill(
        "Verified: run on ~ ~ (compute capability ~), driver ~, CUDA ~ (V~), "
        "on ~. The only output that may be published is ~. How that was "
        "decided: research/REVIEW-PROCESS.md",
        {an ? "an" : "a", transcript.field("gpu"),
         transcript.field("compute capability"), transcript.field("driver"),
         toolkit.substr(0, toolkit.rfind('.')), toolkit,
         transcript.field("date").substr(0, 10), transcript.path});
}

// Every lesson of the list is there and has one Build line, one Needs line
// with a compute capability and, last in its header comment, one status block:
// UNVERIFIED, word for word; or Verified, naming a transcript of this lesson
// and saying what that says of GPU, capability, driver, toolkit and date. Then
// the Build line is the transcript's too.
void rule1(const Repository &repository, Faults *faults) {
    const std::string kUnverified =
        "UNVERIFIED: not run on real hardware; nothing it prints may be "
        "published. How that changes: research/REVIEW-PROCESS.md";
    for (const Lesson &lesson : repository.lessons) {
        const Reporter fault = {lesson.path, 1, faults};
        const size_t end = std::max<size_t>(lesson.headerEnd, 1);
        if (lesson.builds.size() != 1)
            fault(end, "the header needs one line '// Build: COMMAND'");
        if (lesson.needs.size() != 1 ||
            !match(lesson.needs[0].text, "compute capability \\d+\\.\\d .*"))
            fault(end,
                  "the header needs one line '// Needs: compute "
                  "capability N.M or newer, ...'");
        if (lesson.statuses.empty())
            fault(end,
                  "there is no status block; end the header comment with "
                  "'// UNVERIFIED: ...'");
        for (size_t i = 1; i < lesson.statuses.size(); ++i)
            fault(lesson.statuses[i].line, "a second status block; keep one");
        if (lesson.statuses.size() != 1) continue;

        const auto &[line, status] = lesson.statuses[0];
        const auto from = lesson.lines.begin() + (line - 1);
        const auto to = lesson.lines.begin() + lesson.headerEnd;
        if (line > lesson.headerEnd || std::find(from, to, "//") != to)
            fault(line,
                  "the status block is not the end of the header "
                  "comment; move it there");
        const std::string path = lesson.published();
        const Transcript *transcript = repository.transcript(path);
        if (!lesson.verified()) {
            if (status != kUnverified)
                fault(line, "the status block does not read '~'",
                      {kUnverified});
        } else if (!transcript || transcript->folder != lesson.name) {
            fault(line,
                  "the Verified block names no transcript of this lesson "
                  "that is there, but '~'; mark the lesson UNVERIFIED",
                  {path});
        } else if (transcript->whole) {
            const bool an = startsWith(status, "Verified: run on an ");
            const std::string want = verifiedBlock(*transcript, an);
            if (status != want)
                fault(line,
                      "the Verified block and ~ do not agree; by the "
                      "latter it reads '~'",
                      {path, want});
            if (lesson.builds.size() == 1 &&
                lesson.builds[0].text != transcript->field("build"))
                fault(lesson.builds[0].line,
                      "the Build line is not that of ~, which is '~'; capture "
                      "again",
                      {path, transcript->field("build")});
        }
    }
}

// The transcript that a Verified block names was made from the code as it
// stands: its fingerprint is that of the source.
void rule2(const Repository &repository, Faults *faults) {
    for (const Lesson &lesson : repository.lessons) {
        const Transcript *transcript =
            repository.transcript(lesson.published());
        if (transcript && transcript->whole && !transcript->current)
            Reporter{lesson.path, 2, faults}(
                lesson.statuses[0].line,
                "~ is from a run of other code than this; capture again or "
                "mark the lesson UNVERIFIED",
                {transcript->path});
    }
}

// Whether each tool of a sanitizer field reports nothing, or names behind the
// count a claim of the ledger that explains its reports.
static bool isClean(const Repository &repository, const std::string &field) {
    const std::string kCount = " (\\d+)(?: \\(([a-z0-9-]+)\\))?";
    const auto parts =
        match(field, "memcheck" + kCount + ", racecheck" + kCount +
                         ", synccheck" + kCount + ", initcheck" + kCount);
    if (!parts) return false;
    for (size_t i = 0; i < parts->size(); i += 2) {
        bool clean = (*parts)[i] == "0";
        for (const Claim &claim : repository.claims)
            clean = clean || (claim.name == (*parts)[i + 1] &&
                              !claim.values("racecheck").empty());
        if (!clean) return false;
    }
    return true;
}

// A transcript is whole: printable ASCII, every field once, in order and of a
// possible value, exit 0, nothing on stderr, the checksum right (these in
// reading it). It lies where its lesson, GPU and date say, and the output names
// the same GPU. The first fingerprint is that of the source it is a run of; a
// lesson has no other. A lesson's output ends with 'All checks passed.', and
// the sanitizers reported nothing that the ledger does not explain. The output
// has no path of a machine, no figure that failed among checks that passed, and
// nothing that would end the fence or the markers around it in a README.
void rule3(const Repository &repository, Faults *faults) {
    for (const Transcript &transcript : repository.transcripts) {
        const Reporter fault = {transcript.path, 3, faults};
        if (!transcript.whole) continue;  // said already
        const std::string &folder = transcript.folder;
        std::string gpu = transcript.field("gpu");
        for (char &c : gpu)
            c = c == ' ' ? '-'
                         : char(std::tolower(static_cast<unsigned char>(c)));
        const std::string place =
            fill("evidence/~/~-~.txt",
                 {folder, gpu, transcript.field("date").substr(0, 10)});
        if (transcript.path != place)
            fault(1, "by its gpu and date this belongs to ~; capture again",
                  {place});
        const Lesson *lesson = repository.lesson(folder);
        const Lesson *about = lesson;
        if (startsWith(folder, "knobs-"))
            about = repository.lesson(folder.substr(6));
        if (!about && folder != "peers" && folder != "check-gpu") {
            fault(1, "'~' is no lesson; remove the transcript", {folder});
            continue;
        }
        if (about && transcript.field("lesson") != about->path)
            fault(1, "this is a transcript of ~, not of ~; remove it",
                  {transcript.field("lesson"), about->path});
        const std::string sanitizer = transcript.field("sanitizer");
        if (lesson ? !isClean(repository, sanitizer)
                   : sanitizer != "not applicable")
            fault(1,
                  "the sanitizer field is '~'; mend what it reports, or "
                  "explain it by a claim with a racecheck line",
                  {sanitizer});
        const std::string source =
            transcript.sources.empty() ? "" : transcript.sources[0].second;
        if (source != transcript.field("lesson") ||
            (lesson && transcript.sources.size() > 1))
            fault(2,
                  "the first fingerprint is that of ~, and the only one of a "
                  "lesson; capture again",
                  {transcript.field("lesson")});
        if (lesson && !transcript.complete)
            fault(1, "the output does not say that all passed; capture again");
        const Section *device = transcript.section("device");
        if (device && (device->figure("gpu") != transcript.field("gpu") ||
                       device->figure("compute_capability") !=
                           transcript.field("compute capability") ||
                       device->figure("sms") != transcript.field("sms")))
            fault(device->line,
                  "gpu, compute_capability and sms are not what the fields "
                  "say; capture again");
        for (const Section &section : transcript.sections)
            for (size_t i = 0; i < section.lines.size(); ++i)
                for (const std::string &word : words(section.lines[i])) {
                    const char *what =
                        word.size() > 1 && word[0] == '/'
                            ? "a path of a machine"
                        : i > 0 && word == "failed" && transcript.complete
                            ? "a failure among checks that passed"
                        : word.find("<!--") != word.npos ||
                                word.find("```") != word.npos
                            ? "the end of what shows this"
                            : nullptr;
                    if (what)
                        fault(section.line + i,
                              "'~' is ~; do not print it, and capture again",
                              {word, what});
                }
    }
}

static Lines rowNames(const Section &section) {
    Lines names;
    for (const auto &[line, row] : section.table)
        if (line != section.table[0].first) names.push_back(row[0]);
    return names;
}

static bool hasDuplicate(Lines names) {
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) != names.end();
}

// The faults of a rule that reading the lessons has shown.
static void addFaults(const Repository &repository, int rule, Faults *faults) {
    for (const Lesson &lesson : repository.lessons)
        for (const Fault &fault : lesson.faults)
            if (fault.rule == rule) faults->push_back(fault);
}

// In every transcript the names of sections, and in a section those of labels,
// rows and columns, are unique, and a row has a figure for every column. In a
// current transcript of a lesson the sections are those of the source; the
// rows and columns of a table are those of the constants that its // Table
// comment names, and no section without that comment has a table.
void rule4(const Repository &repository, Faults *faults) {
    addFaults(repository, 4, faults);
    for (const Transcript &transcript : repository.transcripts) {
        if (!transcript.whole) continue;
        const Reporter fault = {transcript.path, 4, faults,
                                "; mend the program and capture again"};
        Lines names;
        for (const Section &section : transcript.sections) {
            names.push_back(section.name);
            Lines labels;
            for (const auto &label : section.labels)
                labels.push_back(label.first);
            if (section.name.empty())
                fault(section.line, "a title reads '== name: words =='", {});
            if (hasDuplicate(labels) || hasDuplicate(rowNames(section)) ||
                (!section.table.empty() &&
                 hasDuplicate(section.table[0].second)))
                fault(section.line,
                      "a label, row or column of '~' stands in "
                      "it twice",
                      {section.name});
            for (const auto &[line, row] : section.table)
                if (row.size() != section.table[0].second.size())
                    fault(line, "this row of '~' has ~ words, the header ~",
                          {section.name, std::to_string(row.size()),
                           std::to_string(section.table[0].second.size())});
        }
        if (hasDuplicate(names))
            fault(1, "a section stands twice in '~'", {join(names)});
        const Lesson *lesson = repository.lesson(transcript.folder);
        if (!lesson || !transcript.current) continue;

        Lines want;
        for (const SourceSection &source : lesson->sections) {
            want.push_back(source.name);
            const Section *section = transcript.section(source.name);
            if (!section) continue;
            const Lines rows = rowNames(*section);
            const Lines columns =
                section->table.empty() ? Lines() : section->table[0].second;
            const char *kText =
                "the ~ of '~' are '~', by the lesson's "
                "constants '~'";
            if (source.columns.empty() && !columns.empty())
                Reporter{lesson->path, 4, faults}(
                    1,
                    "'~' has a table in ~, of '~', but here no '// Table ~: "
                    "rows kX, columns kY.'; mend the // Table comment",
                    {source.name, transcript.path, join(columns), source.name});
            else if (columns != source.columns)
                fault(section->line, kText,
                      {"columns", source.name, join(columns),
                       join(source.columns)});
            else if (rows != source.rows)
                fault(section->line, kText,
                      {"rows", source.name, join(rows), join(source.rows)});
        }
        std::sort(names.begin(), names.end());
        std::sort(want.begin(), want.end());
        if (names != want)
            fault(1, "the sections are '~', by the lesson's titles '~'",
                  {join(names), join(want)});
    }
}

// What a README shows is woven between markers and is what its source has (5);
// what no Verified run bears out reads 'not yet recorded' (6). In weave.cc.
// evidence/README.md has the index, a folder's README shows code of each
// lesson in it, and no number with a unit stands in a lesson's comments, the
// Verified block aside, or in the notes under research/.
void rules5And6(const Repository &repository, Faults *faults) {
    for (const Readme &readme : repository.readmes) {
        for (const Fault &fault : weaveReadme(repository, readme).faults)
            faults->push_back(fault);
        const Reporter fault = {readme.path, 5, faults};
        const std::string folder = fs::path(readme.path).parent_path();
        if (folder == "evidence" &&
            readme.text.find("<!-- index -->") == std::string::npos)
            fault(1, "the index is missing; write its markers");
        for (const Lesson &lesson : repository.lessons)
            if (fs::path(lesson.path).parent_path() == folder &&
                readme.text.find("<!-- snippet " + lesson.name + "/") ==
                    std::string::npos)
                fault(1, "no code of ~ is shown; weave a snippet of it",
                      {lesson.path});
    }
    std::vector<Readme> notes = repository.notes;
    for (const Lesson &lesson : repository.lessons) {
        notes.push_back({lesson.path, ""});
        for (size_t i = 0; i < lesson.lines.size(); ++i) {
            const bool status = lesson.verified() && i < lesson.headerEnd &&
                                i + 1 >= lesson.statuses[0].line;
            notes.back().text += (status ? "" : lesson.comment(i)) + "\n";
        }
    }
    for (const Readme &note : notes)
        for (const Piece &unit : findUnits(note.text))
            if (!match(unit.text, "[\\d.,]+"))  // decimals are data here
                Reporter{note.path, 5, faults}(
                    unit.line,
                    "'~' has a unit, and no run bears it out here; leave it "
                    "to a README",
                    {unit.text});
}

// The snippet markers of a lesson pair up and do not nest, a snippet has some
// code, and its name is its own. In read.cc; that each snippet which a README
// names exists is seen in weaving.
void rule7(const Repository &repository, Faults *faults) {
    addFaults(repository, 7, faults);
}

// The paragraph around the first line that begins so: from a blank line to the
// next one behind which a line is not indented.
static Piece paragraph(const Lesson &lesson, const std::string &begin) {
    Piece piece = {0, ""};
    bool found = false;
    for (size_t i = 0; i < lesson.lines.size(); ++i) {
        const std::string &line = lesson.lines[i];
        if (!line.empty() && i > 0 && lesson.lines[i - 1].empty() &&
            line[0] != ' ') {
            if (found) break;
            piece = {i + 1, ""};
        }
        found = found || startsWith(line, begin);
        piece.text += line + "\n";
    }
    return found ? piece : Piece{1, ""};
}

// CUDA_CHECK, timeKernel, what it returns, the constants they share and the
// functions that print are the same text in every lesson as in the first that
// has them, each as the paragraph it stands in, with its comment. Each begins
// once in a file.
void rule8(const Repository &repository, Faults *faults) {
    for (const std::string begin :
         {"#define CUDA_CHECK(", "struct Timing {", "Timing timeKernel(",
          "constexpr int kLaunches = ", "double spreadPercent(",
          "bool nearFloor(", "void printCell(", "void printLabels(",
          "std::string figure("}) {
        const Lesson *first = nullptr;
        for (const Lesson &lesson : repository.lessons) {
            const Reporter fault = {lesson.path, 8, faults};
            const auto count =
                std::count_if(lesson.lines.begin(), lesson.lines.end(),
                              [&](const auto &line) {
                                  return startsWith(trim(line), begin);
                              });
            if (count != 1) {
                fault(1,
                      "~ lines begin '~', not one; copy it from another lesson",
                      {std::to_string(count), begin});
                continue;
            }
            if (!first) first = &lesson;
            const Piece got = paragraph(lesson, begin);
            const Lines here = splitLines(trim(got.text));
            const Lines there = splitLines(trim(paragraph(*first, begin).text));
            if (here != there)
                fault(got.line + firstDifference(here, there),
                      "the paragraph of '~' is another text than in ~; make "
                      "them the same",
                      {begin, first->path});
        }
    }
}

// The lines of a lesson are printable ASCII (so no tab, no carriage return) of
// at most 80 columns, the last one too ends with a newline, the first is the
// SPDX line. An include is of a header in angle brackets, without dots for a
// folder; the one macro is CUDA_CHECK; no assert. Nothing that hides code from
// the fingerprint, which takes line by line and knows // comments alone: no
// block comment; no line that goes on in the next, but in a #define without a
// comment; no string that does, as raw ones may; no quotation mark that touches
// a word and so could be read in two ways.
void rule9(const Repository &repository, Faults *faults) {
    for (const Lesson &lesson : repository.lessons) {
        const Reporter fault = {lesson.path, 9, faults};
        if (lesson.text.empty() || lesson.text.back() != '\n')
            fault(std::max<size_t>(lesson.lines.size(), 1),
                  "the file does not end with a newline; add it");
        if (lesson.lines.empty() ||
            lesson.lines[0] != "// SPDX-License-Identifier: MIT")
            fault(1, "the first line is not '// SPDX-License-Identifier: MIT'");
        bool inDefine = false;  // the line before goes on in this one
        for (size_t i = 0; i < lesson.lines.size(); ++i) {
            const std::string &line = lesson.lines[i];
            if (line.size() > 80)
                fault(i + 1, "this line is longer than 80 columns; break it");
            if (!isPlain(line)) fault(i + 1, kNotPlain);
            const bool goesOn =
                !trim(line).empty() && trim(line).back() == '\\';
            inDefine = goesOn && line == lesson.code[i] &&
                       (inDefine || startsWith(line, "#define "));
            if (goesOn && !inDefine)
                fault(i + 1,
                      "this line goes on in the next, which only a #define "
                      "may that has no comment; break it otherwise");
            // In a string that is open, // is no comment.
            const std::string code = withoutStrings(lesson.code[i] + "//");
            if (code.size() < 2 || code.substr(code.size() - 2) != "//" ||
                (code.find_first_of("\"'") != code.npos &&
                 match(code, ".*(?:\\w\"|\\b[A-Za-z_]\\w*'|\\w'(?!\\w)).*")))
                fault(i + 1,
                      "a string that is raw or does not end in its line, or a "
                      "quotation mark that touches a word; write it otherwise");
            if (code.find("/*") != code.npos)
                fault(i + 1, "a block comment begins here; use //");
            if (code.find("assert") != code.npos &&
                match(code, "(?:.*\\W)?assert\\b *[(].*|.*<c?assert.*"))
                fault(i + 1, "NDEBUG deletes assert; count a failure instead");
            if (code.find_first_of("#%") == code.npos) continue;
            if (match(code, "\\s*(?:#|%:)\\s*(?:define|undef)\\b.*") &&
                !startsWith(code, "#define CUDA_CHECK("))
                fault(i + 1,
                      "the one macro of a lesson is CUDA_CHECK; write a "
                      "constant or a function");
            if (match(code, ".*\\b(?:include|include_next|import)\\b.*") &&
                !match(lesson.code[i], "#include <(?:\\w+/)*\\w+(?:\\.h)?> *"))
                fault(i + 1,
                      "a lesson includes headers of the toolkit and of C++ "
                      "alone, as '#include <NAME>'; write out what it needs");
        }
    }
}

// What each check of a claim has to look like.
static const std::map<std::string, std::string> kClaimFields = {
    {"file", "\\S+"},
    {"source", "\\S+\\.cu"},
    {"ptx", ".+"},  // readCodeCheck says more of these two
    {"sass", ".+"},
    {"counter",
     "\\S+: (?:part [1-9]\\d* of \\d+: )?`[^`]+ (?:=|<=|>=) [^`]+`(?:; .+)?"},
    {"racecheck", "\\S+: `[^`]+`; \\S+: `[^`]+`"},
    {"document", "[^;]+; [^;]+; [^;]+"},
    {"showed", ".+"},
    {"for", "(?:all|sm_\\d+[a-z]?(?:, sm_\\d+[a-z]?)*); CUDA [\\d.]+"}};

// What a claim may quote of a file: the comments of a source, a page without
// its fences. A | stands for what is left out.
static std::string prose(const std::string &path, const std::string &text) {
    const bool source = fs::path(path).extension() == ".cu";
    const Lesson file = source ? readLesson(path, text) : Lesson();
    const Lines lines = splitLines(text);
    std::string result;
    bool inFence = false;
    for (size_t i = 0; i < lines.size(); ++i) {
        const bool fence = !source && startsWith(trim(lines[i]), "```");
        inFence = inFence != fence;
        if (source)
            result +=
                (trim(file.code[i]).empty() ? " " : " | ") + file.comment(i);
        else
            result += fence || inFence ? " |" : " " + lines[i];
    }
    return join(words(result));
}

// A claim quotes a sentence of five words or more that stands, line breaks and
// comment slashes aside, in the prose of every file it names; has a check of
// the form that its kind asks for; and says what that showed, for which
// architectures and toolkit.
void rule10(const Repository &repository, Faults *faults) {
    const Reporter fault = {"research/CLAIMS.md", 10, faults};
    std::map<std::string, std::string> texts;
    for (const Claim &claim : repository.claims) {
        std::map<std::string, size_t> counts;
        for (const auto &[line, key, value] : claim.fields) {
            ++counts[key];
            const auto shape = kClaimFields.find(key);
            if (shape == kClaimFields.end() || !match(value, shape->second) ||
                ((key == "ptx" || key == "sass") && !readCodeCheck(value))) {
                fault(line,
                      "'~: ~' is no field of a claim; write it as the "
                      "others are",
                      {key, value});
                continue;
            }
            if (key != "file" && key != "source") continue;
            const std::string path = repository.root + "/" + value;
            if (!fs::is_regular_file(path)) {
                fault(line, "~ is not there; name a file that is", {value});
                continue;
            }
            std::string &text = texts[value];
            if (text.empty()) text = prose(value, readFile(path));
            if (key == "file" && text.find(claim.quote) == text.npos)
                fault(line,
                      "the sentence does not stand in ~; look again "
                      "whether it is true, and quote it as it stands",
                      {value});
        }
        if (words(claim.quote).size() < 5 || counts["file"] == 0 ||
            counts["showed"] != 1 || counts["for"] != 1)
            fault(claim.line,
                  "a claim needs a quotation of five words or more, and fields "
                  "'file', 'showed' and 'for'; add what is missing");
        if (counts["ptx"] + counts["sass"] + counts["counter"] +
                counts["racecheck"] + counts["document"] ==
            0)
            fault(claim.line,
                  "the claim has no check; add a field 'ptx', "
                  "'sass', 'counter' or 'document'");
    }
}

Faults checkEvidence(Repository *repository) {
    Faults faults = repository->faults;
    rule1(*repository, &faults);
    rule2(*repository, &faults);
    rule3(*repository, &faults);
    rule4(*repository, &faults);
    std::set<std::string> faulty;
    for (const Fault &fault : faults) faulty.insert(fault.file);
    for (Lesson &lesson : repository->lessons)
        lesson.usable = faulty.count(lesson.path) == 0;
    for (Transcript &transcript : repository->transcripts)
        transcript.usable =
            transcript.current && faulty.count(transcript.path) == 0;
    return faults;
}

Faults checkAll(Repository *repository) {
    Faults faults = checkEvidence(repository);
    for (const auto rule : {rules5And6, rule7, rule8, rule9, rule10})
        rule(*repository, &faults);
    std::stable_sort(faults.begin(), faults.end(),
                     [](const Fault &a, const Fault &b) {
                         return std::tie(a.file, a.line, a.rule) <
                                std::tie(b.file, b.line, b.rule);
                     });
    return faults;
}

std::string faultLine(const Fault &fault) {
    return fill("~:~: rule ~: ~", {fault.file, std::to_string(fault.line),
                                   std::to_string(fault.rule), fault.text});
}

}  // namespace gate
