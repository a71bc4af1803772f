// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/line_run.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::output {

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
