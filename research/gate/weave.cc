// SPDX-License-Identifier: MIT

#include "weave.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <set>

namespace gate {

namespace fs = std::filesystem;

// --- numbers with units ---

// Ends where a word ends.
static const char kUnit[] =
    "(?:[nmu]?s|[nmu]sec|(?:nano|micro|milli)?seconds?|%|per ?cent|x|-?fold|"
    "cycles?|[kMG]?Hz|times(?: (?:as|better|worse|faster|slower|quicker|longer|"
    "shorter|more|less|fewer|cheaper|larger|smaller|higher|lower|greater))?|"
    "[A-Za-z]{1,20}(?: ?/ ?s| per second)|[A-Z]?FLOPS)(?!\\w)";

// Text as a page shows it: without the targets of links and the marks of
// emphasis, code and links. A _ inside a word is none.
static std::string shown(const std::string &text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        const size_t end = text.compare(i, 2, "](") == 0
                               ? text.find_first_of(") \n", i)
                               : text.npos;
        if (end != text.npos && text[end] == ')')
            i = end;
        else if (!std::strchr("*`[]~_", text[i]) ||
                 (text[i] == '_' && i > 0 && isWord(text[i - 1]) &&
                  i + 1 < text.size() && isWord(text[i + 1])))
            result += text[i];
    }
    return result;
}

// A number is a run of digits, perhaps with points, commas or an exponent,
// that is no part of a word (so not the 90 of sm_90). Its unit follows at
// once, or after blanks or one line end: ns, us, ms, s or these written out;
// cycles, Hz; % or percent; x (4x, but not between two numbers with a blank
// before it: 4 x 4 tiles), fold, and times behind a fraction or before a
// comparison; anything a second (GB/s); FLOPS. A ratio may also read x23, 23:1,
// a factor or a speedup of 23. No units are minutes, days, bytes, elements. A
// number that is all of a table's cell has its unit elsewhere. And a number of
// three decimals or more has been measured, whatever stands behind it, but in a
// word (0.001f) or a version.
std::vector<Piece> findUnits(const std::string &original) {
    const std::string text = shown(original) + "\n";
    static const std::regex kNumber(
        "(\\d[\\d.,]{0,30}(?:[eE][-+]?\\d{1,4})?)"
        "(?:[ \\t]{1,9}x(?= ?\\d)|[ \\t]{0,9}\\n?[ \\t>]{0,9}(" +
        std::string(kUnit) + "))?");
    std::vector<Piece> found;
    size_t number = 1;
    for (size_t at = 0; at < text.size(); ++at) {
        number += text[at] == '\n';
        std::smatch unit;
        if (std::isdigit(static_cast<unsigned char>(text[at])) &&
            std::regex_search(text.cbegin() + at, text.cend(), unit, kNumber,
                              std::regex_constants::match_continuous)) {
            const bool count = unit.str(2) == "times" &&
                               unit.str(1).find('.') == std::string::npos;
            if ((unit[2].matched && !count) ||
                (match(unit.str(1), "\\d+\\.\\d{3,}[.,]?") &&
                 !isWord(text[at + unit.length(1)]) &&
                 (at < 8 || text.compare(at - 8, 8, "version ") != 0)))
                found.push_back(
                    {number, trim(unit.str(1) + " " + unit.str(2))});
            at += unit.length(1) - 1;
        }
        while (isWord(text[at]) && isWord(text[at + 1])) ++at;
    }

    static const std::regex kOther(
        "[|\\n][ \\t]{0,20}\\d[\\d.,]{0,30}[ \\t]{0,20}\\||"
        "\\b(?:factors?|speed-?ups?)\\s{1,9}of\\s{1,9}\\d[\\d.,]{0,30}|"
        "\\bx(?!86)(?:\\d{2}|\\d\\.\\d)\\S{0,30}|\\b\\d[\\d.,]{0,30}:1\\b");
    for (std::sregex_iterator at(text.begin(), text.end(), kOther), end;
         at != end; ++at)
        found.push_back(
            {size_t(std::count(text.cbegin(), (*at)[0].second, '\n')) + 1,
             join(words(at->str()))});
    return found;
}

// --- what is woven ---

static const char kNotYet[] = "not yet recorded";

// Where the figures of a lesson, or of another folder of transcripts, come
// from: a transcript if it is ready.
struct Source {
    enum { kUnknown, kBroken, kNotRecorded, kReady } state;
    const Transcript *transcript;
};

