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

void add_word(std::string& line, std::string_view word) {
    if (!word.empty() && word.find_first_not_of(plain) == word.npos) {
        line += word;
        return;
    }
    line += '\'';
    for (const char c : word)
        c == '\'' ? line += "'\\''" : line += c;
    line += '\'';
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

}  // namespace cohort::base
