// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/output.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// Lines of one stream of one worker that were read at once, as the worker wrote them. Immutable
/// once it is shared: each sink of the stream holds the same run.
struct line_run {
    struct line {
        std::uint32_t size = 0;   // in bytes, with its end
        std::uint8_t ending = 0;  // how many of them are its end: "\n" 1, "\r\n" 2
        bool complete = false;    // whether it ended with a newline; true for a chunk
    };

    int index = 0;  // of the worker
    int attempt = 0;
    std::shared_ptr<const std::string> host;  // the worker's; null: this machine
    cohort::stream from = stream::out;
    std::chrono::steady_clock::time_point time;  // when they were read
    /// When they were read, by the wall clock. Read anew for each run, because the clock may be
    /// set, and goes on while the machine is suspended, which steady_clock does not.
    std::chrono::system_clock::time_point wall;
    std::string text;         // the lines one after another, with their ends
    std::vector<line> lines;  // a chunk is one line without an end
};

/// What was left out because a queue was full.
struct loss {
    std::uint64_t lines = 0;
    std::uint64_t bytes = 0;  // as the worker wrote them, with the lines' ends

    friend bool operator==(const loss&, const loss&) = default;
};

/// Consecutive lines of a run, on their way to a reader.
struct run_part {
    std::shared_ptr<const line_run> run;
    std::size_t first = 0;   // index of the first line
    std::size_t count = 0;   // how many lines
    std::size_t offset = 0;  // of the first line in the run's text
    loss lost;               // of the same stream, just before the first line
};

using line_batch = std::vector<run_part>;

/// Copies the first line for the user.
COHORT_API output_line line_of(const run_part& part);
/// Copies each line for the user.
COHORT_API std::vector<output_line> lines_of(const line_batch& batch);

}  // namespace cohort::detail::inline v0_1