// A lesson's figures are those of the transcript that its Verified block
// names. Those of peers, check-gpu and knobs-LESSON are those of the newest
// current transcript whose lessons are all Verified, of the GPU that the
// Verified blocks name: of that lesson, or of all.
static Source findSource(const Repository &repository,
                         const std::string &name) {
    if (const Lesson *lesson = repository.lesson(name)) {
        const Transcript *transcript =
            repository.transcript(lesson->published());
        if (lesson->usable && !lesson->verified())
            return {Source::kNotRecorded, nullptr};
        const bool ready = lesson->usable && transcript && transcript->usable;
        return {ready ? Source::kReady : Source::kBroken, transcript};
    }
    if (name != "peers" && name != "check-gpu" &&
        !(startsWith(name, "knobs-") && repository.lesson(name.substr(6))))
        return {Source::kUnknown, nullptr};
    Source newest = {Source::kNotRecorded, nullptr};
    for (const Transcript &transcript : repository.transcripts) {
        if (transcript.folder != name) continue;
        bool usable = transcript.usable, any = false;
        for (const Lesson &lesson : repository.lessons) {
            const Transcript *run = repository.transcript(lesson.published());
            any = any || run;
            bool bears = run && !startsWith(name, "knobs-");
            for (const auto &source : transcript.sources)
                bears = bears || source.second == lesson.path;
            if (bears && (!lesson.usable || (run && !run->usable)))
                return {Source::kBroken, nullptr};
            if (bears)
                usable = usable && run &&
                         run->field("gpu") == transcript.field("gpu");
        }
        if (usable && any &&
            (!newest.transcript ||
             newest.transcript->field("date") < transcript.field("date")))
            newest = {Source::kReady, &transcript};
    }
    return newest;
}

// One README on its way through the loom.
class Loom {
   public:
    Loom(const Repository &repository, const Readme &readme)
        : repository_(repository),
          path_(readme.path),
          lines_(splitLines(readme.text)) {}

    Woven weave() {
        const std::string kMarker =
            "<!-- (output|snippet|figure|index)(?: (.*\\S))? -->";
        for (; at_ < lines_.size(); ++at_) {
            const auto marker = match(lines_[at_], kMarker);
            if (marker)
                weaveBlock((*marker)[0], (*marker)[1]);
            else if (isMarker(lines_[at_]))
                broken(
                    "this marker is not alone in its line, or ends what "
                    "did not begin; mend it");
            else
                weaveLine(lines_[at_]);
        }
        if (!woven_.whole) return woven_;  // inside and outside are mixed up
        for (const Piece &unit : findUnits(plain_))
            fault(unit.line, 5,
                  "'~' has a unit, three decimals or a cell of its own, "
                  "outside markers; weave it from a transcript or leave it out",
                  {unit.text});
        return woven_;
    }

   private:
    void fault(size_t line, int rule, const std::string &text,
               const Lines &values = {}) {
        woven_.faults.push_back({path_, line, rule, fill(text, values)});
    }

    // The marker in this line does not pair up: the line stays as it is.
    void broken(const char *text) {
        fault(at_ + 1, 5, text);
        woven_.whole = false;
        keep(lines_[at_], "");
    }

    // Takes over a line, of which plain shows outside markers.
    void keep(const std::string &line, const std::string &plain) {
        woven_.text += line + "\n";
        plain_ += plain + "\n";
    }

    static bool isMarker(const std::string &line) {
        return line.find("<!--") != line.npos &&
               match(trim(line),
                     ".*<!--\\s*(?:output|snippet|figure|index|end)\\b.*")
                   .has_value();
    }

    // Reports that what stands in a line is not what name stands for.
    void stale(size_t line, const std::string &name) {
        if (notRecorded_)
            fault(line, 6,
                  "no Verified run bears out '~', so '~' belongs "
                  "here; run make docs",
                  {name, kNotYet});
        else
            fault(line, 5,
                  "this is not what the source of '~' has; run make docs",
                  {name});
    }

    // Whether weaving may put something else in the place of these lines.
    static bool isWoven(const Lines &shown) {
        const auto count = [&](const char *regex) {
            return std::count_if(
                shown.begin(), shown.end(),
                [&](const std::string &s) { return match(s, regex); });
        };
        return size_t(count("\\s*")) == shown.size() ||
               size_t(count("\\|.*")) == shown.size() ||
               (shown.size() == 1 &&
                count("!\\[[^\\]]*\\]\\(\\S+\\)|not yet recorded") == 1) ||
               (shown.size() > 1 && count("```.*") == 2 &&
                startsWith(shown[0], "```") && shown.back() == "```");
    }

