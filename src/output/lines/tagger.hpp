// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/line_run.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace cohort::output {

/// How a target shows lines.
struct line_style {
    bool timestamps = false;  // "2026-11-22T14:03:07.123Z " before the tag, in UTC
    /// Each line ends in "\n": it replaces "\r\n", and is added where there was none. If not, a
    /// line keeps the end that it has.
    bool ends_lines = true;
    /// Colours and sets of characters are reset at the end of a line that may have changed them, so
    /// that they do not change the next worker's line.
    bool is_terminal = false;
    bool colours_tags = false;  // with a colour for each index
};

/// Turns lines into the bytes of one target.
class tagger {
public:
    explicit tagger(line_style style) noexcept : style_(style) {}

    /// Appends lines to `into`, each with its time and tag. A loss comes first, on a line of its
    /// own; the empty line that reports only a loss adds nothing to that.
    /// @param tag   what stands before each line of this worker.
    /// @param wall  when the lines were read.
    void write(std::string& into, const detail::run_part& lines, std::string_view tag,
               std::chrono::system_clock::time_point wall) const;

private:
    std::string prefix(int index, std::string_view tag,
                       std::chrono::system_clock::time_point wall) const;
    void write_line(std::string& into, std::string_view line, std::size_t ending) const;

    line_style style_;
};

}  // namespace cohort::output
