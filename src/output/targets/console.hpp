// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "output/lines/tagger.hpp"
#include "output/targets/call_threads.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cohort::output {

/// How text looks on this program's stdout or stderr.
[[nodiscard]] line_style console_style(int fd, bool no_color) noexcept;

/// What writes to one of this program's own streams, for all groups. One thread, so that lines stay
/// whole, and so that a stream that takes nothing holds up one thread only.
struct console_writer {
    explicit console_writer(loop::engine& loop) : thread(loop, std::chrono::hours(1), 1) {}
    /// That of a process, whose engine is `loop`. Made if need be and leaked on purpose.
    /// @param fd  STDOUT_FILENO or STDERR_FILENO
    static console_writer& of(loop::engine& loop, int fd);

    call_threads thread;
    std::atomic<std::size_t> of_ended = 0;  // bytes that wait although their groups have ended
};

/// The lines that a console keeps of one target after the end of its group, as long as this object
/// lives. Bounded, because groups that end would else fill memory with lines that no console takes.
class kept_lines {
public:
    explicit kept_lines(console_writer* console) noexcept : console_(console) {}
    kept_lines(const kept_lines&) = delete;
    kept_lines& operator=(const kept_lines&) = delete;
    ~kept_lines();

    /// Null: the target is no console.
    console_writer* console() const noexcept { return console_; }
    bool are_counted() const noexcept { return bytes_ != 0; }
    /// Counts them, once. @return whether the console may keep them
    [[nodiscard]] bool count(std::uint64_t bytes) noexcept;

private:
    console_writer* const console_;
    std::size_t bytes_ = 0;
};

}  // namespace cohort::output