    // Keeps a block's two markers, and puts between them what belongs there.
    void weaveBlock(const std::string &kind, const std::string &name) {
        size_t end = at_ + 1;
        while (end < lines_.size() && !isMarker(lines_[end])) ++end;
        if (end == lines_.size() || inFence_ ||
            name.empty() != (kind == "index") ||
            lines_[end] != "<!-- end " + kind + " -->")
            return broken(
                "this marker is incomplete, or inside a fence, or "
                "the next marker is not its end; mend it");
        const Lines shown(lines_.begin() + at_ + 1, lines_.begin() + end);
        const bool woven = isWoven(shown);
        if (!woven) {  // weaving would lose it
            fault(at_ + 2, 5,
                  "between these markers stands more than a fence, an image or "
                  "a table; move it out");
            woven_.whole = false;
        }
        notRecorded_ = false;
        const auto body = kind == "output"    ? outputBody(name)
                          : kind == "snippet" ? snippetBody(name)
                          : kind == "figure"  ? figureBody(name)
                                              : indexBody();
        const Lines want = body && woven ? splitLines(*body) : shown;
        const size_t same = firstDifference(want, shown);
        if (want != shown) stale(at_ + 2 + same, trim(kind + " " + name));
        keep(lines_[at_], kind == "figure" ? name : "");
        for (const std::string &line : want) woven_.text += line + "\n";
        plain_ += std::string(shown.size(), '\n');
        keep(lines_[end], "");
        at_ = end;
    }

    // Reports what may not stand outside markers: what only looks like plain
    // text there, so that findUnits would not see what a page shows; code and
    // figures; a link to what is not there.
    void checkText(const std::string &plain) {
        const char *text = nullptr;
        if (!isPlain(plain))
            text = kNotPlain;
        else if (plain.size() > 2000)
            text = "this line is longer than 2000 bytes; break it";
        else if (!inFence_ &&
                 match(plain,
                       ".*(?:<(?!/?(?:details|summary)>)[A-Za-z/!?]|&#?\\w+;|"
                       "\\\\|\\]\\[).*"))
            text =
                "HTML but <details> and <summary>, a comment, an entity, a "
                "backslash or a link by reference; write it plainly";
        else if (match(plain, ".*!\\[.*|(?: {0,3}> ?)* {4}.*[;{}] *"))
            text = "code or a figure stands outside markers; weave it";
        if (text) fault(at_ + 1, 5, text);
        const fs::path here = fs::path(repository_.root + "/" + path_);
        for (size_t at = 0; (at = plain.find("](", at)) != plain.npos;) {
            at += 2;
            const std::string link = plain.substr(
                at, std::min(plain.find_first_of("#)", at), plain.size()) - at);
            std::error_code error;
            if (!link.empty() && !match(link, "https?:.*") &&
                !fs::exists(here.parent_path() / link, error))
                fault(at_ + 1, 5, "'~' is not there; mend the link", {link});
        }
    }

    // Takes over a line outside blocks, with the values of its inline markers.
    void weaveLine(const std::string &line) {
        const std::string text = trim(line);
        const bool fence = startsWith(line, "```");
        if (fence ? text != (inFence_ ? "```" : "```sh") &&
                        (inFence_ || text != "```bash")
                  : line.find("```") != line.npos ||
                        line.find("~~~") != line.npos)
            fault(at_ + 1, 5,
                  "outside markers a fence begins ```sh and "
                  "holds commands; weave output and code");
        if (fence) inFence_ = !inFence_;
        const auto command = match(text, "nvcc .* -o (\\S+)(?: .*)?");
        const Lesson *lesson =
            command ? repository_.lesson((*command)[0]) : nullptr;
        if (lesson && lesson->builds.size() == 1 &&
            !startsWith(text + " ", lesson->builds[0].text + " "))
            fault(at_ + 1, 5, "the Build command of ~ is '~'; write that",
                  {lesson->path, lesson->builds[0].text});

        static const char kOpen[] = "<!--=", kClose[] = "<!--/-->";
        std::string result, plain;
        size_t at = 0;
        while (line.find("<!--=", at) != line.npos ||
               line.find(kClose, at) != line.npos) {
            const size_t open = line.find(kOpen, at);
            const size_t value = line.find("-->", open) + 3;
            const size_t close = line.find(kClose, at);
            if (open == line.npos || close == line.npos || value < open ||
                value > close || line.find(kOpen, open + 1) < close)
                return broken(
                    "'<!--= NAME -->' and '<!--/-->' do not pair up "
                    "in this line; mend them");
            const std::string before = line.substr(0, open);
            const size_t end = close + std::strlen(kClose);
            if (inFence_ || match(before, " {4}.*|[-\\s>*+.)\\d]*") ||
                (ticks_ + std::count(before.begin(), before.end(), '`')) % 2)
                fault(at_ + 1, 5,
                      "an inline marker does not work in code or at the start "
                      "of a line; move it");
            else if (!std::strchr(" (", before.back()) ||
                     !match(line.substr(end), "[).,;:?]*(?: .*)?"))
                fault(at_ + 1, 5,
                      "what touches an inline marker would read as part of its "
                      "figure; put a blank between them");
            const std::string name =
                trim(line.substr(open + 5, value - 3 - open - 5));
            const std::string shown = line.substr(value, close - value);
            notRecorded_ = false;
            const std::string want = inlineValue(name).value_or(shown);
            if (want != shown) stale(at_ + 1, name);
            plain += line.substr(at, open - at) + "#";
            result += line.substr(at, value - at) + want + kClose;
            at = end;
        }
        ticks_ += std::count(line.begin(), line.end(), '`');
        if (fence || inFence_ || text.empty()) ticks_ = 0;
        checkText(plain + line.substr(at));
        keep(result + line.substr(at), plain + line.substr(at));
    }

