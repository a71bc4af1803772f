// SPDX-License-Identifier: BSL-1.0
// The rules for every file that a compiler does not check: how long a file may be, that no
// descriptor is left to what is executed, and that nothing blocks on a process.
#include "source_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace rules_test {

using namespace cohort::test;

namespace {

std::ptrdiff_t columns(const std::string& line) {
    const auto begins = [](char c) { return (c & 0xc0) != 0x80; };  // a UTF-8 character
    return std::count_if(line.begin(), line.end(), begins);
}

/// The headings of a page as links name them: "## Who sent SIGKILL?" is who-sent-sigkill.
std::set<std::string> headings_of(const fs::path& page) {
    std::set<std::string> headings;
    for (const auto& line : read_source(page).lines) {
        if (!line.starts_with("#"))
            continue;
        std::string name;
        for (const unsigned char c : line.substr(std::min(line.find(' '), line.size() - 1) + 1))
            if (std::isalnum(c) != 0 || c == '-' || c == '_')
                name += static_cast<char>(std::tolower(c));
            else if (c == ' ')
                name += '-';
        headings.insert(name);
    }
    return headings;
}

/// Whether a public header includes detail/asio.hpp, itself or through others.
bool knows_asio(const std::string& header) {
    static std::map<std::string, bool> known{{"cohort/detail/asio.hpp", true}};
    if (const auto found = known.find(header); found != known.end())
        return found->second;
    const auto includes = includes_of(read_source(root / "include" / header));
    return known[header] = std::ranges::any_of(includes, [](const std::string& next) {
               return next.starts_with("cohort/") && knows_asio(next);
           });
}

}  // namespace

TEST_CASE("rules: each file names its licence") {
    for (const std::string folder : {"include", "src", "tests", "examples"})
        for (const auto& file : files_in(folder)) {
            INFO(file.path);
            REQUIRE_FALSE(file.lines.empty());
            CHECK(file.lines[0] == "// SPDX-License-Identifier: BSL-1.0");
        }
}

TEST_CASE("rules: a line has at most 100 columns, unless it holds text that can't be broken") {
    const std::regex skips(R"re(// clang-format (off|on))re");
    for (const std::string folder : {"include", "src", "tests", "examples"})
        for (const auto& file : files_in(folder)) {
            bool is_formatted = true;
            for (std::size_t i = 0; i < file.lines.size(); ++i) {
                const auto& line = file.lines[i];
                std::smatch found;
                if (mentions(line, {"clang-format"}) && std::regex_search(line, found, skips))
                    is_formatted = found[1] == "on";
                if (is_formatted && line.size() > 100 && !mentions(line, {"R\""}))
                    CHECK_MESSAGE(columns(line) <= 100, file.path << ":" << i + 1);
            }
        }
}

TEST_CASE("rules: every source file that a comment names exists") {
    std::vector<source_file> all;
    for (const std::string folder : {"include", "src", "tests", "examples"})
        std::ranges::copy(files_in(folder), std::back_inserter(all));
    const auto exists = [&](const std::string& name) {
        return std::ranges::any_of(all, [&](const source_file& file) {
            return file.path == name || file.path.ends_with("/" + name);
        });
    };
    const std::regex path(R"re((^|[\s(`])([A-Za-z_]\w*(/\w+)*\.[ch]pp)\b)re");  // none in quotes
    for (const auto& file : all)
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            const auto& line = file.lines[i];
            if (!mentions(line, {"//"}))
                continue;
            const auto comment = line.substr(line.find("//"));
            if (!mentions(comment, {".cpp", ".hpp"}))
                continue;
            for (std::sregex_iterator at(comment.begin(), comment.end(), path), end; at != end;
                 ++at)
                CHECK_MESSAGE(exists((*at)[2]), file.path << ":" << i + 1 << ": " << (*at)[2]);
        }
}

TEST_CASE("rules: files are opened close-on-exec because other threads may execute programs") {
    const std::regex opens(R"re(\W::open(at)?\(|\bSYS_openat\b)re");
    const std::regex leaks(R"re(std::(i|o)?fstream\b|\b(fopen|creat|dup|pipe)\s*\()re");
    for (const std::string folder : {"include", "src"})
        for (const auto& file : files_in(folder))
            for (std::size_t i = 0; i < file.lines.size(); ++i) {
                const auto code = without_comment(file.lines[i]);
                if (!mentions(code, {"open", "fstream", "creat", "dup", "pipe"}))
                    continue;
                INFO(file.path << ":" << i + 1 << ": " << code);
                CHECK_FALSE(std::regex_search(code, leaks));
                if (std::regex_search(code, opens))
                    CHECK(call_at(file, i).find("O_CLOEXEC") != std::string::npos);
            }
}

TEST_CASE("rules: nothing waits for a process in a call that blocks") {
    const std::regex waitid(R"re(\b(waitid|SYS_waitid)\b)re");
    const std::regex blocks(R"re(\b(waitpid|wait[34])\s*\()re");
    for (const std::string folder : {"include", "src"})
        for (const auto& file : files_in(folder))
            for (std::size_t i = 0; i < file.lines.size(); ++i) {
                const auto code = without_comment(file.lines[i]);
                if (!mentions(code, {"wait"}))
                    continue;
                INFO(file.path << ":" << i + 1 << ": " << code);
                CHECK_FALSE(std::regex_search(code, blocks));
                if (std::regex_search(code, waitid))
                    CHECK(call_at(file, i).find("WNOHANG") != std::string::npos);
            }
}

