// SPDX-License-Identifier: BSL-1.0
#include "base/values/last_words.hpp"

#include "base/text/text.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace cohort::base {

namespace {

constexpr std::size_t most_bytes = 4096;
constexpr int most_lines = 20;

/// The last bytes of what was captured, at most `most` of them.
std::string end_of(const captured& text, std::size_t most) {
    const std::string_view tail =
        text.tail.substr(text.tail.size() - std::min(text.tail.size(), most));
    if (tail.size() == most || text.lost() != 0)
        return std::string(tail);
    const auto from_head = std::min(text.head.size(), most - tail.size());
    return std::string(text.head.substr(text.head.size() - from_head)).append(tail);
}

}  // namespace

std::string last_words(const captured& from) {
    // Two bytes more: a newline at the end, and the byte before the words.
    auto end = end_of(from, most_bytes + 2);
    const bool is_all = end.size() == from.total;
    if (end.ends_with('\n'))
        end.pop_back();
    std::string_view words = end;
    words.remove_prefix(words.size() - std::min(words.size(), most_bytes));
    const bool begins_line =
        words.size() == end.size() ? is_all : end[end.size() - words.size() - 1] == '\n';
    if (const auto newline = words.find('\n'); !begins_line && newline != std::string_view::npos)
        words.remove_prefix(newline + 1);
    auto begin = words.size();
    for (int line = 0; line < most_lines && begin != std::string_view::npos; ++line)
        begin = begin == 0 ? std::string_view::npos : words.rfind('\n', begin - 1);
    if (begin != std::string_view::npos)
        words.remove_prefix(begin + 1);
    return base::clean(words);
}

}  // namespace cohort::base