    // The section that name begins with, and rest, what is left of name. If
    // there is no run to show, sets notRecorded_ and returns nullptr.
    const Section *findSection(const std::string &name, std::string *rest) {
        const auto parts = match(name, "([^/]+)/([^/]+)(?:/(.*))?");
        const Source source = findSource(repository_, parts ? (*parts)[0] : "");
        if (!parts || source.state == Source::kUnknown) {
            fault(at_ + 1, 5,
                  "'~' begins with no lesson or folder of "
                  "transcripts; mend the name",
                  {name});
            return nullptr;
        }
        *rest = (*parts)[2];
        const Section *section = nullptr;
        bool known = source.state != Source::kReady;
        if (source.state == Source::kReady)
            known = (section = source.transcript->section((*parts)[1]));
        if (const Lesson *lesson = repository_.lesson((*parts)[0])) {
            known = !lesson->usable;  // its own faults say why
            for (const SourceSection &other : lesson->sections)
                known = known || other.name == (*parts)[1];
        }
        if (!known)
            fault(at_ + 1, 5, "there is no section '~'; mend the name",
                  {(*parts)[0] + "/" + (*parts)[1]});
        notRecorded_ = known && source.state == Source::kNotRecorded;
        return section;
    }

    // The following four return what belongs between markers; nothing where
    // that cannot be told, for a reason that is reported.

    std::optional<std::string> outputBody(const std::string &name) {
        std::string rest;
        const Section *section = findSection(name, &rest);
        if (notRecorded_) return kNotYet;
        if (!section) return std::nullopt;
        std::string body = "```text\n";
        for (const std::string &line : section->lines) body += line + "\n";
        return body + "```\n";
    }

    std::optional<std::string> inlineValue(const std::string &name) {
        std::string place;
        const Section *section = findSection(name, &place);
        if (notRecorded_) return kNotYet;
        if (!section) return std::nullopt;
        const auto figure = section->figure(place);
        if (!figure)
            fault(at_ + 1, 5, "'~' has no '~'; name ROW/COLUMN or LABEL",
                  {section->name, place});
        else if (place != "gpu" && !match(*figure, "\\d+(?:\\.\\d+)?"))
            fault(at_ + 1, 5,
                  "'~' of '~' is '~', no figure for a sentence; name another",
                  {place, section->name, *figure});
        else
            return figure;
        return std::nullopt;
    }

    std::optional<std::string> snippetBody(const std::string &name) {
        for (const Lesson &lesson : repository_.lessons)
            for (const Snippet &snippet : lesson.snippets)
                if (name == lesson.name + "/" + snippet.name)
                    return "```cuda\n" + snippet.code + "```\n";
        fault(at_ + 1, 7, "there is no snippet '~'; name one that a lesson has",
              {name});
        return std::nullopt;
    }

