// SPDX-License-Identifier: BSL-1.0
#include "base/text/text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace cohort::base {
namespace {

constexpr std::size_t longest_notice = 64;
constexpr std::string_view blank("\0 \t\r\n\v\f", 7);
constexpr std::string_view replacement = "\xEF\xBF\xBD";

bool continues(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// How many bytes the character at the start of `text` takes; 0: it is not valid UTF-8.
/// Overlong forms, surrogates and numbers beyond U+10FFFF are invalid too. (Unicode, table 3-7)
std::size_t character_length(std::string_view text) noexcept {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80)
        return 1;
    const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                               : (first & 0xF0) == 0xE0         ? 3
                               : first >= 0xF0 && first <= 0xF4 ? 4
                                                                : 0;
    if (length == 0 || text.size() < length)
        return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if (!continues(text[i]))
            return 0;
    }
    const unsigned second = byte(1);
    if (first == 0xE0 && second < 0xA0)
        return 0;
    if (first == 0xED && second > 0x9F)
        return 0;
    if (first == 0xF0 && second < 0x90)
        return 0;
    if (first == 0xF4 && second > 0x8F)
        return 0;
    return length;
}

std::string joined(std::string_view head, std::string_view tail, std::uint64_t left_out) {
    std::string text(head);
    text += "\n[... " + std::to_string(left_out) + " bytes left out ...]\n";
    text += tail;
    return text;
}

}  // namespace

bool contains(std::string_view text, std::string_view part) noexcept {
    return part.empty() || ::memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

std::string_view head_of(std::string_view text, std::size_t limit) noexcept {
    if (text.size() <= limit)
        return text;
    std::size_t end = limit;
    for (int step = 0; step < 3 && end > 0 && continues(text[end]); ++step)
        --end;
    return text.substr(0, end);
}

std::string_view tail_of(std::string_view text, std::size_t limit) noexcept {
    if (text.size() <= limit)
        return text;
    std::size_t begin = text.size() - limit;
    for (int step = 0; step < 3 && begin < text.size() && continues(text[begin]); ++step)
        ++begin;
    return text.substr(begin);
}

std::string bounded(std::string_view text, std::size_t limit) {
    if (text.size() <= limit)
        return std::string(text);
    if (limit < 2 * longest_notice)
        return std::string(head_of(text, limit));
    const std::size_t half = (limit - longest_notice) / 2;
    const std::string_view head = head_of(text, half);
    const std::string_view tail = tail_of(text, half);
    return joined(head, tail, text.size() - head.size() - tail.size());
}

std::string bounded(std::string_view head, std::string_view tail, std::uint64_t left_out,
                    std::size_t limit) {
    const std::size_t half = limit < 2 * longest_notice ? 0 : (limit - longest_notice) / 2;
    const std::string_view first = head_of(head, half);
    const std::string_view last = tail_of(tail, half);
    return joined(first, last,
                  left_out + (head.size() - first.size()) + (tail.size() - last.size()));
}

std::string valid_utf8(std::string_view text) {
    std::string valid;
    valid.reserve(text.size());
    std::size_t good = 0;  // how much of `text` is valid and not yet copied
    while (good < text.size()) {
        const std::size_t length = character_length(text.substr(good));
        good += length;
        if (length == 0) {
            valid.append(text.substr(0, good)) += replacement;
            text.remove_prefix(good + 1);
            good = 0;
        }
    }
    return valid.append(text);
}

std::string clean(std::string_view text) {
    if (text.find('\0') == std::string_view::npos)
        return valid_utf8(text);
    std::string visible;
    for (const char c : text)
        c == '\0' ? visible += replacement : visible += c;
    return valid_utf8(visible);
}

std::string clean_and_bounded(std::string_view text, std::size_t limit) {
    if (text.size() <= limit || limit < 2 * longest_notice)
        return bounded(clean(head_of(text, limit)), limit);
    // Only the head and the tail are cleaned, because the rest is left out anyway.
    const std::string_view head = head_of(text, limit / 2);
    const std::string_view tail = tail_of(text, limit / 2);
    return bounded(clean(head), clean(tail), text.size() - head.size() - tail.size(), limit);
}

std::string clean_head(std::string_view text, std::size_t limit) {
    return std::string(head_of(clean(head_of(text, limit)), limit));
}

std::string_view trimmed(std::string_view text) noexcept {
    const auto first = text.find_first_not_of(blank);
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

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

namespace {

using namespace std::chrono;

/// A number of just these digits; -1: it is none.
int number_at(std::string_view text, std::size_t at, std::size_t digits) noexcept {
    int value = 0;
    const char* const end = text.data() + at + digits;
    for (const char c : text.substr(at, digits))
        if (c < '0' || c > '9')
            return -1;
    return std::from_chars(text.data() + at, end, value).ptr == end ? value : -1;
}

}  // namespace

std::string time_of_day(system_clock::time_point when) {
    const auto day = floor<days>(when);
    const year_month_day date(day);
    const hh_mm_ss time(floor<milliseconds>(when - day));
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       time.hours().count(), time.minutes().count(), time.seconds().count(),
                       time.subseconds().count());
}

system_clock::time_point time_of_day_in(std::string_view text) noexcept {
    constexpr std::string_view form = "0000-00-00T00:00:00.000Z";
    if (text.size() != form.size())
        return {};
    for (std::size_t i = 0; i < form.size(); ++i)
        if (form[i] != '0' && text[i] != form[i])
            return {};
    const auto at = [&](std::size_t place, std::size_t digits) {
        return number_at(text, place, digits);
    };
    const int month = at(5, 2);
    const int dom = at(8, 2);
    const int hour = at(11, 2);
    const int minute = at(14, 2);
    const int second = at(17, 2);
    const int thousandth = at(20, 3);
    if (at(0, 4) < 0 || month < 0 || dom < 0 || hour < 0 || minute < 0 || second < 0 ||
        thousandth < 0)
        return {};
    const year_month_day date(year(at(0, 4)), std::chrono::month(static_cast<unsigned>(month)),
                              day(static_cast<unsigned>(dom)));
    if (!date.ok())
        return {};
    return sys_days(date) + hours(hour) + minutes(minute) + seconds(second) +
           milliseconds(thousandth);
}

}  // namespace cohort::base
