// SPDX-License-Identifier: BSL-1.0
#include "base/text/words.hpp"

#include "base/text/text.hpp"

#include <cstddef>
#include <string_view>

namespace cohort::base {

namespace {

constexpr std::size_t longest_line = 4096;
constexpr std::string_view plain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";

bool is_plain(std::string_view word) {
    return !word.empty() && word.find_first_not_of(plain) == word.npos;
}

void add_quoted(std::string& line, std::string_view word) {
    line += '\'';
    for (const char c : word)
        c == '\'' ? line += "'\\''" : line += c;
    line += '\'';
}

void add_word(std::string& line, std::string_view word) {
    is_plain(word) ? void(line += word) : add_quoted(line, word);
}

/// Whether a shell takes the word as it is, and as nothing but a word: "time" and "A=b" mean
/// something else at the start of a command, and zsh has a meaning for "=ls" anywhere.
bool is_plain_for_shells(std::string_view word, bool is_first) {
    const bool is_path = word.find('/') != word.npos && word.find('=') == word.npos;
    return is_plain(word) && !word.starts_with('=') && (is_path || !is_first);
}

}  // namespace

std::string command_line(const std::vector<std::string>& words) {
    std::string line;
    for (const auto& word : words) {
        if (!line.empty())
            line += ' ';
        add_word(line, std::string_view(word).substr(0, longest_line));
        if (line.size() > longest_line)
            return std::string(head_of(line, longest_line)) + " ...";
    }
    return line;
}

std::string shell_line(const std::vector<std::string>& words) {
    std::string line;
    for (const auto& word : words) {
        const bool is_first = &word == &words.front();
        if (!is_first)
            line += ' ';
        is_plain_for_shells(word, is_first) ? void(line += word) : add_quoted(line, word);
    }
    return line;
}

}  // namespace cohort::base
