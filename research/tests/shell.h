// SPDX-License-Identifier: MIT
//
// What tests need to run commands: a shell command and what came of it, files,
// and a folder that goes away with the test.

#ifndef RESEARCH_TESTS_SHELL_H_
#define RESEARCH_TESTS_SHELL_H_

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

// The bytes of a file; throws if it cannot be read.
inline std::string readFile(const std::filesystem::path &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
}

// Makes a file of these bytes, and the folders above it; throws if it cannot.
inline void writeFile(const std::filesystem::path &path,
                      const std::string &bytes) {
    if (path.has_parent_path())
        std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    if (!(file << bytes).flush())
        throw std::runtime_error("cannot write " + path.string());
}

// A folder in the system's place for temporary files, removed in the end. Its
// name has a space, so that every test also tests that.
class TempDir {
   public:
    TempDir() {
        std::string name =
            (std::filesystem::temp_directory_path() / "cuda lessons XXXXXX")
                .string();
        if (mkdtemp(name.data()) == nullptr)
            throw std::runtime_error("cannot make a temporary folder");
        path_ = name;
    }
    ~TempDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDir(const TempDir &) = delete;
    TempDir &operator=(const TempDir &) = delete;
    const std::filesystem::path &path() const { return path_; }

   private:
    std::filesystem::path path_;
};

// What a command did. status is its exit status, 128 + the signal if one
// killed it.
struct Outcome {
    int status;
    std::string out;
    std::string err;
};

// Runs a command in sh, its standard input empty.
inline Outcome run(const std::string &command) {
    const TempDir dir;
    const std::string base = "'" + dir.path().string() + "/";
    const std::string redirected =
        "(" + command + "\n) </dev/null >" + base + "out' 2>" + base + "err'";
    const int status = std::system(redirected.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            readFile(dir.path() / "out"), readFile(dir.path() / "err")};
}

// A path as one word for sh.
inline std::string quoted(const std::filesystem::path &path) {
    std::string word = "'";
    for (char c : path.string())
        word += c == '\'' ? "'\\''" : std::string(1, c);
    return word + "'";
}

// An environment variable, or what to use without it.
inline std::string environment(const char *name, const char *otherwise) {
    const char *value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : otherwise;
}

#endif  // RESEARCH_TESTS_SHELL_H_
