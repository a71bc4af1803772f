// SPDX-License-Identifier: BSL-1.0
#include "output/targets/console.hpp"

#include "output/targets/of_loop.hpp"

#include <array>
#include <atomic>

#include <unistd.h>

namespace cohort::output {

namespace {

/// How much of groups that have ended may wait for one console.
constexpr std::size_t most_of_ended = std::size_t{16} << 20;
/// What each target of an ended group counts as at least: it also keeps a descriptor.
constexpr std::size_t least_of_ended = std::size_t{64} << 10;

}  // namespace

line_style console_style(int fd, bool no_color) noexcept {
    line_style style;
    style.ends_lines = true;
    style.is_terminal = ::isatty(fd) == 1;
    style.colours_tags = style.is_terminal && !no_color;
    return style;
}

console_writer& console_writer::of(loop::engine& loop, int fd) {
    static constinit std::array<std::atomic<of_loop<console_writer>*>, 2> latest{};
    return latest_of(latest[fd == STDOUT_FILENO ? 0 : 1], loop);
}

kept_lines::~kept_lines() {
    if (console_)
        console_->of_ended -= bytes_;
}

bool kept_lines::count(std::uint64_t bytes) noexcept {
    bytes_ = bytes + least_of_ended;
    return (console_->of_ended += bytes_) <= most_of_ended;
}

}  // namespace cohort::output
