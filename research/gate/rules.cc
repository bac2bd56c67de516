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
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    if (!file.is_open() || !fs::is_regular_file(path) ||
        text.size() != fs::file_size(path))
        throw CouldNotRun(path + " cannot be read; put it there");
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

// The files of a folder with this extension, by name; none if it is missing.
static Lines listFiles(const std::string &root, const std::string &folder,
                       const std::string &extension) {
    Lines found;
    std::error_code error;
    for (const auto &entry : fs::directory_iterator(root + "/" + folder, error))
        if (entry.path().extension() == extension)
            found.push_back((fs::path(folder) / entry.path().filename()));
    std::sort(found.begin(), found.end());
    return found;
}

// The words of the Makefile's one line LESSONS := ..., and its number.
static Lines readLessonList(const std::string &makefile, size_t *line) {
    const Lines lines = splitLines(makefile);
    Lines found;
    for (size_t i = 0; i < lines.size(); ++i) {
        if (!startsWith(lines[i], "LESSONS")) continue;
        if (!found.empty() || !startsWith(lines[i], "LESSONS :="))
            throw CouldNotRun("Makefile: a second list LESSONS; keep one");
        *line = i + 1;
        std::string list = lines[i].substr(10);
        while (!list.empty() && list.back() == '\\' && i + 1 < lines.size())
            list.back() = ' ', list += lines[++i];
        found = words(list);
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
    if (!exists("evidence/capture.sh"))
        throw CouldNotRun("evidence/capture.sh is missing; put it back");

    size_t listLine = 0;
    std::set<std::string> names, folders = {"", "evidence"}, sources;
    for (const std::string &entry :
         readLessonList(read("Makefile"), &listLine)) {
        const std::string path = entry + ".cu";
        if (!exists(path)) {
            faults->push_back({"Makefile", listLine, 1,
                               "there is no " + path +
                                   "; write it or take it "
                                   "from the list"});
            continue;
        }
        repository.lessons.push_back(readLesson(path, read(path)));
        sources.insert(path);
        folders.insert(entry.substr(0, entry.find('/')));
        if (!names.insert(repository.lessons.back().name).second)
            throw CouldNotRun("Makefile: two lessons have the name of " + path +
                              "; rename one");
    }
    for (const std::string &folder : folders) {
        if (folder != "" && folder != "evidence")
            for (const std::string &path : listFiles(root, folder, ".cu"))
                if (sources.count(path) == 0)
                    faults->push_back({path, 1, 1,
                                       "the Makefile's list lacks this "
                                       "lesson; add it"});
        const std::string readme = fs::path(folder) / "README.md";
        if (!exists(readme))
            faults->push_back(
                {readme, 1, 5, "this README is missing; write it"});
        for (const std::string &path : listFiles(root, folder, ".md"))
            repository.readmes.push_back({path, read(path)});
    }
    repository.claims =
        readClaims("research/CLAIMS.md", read("research/CLAIMS.md"), faults);

    for (const std::string &folder : listFiles(root, "evidence", ""))
        for (const std::string &path : listFiles(root, folder, ".txt"))
            repository.transcripts.push_back(readTranscript(
                path, read(path),
                [&](size_t bytes) {
                    return hashFrom("head -c " + std::to_string(bytes) +
                                    " -- " + quoted(root + "/" + path) +
                                    " | sha256sum");
                },
                faults));
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
// reading it). It lies where its lesson, GPU and date say. A lesson's output
// ends with 'All checks passed.', and the sanitizers reported nothing that the
// ledger does not explain. No path of a machine stands in it.
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
        if (lesson && (transcript.sources.size() != 1 || !transcript.complete))
            fault(1,
                  "there are several fingerprints, or the output does not "
                  "end with 'All checks passed.'; capture again");
        for (const Section &section : transcript.sections)
            for (size_t i = 0; i < section.lines.size(); ++i)
                for (const std::string &word : words(section.lines[i]))
                    if (word.size() > 1 && word[0] == '/')
                        fault(section.line + i,
                              "'~' is a path of a machine; "
                              "do not print it, and capture again",
                              {word});
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

// In every transcript the names of sections, and in a section those of labels,
// rows and columns, are unique, and a row has a figure for every column. In a
// current transcript of a lesson the sections are those of the source; the
// rows and columns of a table are those of the constants that its // Table
// comment names, and no section without that comment has a table.
void rule4(const Repository &repository, Faults *faults) {
    std::map<std::string, std::vector<SourceSection>> sources;
    for (const Lesson &lesson : repository.lessons)
        sources[lesson.name] = sectionsOf(lesson, faults);
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
        if (sources.count(transcript.folder) == 0 || !transcript.current)
            continue;

        Lines want;
        for (const SourceSection &source : sources[transcript.folder]) {
            want.push_back(source.name);
            const Section *section = transcript.section(source.name);
            if (!section) continue;
            const Lines rows = rowNames(*section);
            const Lines columns =
                section->table.empty() ? Lines() : section->table[0].second;
            const char *kText =
                "the ~ of '~' are '~', by the lesson's "
                "constants '~'";
            if (columns != source.columns)
                fault(section->line, kText,
                      {"columns", source.name, join(columns),
                       join(source.columns)});
            if (rows != source.rows)
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
void rules5And6(const Repository &repository, Faults *faults) {
    for (const Readme &readme : repository.readmes)
        for (const Fault &fault : weaveReadme(repository, readme).faults)
            faults->push_back(fault);
}

// The snippet markers of a lesson pair up and do not nest, a snippet has some
// code, and its name is its own. In read.cc; that each snippet which a README
// names exists is seen in weaving.
void rule7(const Repository &repository, Faults *faults) {
    for (const Lesson &lesson : repository.lessons) snippetsOf(lesson, faults);
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

// CUDA_CHECK, timeKernel, what it returns and the constants they share are
// the same text in every lesson as in the first of the list, each as the
// paragraph it stands in, with its comment.
void rule8(const Repository &repository, Faults *faults) {
    for (const std::string begin :
         {"#define CUDA_CHECK(", "Timing timeKernel(", "struct Timing {",
          "constexpr int kLaunches = "})
        for (const Lesson &lesson : repository.lessons) {
            const Piece got = paragraph(lesson, begin);
            const Piece want = paragraph(repository.lessons[0], begin);
            const Lines here = splitLines(trim(got.text));
            const Lines there = splitLines(trim(want.text));
            size_t same = 0;
            while (same < here.size() && same < there.size() &&
                   here[same] == there[same])
                ++same;
            if (here.empty())
                Reporter{lesson.path, 8, faults}(
                    1,
                    "no line begins '~'; every lesson has it, copy it from "
                    "another",
                    {begin});
            else if (here != there)
                Reporter{lesson.path, 8, faults}(
                    got.line + same,
                    "the paragraph of '~' is another text "
                    "than in ~; make them the same",
                    {begin, repository.lessons[0].path});
        }
}

// The lines of a lesson are printable ASCII (so no tab, no carriage return) of
// at most 80 columns, the last one too ends with a newline, the first is the
// SPDX line. No include in quotation marks or with .. in it; no assert; no
// block comment, as the fingerprint knows // comments alone.
void rule9(const Repository &repository, Faults *faults) {
    for (const Lesson &lesson : repository.lessons) {
        const Reporter fault = {lesson.path, 9, faults};
        if (lesson.text.empty() || lesson.text.back() != '\n')
            fault(std::max<size_t>(lesson.lines.size(), 1),
                  "the file does not end with a newline; add it");
        if (lesson.lines.empty() ||
            lesson.lines[0] != "// SPDX-License-Identifier: MIT")
            fault(1, "the first line is not '// SPDX-License-Identifier: MIT'");
        for (size_t i = 0; i < lesson.lines.size(); ++i) {
            const std::string &line = lesson.lines[i];
            if (line.size() > 80)
                fault(i + 1, "this line is longer than 80 columns; break it");
            if (std::any_of(line.begin(), line.end(),
                            [](char c) { return c < ' ' || c > '~'; }))
                fault(i + 1,
                      "a byte of this line is no printable ASCII (a "
                      "tab or carriage return is not); replace it");
            const std::string code = withoutStrings(lesson.code[i]);
            if (code.find("/*") != code.npos)
                fault(i + 1, "a block comment begins here; use //");
            if (code.find("assert") == code.npos &&
                code.find("include") == code.npos)
                continue;
            if (match(code, "(?:.*\\W)?assert\\b *[(].*") ||
                match(code, " *# *include *<c?assert(?:\\.h)?>.*"))
                fault(i + 1, "NDEBUG deletes assert; count a failure instead");
            if (match(lesson.code[i], " *# *include *(?:\".*|<.*\\.\\..*)"))
                fault(i + 1,
                      "a lesson includes no file of this repository; "
                      "write out what it needs");
        }
    }
}

// What each check of a claim has to look like.
static const std::map<std::string, std::string> kClaimFields = {
    {"file", "\\S+"},
    {"source", "\\S+\\.cu"},
    {"ptx", "\\S+: `.+` (?:(?:=|<=) \\d{1,6}|>= [1-9]\\d{0,5})"},
    {"sass", "\\S+: `.+` (?:(?:=|<=) \\d{1,6}|>= [1-9]\\d{0,5})"},
    {"counter",
     "\\S+: (?:part [1-9]\\d* of \\d+: )?`[^`]+ (?:=|<=|>=) [^`]+`(?:; .+)?"},
    {"racecheck", "\\S+: `[^`]+`; \\S+: `[^`]+`"},
    {"document", "[^;]+; [^;]+; [^;]+"},
    {"showed", ".+"},
    {"for", "(?:all|sm_\\d+[a-z]?(?:, sm_\\d+[a-z]?)*); CUDA [\\d.]+"}};

// A claim quotes a sentence that stands, line breaks and comment slashes
// aside, in every file it names; has a check of the form that its kind asks
// for; and says what that showed, for which architectures and toolkit.
void rule10(const Repository &repository, Faults *faults) {
    const Reporter fault = {"research/CLAIMS.md", 10, faults};
    for (const Claim &claim : repository.claims) {
        std::map<std::string, size_t> counts;
        for (const auto &[line, key, value] : claim.fields) {
            ++counts[key];
            const auto shape = kClaimFields.find(key);
            if (shape == kClaimFields.end() || !match(value, shape->second)) {
                fault(line,
                      "'~: ~' is no field of a claim; write it as the "
                      "others are",
                      {key, value});
                continue;
            }
            if (key != "file" && key != "source") continue;
            const std::string path = repository.root + "/" + value;
            std::string text;
            if (fs::is_regular_file(path))
                for (const std::string &part : splitLines(readFile(path)))
                    text += " " + trim(part).substr(
                                      startsWith(trim(part), "//") ? 2 : 0);
            if (text.empty())
                fault(line, "~ is not there; name a file that is", {value});
            else if (key == "file" &&
                     join(words(text)).find(claim.quote) == text.npos)
                fault(line,
                      "the sentence does not stand in ~; look again "
                      "whether it is true, and quote it as it stands",
                      {value});
        }
        if (claim.quote.empty() || counts["file"] == 0 ||
            counts["showed"] != 1 || counts["for"] != 1)
            fault(claim.line,
                  "a claim needs a quotation, and fields 'file', "
                  "'showed' and 'for'; add what is missing");
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
