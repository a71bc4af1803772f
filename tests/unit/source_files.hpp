// SPDX-License-Identifier: BSL-1.0
// The text of the project's own files, for tests of rules that a compiler does not check.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace cohort::test {

namespace fs = std::filesystem;

inline const fs::path root = COHORT_SOURCE_DIR;

struct source_file {
    std::string path;  // relative to the root
    std::vector<std::string> lines;
};

inline source_file read_source(const fs::path& path) {
    source_file file{fs::relative(path, root).string(), {}};
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);)
        file.lines.push_back(line);
    REQUIRE_FALSE(file.lines.empty());
    return file;
}

/// Each folder is read once.
inline const std::vector<source_file>& files_in(const std::string& folder) {
    static std::map<std::string, std::vector<source_file>> read;
    auto& found = read[folder];
    if (!found.empty())
        return found;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
        const auto extension = entry.path().extension();
        if (extension != ".hpp" && extension != ".cpp")
            continue;
        found.push_back(read_source(entry.path()));
    }
    REQUIRE_FALSE(found.empty());
    return found;
}

/// Whether the line holds one of the words: a quick look before a search by a regular expression.
inline bool mentions(const std::string& line, std::initializer_list<const char*> words) {
    return std::ranges::any_of(
        words, [&](const char* word) { return line.find(word) != std::string::npos; });
}

inline std::vector<std::string> includes_of(const source_file& file) {
    static const std::regex include(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
    std::vector<std::string> found;
    for (const auto& line : file.lines)
        if (std::smatch match;
            mentions(line, {"include"}) && std::regex_search(line, match, include))
            found.push_back(match[1]);
    return found;
}

/// The place in a list; its size for what is not in it.
inline std::size_t place(const std::vector<std::string>& list, const std::string& name) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), name) - list.begin());
}

inline bool starts_with(const std::string& text, const std::string& start) {
    return text.rfind(start, 0) == 0;
}

inline std::string without_comment(const std::string& line) {
    return line.substr(0, line.find("//"));
}

/// A line of code with those that follow: a call's arguments may stand there.
inline std::string call_at(const source_file& file, std::size_t line) {
    std::string call;
    for (std::size_t i = line; i < file.lines.size() && i < line + 4; ++i)
        call += without_comment(file.lines[i]);
    return call;
}

}  // namespace cohort::test
