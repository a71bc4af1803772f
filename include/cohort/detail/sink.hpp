// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/policies.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

// What the classes of sinks.hpp hold: the sinks of a stream, and the source of standard input.
namespace cohort::detail::inline v0_1 {

inline constexpr std::size_t default_buffer = std::size_t{1} << 20;
inline constexpr std::size_t default_buffer_while_read = std::size_t{16} << 20;
inline constexpr std::size_t default_longest_line = std::size_t{64} << 10;

struct inherit_sink {
    friend bool operator==(const inherit_sink&, const inherit_sink&) = default;
};

struct discard_sink {
    friend bool operator==(const discard_sink&, const discard_sink&) = default;
};

struct merge_sink {
    friend bool operator==(const merge_sink&, const merge_sink&) = default;
};

struct file_sink {
    std::string pattern;  // of the path
    bool appends = false;
    std::uint64_t rotate_at = 0;     // in bytes; 0: never
    int kept = 5;                    // how many older files rotation keeps
    std::optional<std::string> tag;  // a pattern, written before each line
    bool timestamps = false;
    cohort::when_full full = when_full::block;

    friend bool operator==(const file_sink&, const file_sink&) = default;
};

struct capture_sink {
    std::size_t head = 16'384;
    std::size_t tail = 49'152;
    std::optional<std::uint64_t> at_most;  // a worker that writes more is stopped

    friend bool operator==(const capture_sink&, const capture_sink&) = default;
};

/// The buffer of lines() and chunks().
struct queue_buffer {
    std::size_t bytes = default_buffer;
    bool is_chosen = false;  // by the user, so that it never grows

    friend bool operator==(const queue_buffer&, const queue_buffer&) = default;
};

struct lines_sink {
    queue_buffer buffer;
    cohort::when_full full = when_full::drop_oldest;
    std::size_t longest = default_longest_line;

    friend bool operator==(const lines_sink&, const lines_sink&) = default;
};

struct chunks_sink {
    queue_buffer buffer;
    cohort::when_full full = when_full::drop_oldest;

    friend bool operator==(const chunks_sink&, const chunks_sink&) = default;
};

/// Which workers the console shows. Copies share the callable, and compare by it.
using worker_filter = std::shared_ptr<const std::function<bool(int index)>>;

struct console_sink {
    std::string tag = "[{index}]: ";    // a pattern
    std::optional<std::set<int>> only;  // indices of the workers that it shows; empty: all
    worker_filter filter;               // null: all
    cohort::when_full full = when_full::block;

    friend bool operator==(const console_sink&, const console_sink&) = default;
};

using sink = std::variant<inherit_sink, discard_sink, merge_sink, file_sink, capture_sink,
                          lines_sink, chunks_sink, console_sink>;

struct bytes_input {
    std::shared_ptr<const std::string> text;

    friend bool operator==(const bytes_input& a, const bytes_input& b) noexcept {
        return *a.text == *b.text;
    }
};

struct feed_input {
    friend bool operator==(const feed_input&, const feed_input&) = default;
};

struct inherit_input {
    friend bool operator==(const inherit_input&, const inherit_input&) = default;
};

struct path_input {
    std::string path;

    friend bool operator==(const path_input&, const path_input&) = default;
};

using input = std::variant<inherit_input, path_input, bytes_input, feed_input>;

/// The directory of options::logs().
struct log_settings {
    std::string directory;
    std::string run_id;  // empty: chosen at the start

    friend bool operator==(const log_settings&, const log_settings&) = default;
};

}  // namespace cohort::detail::inline v0_1