    // make figures draws a figure, and notes in it what it drew it from.
    std::optional<std::string> figureBody(const std::string &marker) {
        const auto parts = match(marker, "([^/]+)/([a-z0-9-]+): (.+)");
        const Source source = findSource(repository_, parts ? (*parts)[0] : "");
        if (!parts || source.state == Source::kUnknown)
            fault(at_ + 1, 5,
                  "a figure's marker reads 'figure LESSON/NAME: "
                  "what it shows'; mend it");
        notRecorded_ = source.state == Source::kNotRecorded;
        if (notRecorded_) return kNotYet;
        if (source.state != Source::kReady) return std::nullopt;
        const std::string figure =
            fill("evidence/figures/~-~.svg", {(*parts)[0], (*parts)[1]});
        const std::string file = repository_.root + "/" + figure;
        const std::string drawn =
            fill("<!-- drawn from ~ ~ -->",
                 {source.transcript->path, source.transcript->checksum});
        if (!fs::is_regular_file(file) ||
            readFile(file).find(drawn) == std::string::npos)
            fault(at_ + 1, 5,
                  "~ is missing, or not drawn from ~; run make "
                  "figures",
                  {figure, source.transcript->path});
        const fs::path here = fs::path("/" + path_).parent_path();
        return fill(
            "![~](~)\n",
            {(*parts)[2], fs::path("/" + figure).lexically_relative(here)});
    }

    std::optional<std::string> indexBody() {
        if (repository_.transcripts.empty()) return kNotYet;
        std::string body =
            "| lesson | GPU | capability | toolkit | driver | sanitizer | "
            "source | transcript |\n|---|---|---|---|---|---|---|---|\n";
        for (const Transcript &run : repository_.transcripts) {
            if (!run.whole) return std::nullopt;
            // The claims that explain reports, if there are any.
            const std::string field = run.field("sanitizer");
            Lines sanitizer;
            for (const std::string &word : words(field))
                if (const auto claim = match(word, "\\((.*)\\),?"))
                    sanitizer.push_back((*claim)[0]);
            if (sanitizer.empty())
                sanitizer = {field == "not applicable" ? "-"
                             : field.find_first_of("123456789") == field.npos
                                 ? "clean"
                                 : field};
            body += fill(
                "| ~ | ~ | ~ | ~ | ~ | ~ | ~ | [~](~) |\n",
                {run.folder, run.field("gpu"), run.field("compute capability"),
                 run.field("toolkit"), run.field("driver"), join(sanitizer),
                 !run.current  ? "earlier"
                 : run.partial ? "partial"
                               : "current",
                 run.field("date").substr(0, 10),
                 fs::path(run.path).lexically_relative("evidence")});
        }
        return body;
    }

    const Repository &repository_;
    const std::string path_;
    const Lines lines_;
    size_t at_ = 0;             // the line that is woven, from 0
    bool inFence_ = false;      // outside blocks
    size_t ticks_ = 0;          // backticks so far in this paragraph
    bool notRecorded_ = false;  // what is woven waits for a run
    std::string plain_;         // what stands outside markers, line by line
    Woven woven_;
};

Woven weaveReadme(const Repository &repository, const Readme &readme) {
    return Loom(repository, readme).weave();
}

// --- writing ---

// Puts text into the file as a whole: through a temporary file beside it.
static void replaceFile(const std::string &path, const std::string &text) {
    const std::string partial = path + ".partial." + std::to_string(getpid());
    errno = 0;
    std::ofstream file(partial, std::ios::binary);
    file << text;
    file.close();
    if (file && std::rename(partial.c_str(), path.c_str()) == 0) return;
    const std::string reason = std::strerror(errno);
    std::remove(partial.c_str());
    throw CouldNotRun(path + " cannot be written (" + reason +
                      "); it is as it was");
}

Faults weaveAll(Repository *repository) {
    Faults faults = checkEvidence(repository);
    for (Readme &readme : repository->readmes) {
        const Woven woven = weaveReadme(*repository, readme);
        if (woven.whole && woven.text != readme.text) {
            replaceFile(repository->root + "/" + readme.path, woven.text);
            std::cout << readme.path << ": woven\n";
            readme.text = woven.text;
        }
        for (const Fault &fault : weaveReadme(*repository, readme).faults)
            faults.push_back(fault);
    }
    return faults;
}

void writeSnippets(const Repository &repository, const std::string &folder) {
    for (const Lesson &lesson : repository.lessons) {
        std::error_code error;
        const fs::path place = fs::path(folder) / lesson.name;
        fs::create_directories(place, error);
        if (error)
            throw CouldNotRun(place.string() + " cannot be made (" +
                              error.message() + ")");
        std::set<fs::path> written;
        for (const Snippet &snippet : lesson.snippets) {
            written.insert(place / (snippet.name + ".cu"));
            replaceFile(place / (snippet.name + ".cu"), snippet.code);
        }
        for (const auto &entry : fs::directory_iterator(place, error))
            if (entry.path().extension() == ".cu" &&
                written.count(entry.path()) == 0)
                fs::remove(entry.path(), error);
    }
}

}  // namespace gate
