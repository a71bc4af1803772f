// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cohort {

/// One of the two streams that a worker writes.
enum class stream {
    out,  ///< standard output; with merge() also what the worker wrote to standard error
    err,  ///< standard error
};
/// "stdout" or "stderr".
COHORT_API const char* to_string(stream s) noexcept;

/// A line that a worker wrote, or with chunks() some bytes as they came. A value.
class output_line {
public:
    int index = -1;                               ///< index of the worker in its group, from 0
    int attempt = 0;                              ///< 0: the worker's first start
    cohort::stream stream = cohort::stream::out;  ///< which of the worker's streams
    std::chrono::steady_clock::time_point time;   ///< when it was read
    std::string text;                             ///< any bytes, without the newline
    /// Whether the line ended with a newline. False for a last line without one, for a line that
    /// was cut at the longest length, and for the empty line that reports lost bytes. Always
    /// true for chunks().
    bool complete = false;
    /// How many bytes of this stream were left out before this line, with their newlines, because
    /// nobody read them in time.
    std::uint64_t lost_before = 0;
    std::string host;  ///< what the group calls the worker's host; empty in a local group

    output_line() = default;  // no aggregate: GCC 12 destroys those twice in a co_await expression

    /// Whether all members are equal.
    friend bool operator==(const output_line&, const output_line&) = default;
};

/// Text that its copies share: a std::string_view that keeps its characters alive.
/// @thread_safety distinct objects: safe, also if they share the text.
class shared_text : public std::string_view {
public:
    /// The empty text.
    shared_text() noexcept = default;
    /// Takes over the text.
    explicit shared_text(std::string text)
        : shared_text(std::make_shared<const std::string>(std::move(text))) {}

    /// Shares the text. There is no move, because its source would still refer to the text.
    shared_text(const shared_text&) = default;
    /// Shares the text.
    shared_text& operator=(const shared_text&) = default;
    ~shared_text() = default;
    /// A copy of the text.
    operator std::string() const { return std::string(data(), size()); }
    /// The text with a NUL behind it.
    const char* c_str() const noexcept { return owner_ ? owner_->c_str() : ""; }

    /// A text followed by another, as with std::string.
    friend std::string operator+(const shared_text& a, std::string_view b) {
        return std::string(a).append(b);
    }
    /// A text followed by another, as with std::string.
    friend std::string operator+(std::string_view a, const shared_text& b) {
        return std::string(a).append(b);
    }
    /// A text followed by another, as with std::string.
    friend std::string operator+(const shared_text& a, const shared_text& b) {
        return std::string(a).append(b);
    }

    /// Whether the texts are equal.
    friend bool operator==(const shared_text& a, const shared_text& b) noexcept {
        return std::string_view(a) == std::string_view(b);
    }

private:
    explicit shared_text(std::shared_ptr<const std::string> text) noexcept
        : std::string_view(*text), owner_(std::move(text)) {}

    std::shared_ptr<const std::string> owner_;
};

namespace detail::inline v0_1 {
struct captured_access;
}

/// What capture() kept of one stream of a worker: its first and its last bytes. A value: copies
/// share the text.
class COHORT_API captured {
public:
    shared_text head;         ///< the first bytes
    shared_text tail;         ///< the last bytes, after those in `head`
    std::uint64_t total = 0;  ///< how many bytes the worker wrote

    captured() = default;

    /// How many bytes between `head` and `tail` were left out.
    std::uint64_t lost() const noexcept;
    /// `head` and `tail`. If bytes were left out, a line such as "... 12,288 bytes left out ..."
    /// stands between them.
    std::string text() const;

    /// Whether texts and counts are equal.
    friend bool operator==(const captured&, const captured&) = default;

private:
    friend struct detail::captured_access;

    // Set when head and tail are not the bytes that the worker wrote: JSON replaces some.
    std::optional<std::uint64_t> lost_;
};

namespace detail::inline v0_1 {
struct captured_access {
    static std::optional<std::uint64_t>& lost(captured& c) noexcept { return c.lost_; }
};
}  // namespace detail::inline v0_1

}  // namespace cohort