TEST_CASE("rules: the inner namespace of the headers carries the version, so that two versions in "
          "one process share no inline function") {
    const std::regex version(R"re(version:\s*'(\d+)\.(\d+)\.)re");
    std::string wanted;
    std::ifstream build(root / "meson.build");
    for (std::string line; wanted.empty() && std::getline(build, line);)
        if (std::smatch match; std::regex_search(line, match, version))
            wanted = "detail::inline v" + match.str(1) + "_" + match.str(2) + " {";
    REQUIRE_FALSE(wanted.empty());
    const std::regex opens(R"re(\bnamespace (cohort::)?detail\b)re");
    for (const auto& file : files_in("include"))
        for (const auto& line : file.lines)
            if (mentions(line, {"namespace"}) && std::regex_search(without_comment(line), opens) &&
                !mentions(line, {"detail::inline COHORT_ASIO_VERSION {"}))
                CHECK_MESSAGE(line.find(wanted) != std::string::npos, file.path << ": " << line);
    const auto of_asio = read_source(root / "include/cohort/detail/asio.hpp").lines;
    const auto version_of = std::regex_replace(wanted, std::regex("detail::inline | \\{"), "");
    for (const char* suffix : {"", "_boost_asio"})
        CHECK(std::ranges::count(of_asio, "#define COHORT_ASIO_VERSION " + version_of + suffix) ==
              1);
}

TEST_CASE("rules: what knows Asio stands in a namespace of the Asio that was chosen") {
    int found = 0;
    for (const auto& file : files_in("include")) {
        if (!knows_asio(file.path.substr(std::string("include/").size())) ||
            file.path.ends_with("/cohort.hpp"))
            continue;
        for (const auto& line : file.lines) {
            // A specialisation stands where its template does.
            if (!line.starts_with("namespace cohort") ||
                (file.path.ends_with("_codec.hpp") && line.ends_with("detail::inline v0_1 {")))
                continue;
            ++found;
            CHECK_MESSAGE(mentions(line, {" COHORT_ASIO_"}), file.path << ": " << line);
        }
    }
    CHECK(found > 10);
}

TEST_CASE("rules: two headers declare every exception of the public headers") {
    const std::regex exception(
        R"re(^class (COHORT_API )?(\w+)( final)? : public (std::\w*error|std::exception)\b)re");
    for (const auto& file : files_in("include")) {
        if (file.path.find("/detail/") != std::string::npos)
            continue;
        for (const auto& line : file.lines)
            if (mentions(line, {"class"}) && std::regex_search(line, exception))
                CHECK_MESSAGE((file.path == "include/cohort/errors.hpp" ||
                               file.path == "include/cohort/host_errors.hpp" ||
                               file.path == "include/cohort/pool_errors.hpp"),
                              file.path << ": " << line);
    }
}

TEST_CASE("rules: a test file's cases have its stem as prefix and stand in its namespace") {
    const std::regex opens(R"re(^(TEST_CASE\w*|GROUP_TEST|POOL_TEST)\()re");
    const std::regex prefix(R"re(^\w+\(\s*"([^:"]+): )re");
    for (const auto& file : files_in("tests")) {
        if (!file.path.ends_with("_test.cpp"))
            continue;
        auto stem = fs::path(file.path).stem().string();
        const auto inside = place(file.lines, "namespace " + stem + " {");
        stem.resize(stem.size() - std::string("_test").size());
        std::replace(stem.begin(), stem.end(), '_', ' ');
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            if (!std::regex_search(file.lines[i], opens))
                continue;
            INFO(file.path << ":" << i + 1);
            const auto title = file.lines[i] + (i + 1 < file.lines.size() ? file.lines[i + 1] : "");
            std::smatch found;
            REQUIRE(std::regex_search(title, found, prefix));
            CHECK(found[1] == stem);
            CHECK((inside < i || file.path.find("tests/chaos/") == 0));  // compiled one by one
        }
    }
}

TEST_CASE("rules: the README has at most 1300 words, 180 lines and 100 columns") {
    std::ifstream page(root / "README.md");
    std::size_t words = 0;
    std::size_t lines = 0;
    for (std::string line; std::getline(page, line); ++lines) {
        INFO("line " << lines + 1 << ": " << line);
        CHECK(columns(line) <= 100);
        std::istringstream in(line);
        for (std::string word; in >> word;)
            ++words;
    }
    CHECK(words <= 1300);
    CHECK(lines <= 180);
}

TEST_CASE("rules: a chapter of the Guide has at most 45 lines") {
    std::string chapter;
    std::size_t chapters = 0;
    std::size_t length = 0;
    for (const auto& line : read_source(root / "examples/README.md").lines) {
        if (line.starts_with("## ")) {
            chapter = line;
            ++chapters;
            length = 0;
        }
        ++length;
        CHECK_MESSAGE(length <= 45, chapter);
    }
    CHECK(chapters >= 15);
}

TEST_CASE("rules: a link from page to page leads to a page and to a heading of it") {
    const std::regex link(R"re(\]\(([\w./-]+\.md)?(#([\w-]+))?\))re");
    std::size_t found = 0;
    for (const std::string page :
         {"README.md", "examples/README.md", "examples/failures.md", "examples/streams.md",
          "examples/memory.md", "examples/hosts.md", "examples/caveats.md", "src/README.md",
          "tests/README.md"})
        for (const auto& line : read_source(root / page).lines)
            for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
                INFO(page << ": " << at->str());
                ++found;
                const auto name = (*at)[1].str();
                const auto target = name.empty() ? root / page : (root / page).parent_path() / name;
                REQUIRE(fs::exists(target));
                if ((*at)[3].matched)
                    CHECK(headings_of(target).count((*at)[3].str()) == 1);
            }
    CHECK(found >= 15);
}

}  // namespace rules_test
