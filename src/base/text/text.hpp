// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::base {

/// The longest text that a record keeps; a longer one keeps its head and its tail.
inline constexpr std::size_t text_limit = std::size_t{1} << 20;

/// `text` within `limit` bytes: head and tail with a line in between that says how much is left
/// out.
std::string bounded(std::string_view text, std::size_t limit);
/// bounded() for a text known by its head and its tail, with `left_out` bytes between them.
std::string bounded(std::string_view head, std::string_view tail, std::uint64_t left_out,
                    std::size_t limit);
/// `text` with every byte that is not UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);
/// Like valid_utf8(), but also replaces NULs, because a NUL would end a what() too early.
std::string clean(std::string_view text);
/// The clean text, shortened to `limit` bytes in the way of bounded().
std::string clean_and_bounded(std::string_view text, std::size_t limit);
/// The clean text, cut off after `limit` bytes; for a name or a path.
std::string clean_head(std::string_view text, std::size_t limit);
/// `text` without the white space and NULs around it.
std::string_view trimmed(std::string_view text) noexcept;
/// Whether `text` contains `part`, in linear time for any input. (std::string::find takes up to the
/// product of their lengths.)
bool contains(std::string_view text, std::string_view part) noexcept;
/// The start of `text` in no more than `limit` bytes, without half a character at its end.
std::string_view head_of(std::string_view text, std::size_t limit) noexcept;
/// The end of `text` in no more than `limit` bytes, without half a character at its start.
std::string_view tail_of(std::string_view text, std::size_t limit) noexcept;

/// The numbers of a range with a separator between them. Instead of fmt::join, because GCC 12 warns
/// of that at -O3.
template <class Numbers>
std::string joined(const Numbers& numbers, std::string_view separator) {
    std::string text;
    for (const auto& each : numbers) {
        if (!text.empty())
            text += separator;
        text += std::to_string(each);
    }
    return text;
}

/// The words of a command as one line for people, as a shell would take it: `sh -c 'exit 3'`. At
/// most 4 KiB of them; " ..." stands for the rest.
std::string command_line(const std::vector<std::string>& words);
/// All of the words as one line, of which any shell makes the same words.
/// @param words  without NULs
std::string shell_line(const std::vector<std::string>& words);

/// Walks over the characters of a JSON text that are outside of strings. The text may be cut off,
/// or not JSON at all.
class outline {
public:
    explicit outline(std::string_view text) noexcept : text_(text) {}

    /// Goes to the next character outside of a string. @return false: there is none
    bool next() noexcept {
        bool in_string = false;
        while (++at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '"')
                in_string = !in_string;
            else if (!in_string)
                return true;
            else if (c == '\\')
                ++at_;
        }
        return false;
    }
    std::size_t place() const noexcept { return at_; }
    char character() const noexcept { return text_[at_]; }

private:
    std::string_view text_;
    std::size_t at_ = static_cast<std::size_t>(-1);  // before the first
};

/// A time of day by ISO 8601, in UTC: "2026-11-22T14:03:07.123Z".
std::string time_of_day(std::chrono::system_clock::time_point when);
/// Reads what time_of_day() writes. The clock's epoch for any other text.
std::chrono::system_clock::time_point time_of_day_in(std::string_view text) noexcept;

}  // namespace cohort::base
