// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/line_run.hpp>
#include <cohort/output.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Turns all lines of one target into its bytes, one batch after the other, and knows the tags of
/// their streams.
class line_formatter {
public:
    /// A stream of the worker with this index.
    using source = std::pair<int, cohort::stream>;

    explicit line_formatter(line_style style) noexcept
        : tagger_(style), ends_lines_(style.ends_lines) {}

    /// What stands before each line of a stream. Without it: nothing.
    /// @param tag  with a place for the number of the attempt that has written the line, see
    ///             at_attempt()
    void set_tag(source of, std::string tag) { tags_.insert_or_assign(of, std::move(tag)); }
    /// Appends a batch to `into`.
    void format(const detail::line_batch& batch, std::string& into);

private:
    const tagger tagger_;
    const bool ends_lines_;
    std::map<source, std::string> tags_;
    bool is_mid_line_ = false;  // what was appended so far does not end with a newline
};

/// Splits the bytes of a stream into lines. A line ends with "\n" or "\r\n", or where the stream
/// ends. A line with more than `longest` characters is cut: the rest of it is a line of its own.
/// The cut waits for the byte after `longest` characters, because a newline there ends a line that
/// is complete. It holds at most about `longest` bytes.
class splitter {
public:
    struct settings {
        std::size_t longest = 65'536;
        /// The lines are what a terminal shows at their ends: a '\r' that no newline follows
        /// restarts the line, and `longest` counts from there. Bytes get lost in this mode alone.
        bool is_screen = false;
    };

    explicit splitter(settings s);

    /// Takes bytes that were read. Appends the lines that ended in them to `into`.
    void feed(std::string_view bytes, detail::line_run& into);
    /// The stream has ended. What is held becomes a line that is not complete; nothing held, no
    /// line.
    void finish(detail::line_run& into);
    /// How many bytes of the line that has not ended are held.
    std::size_t held() const noexcept { return held_.size(); }

private:
    using line = detail::line_run::line;

    void feed_bytes(std::string_view bytes, detail::line_run& into);
    void feed_screen(std::string_view bytes, detail::line_run& into);
    void draw(std::string_view part, detail::line_run& into);
    void hold(std::string_view part, detail::line_run& into);
    void add_line(std::string_view text, std::vector<line>& into) const;

    std::size_t longest_;
    bool is_screen_;
    bool restarts_ = false;  // on a screen: the line so far ended with '\r', and shows `held_`
    std::string held_;
};

}  // namespace cohort::output
