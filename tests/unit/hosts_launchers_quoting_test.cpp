// SPDX-License-Identifier: BSL-1.0
#include <cohort/launchers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace hosts_launchers_quoting_test {

using cohort::shell_quoted;
using words = std::vector<std::string>;

namespace {

struct answer {
    std::string output;
    int status = -1;
};

/// Has sh run the line.
answer run_line(const std::string& line) {
    answer got;
    std::FILE* const pipe = ::popen(line.c_str(), "re");
    REQUIRE(pipe != nullptr);
    for (int c = std::getc(pipe); c != EOF; c = std::getc(pipe))
        got.output += static_cast<char>(c);
    got.status = ::pclose(pipe);
    return got;
}

/// A line whose program prints its arguments, with a NUL behind each.
std::string printing(const words& arguments) {
    words all{"/usr/bin/printf", "%s\\0"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return shell_quoted(all);
}

std::string with_nuls(const words& arguments) {
    std::string text;
    for (const auto& word : arguments)
        (text += word) += '\0';
    return text;
}

/// Words in which a shell finds something.
words nasty_words() {
    words all{"",      " ",     "'",     "''",    "'''a'",    "\"",       "\\",      "\\'",
              "a'b'c", "$HOME", "${x}",  "$(id)", "`id`",     "*",        "?",       "[a-z]",
              "~",     "~root", "{a,b}", "a b",   "a\tb",     "a\nb",     "\n",      "\r\n",
              ";",     "&",     "|",     "<x",    ">x",       "(x)",      "#x",      "a#b",
              "!x",    "!!",    "=ls",   "A=b",   "%self",    "^a^b",     "-n",      "--",
              "if",    "$'a'",  "\\n",   "é",     "\xff\xfe", "\x01\x7f", "--a=b c", "x,y:z@w+%"};
    for (int byte = 1; byte < 256; ++byte) {
        all.push_back(std::string(1, static_cast<char>(byte)));
        all.push_back("x" + std::string(2, static_cast<char>(byte)) + "y");
    }
    all.push_back(std::string(60'000, '\''));
    return all;
}

}  // namespace

TEST_CASE("hosts launchers quoting: sh makes the same words of every line") {
    // One line can't be longer than 128 KiB, and each quote takes four characters.
    const auto all = nasty_words();
    for (std::size_t i = 0; i + 1 < all.size(); i += 100) {
        const words some(all.begin() + static_cast<std::ptrdiff_t>(i),
                         all.begin() +
                             static_cast<std::ptrdiff_t>(std::min(i + 100, all.size() - 1)));
        CHECK(run_line(printing(some)).output == with_nuls(some));
    }
    const words quotes{all.back().substr(0, 30'000)};
    CHECK(run_line(printing(quotes)).output == with_nuls(quotes));
}

TEST_CASE("hosts launchers quoting: other shells make the same words too, as behind ssh") {
    for (const std::string shell : {"bash", "dash", "zsh", "ksh", "fish", "busybox"}) {
        const std::string path = "/bin/" + shell;
        if (::access(path.c_str(), X_OK) != 0) {
            MESSAGE("[skipped] there is no " << path);
            continue;
        }
        const auto all = nasty_words();
        const words some(all.begin(), all.begin() + 48);
        words outer{path};
        if (shell == "busybox")
            outer.emplace_back("sh");
        outer.emplace_back("-c");
        outer.push_back(printing(some));
        CHECK_MESSAGE(run_line(shell_quoted(outer)).output == with_nuls(some), path);
    }
}

TEST_CASE("hosts launchers quoting: no first word is a keyword or an assignment") {
    constexpr int not_found = 127;
    for (const std::string word :
         {"if", "time", "{", "!", "done", "A=b", "function", "no_such=/bin"}) {
        const auto got = run_line(shell_quoted({word, "x"}) + " 2>/dev/null");
        INFO(word);
        REQUIRE(WIFEXITED(got.status));
        CHECK(WEXITSTATUS(got.status) == not_found);
    }
}

TEST_CASE("hosts launchers quoting: plain words stay readable") {
    CHECK(shell_quoted({}).empty());
    CHECK(shell_quoted({"/opt/train", "--mark=1:2", "a b"}) == "/opt/train --mark=1:2 'a b'");
    CHECK(shell_quoted({"train", "it's"}) == "'train' 'it'\\''s'");
    CHECK(shell_quoted({"/a/b=c", ""}) == "'/a/b=c' ''");
}

TEST_CASE("hosts launchers quoting: a NUL is refused") {
    CHECK_THROWS_WITH_AS((void)shell_quoted({"a", std::string("b\0c", 3)}),
                         "cohort: a word for a shell, \"b\", has a NUL at position 1",
                         std::invalid_argument);
}

}  // namespace hosts_launchers_quoting_test
