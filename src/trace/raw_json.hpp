// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "trace/stack.hpp"

#include <array>
#include <climits>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <sys/types.h>

namespace cohort::trace {

/// Writes JSON from within a signal handler: no memory, no lock, no call but write(2).
class raw_json {
public:
    /// What it needs, in static storage.
    struct memory {
        std::array<char, 1024> buffer;
        std::array<char, PATH_MAX> program;  // its path
    };
    /// @param offset  in the file from which on it is written; negative: at its end, or a pipe
    raw_json(memory& use, int fd, off_t offset) noexcept
        : buffer_(use.buffer), program_(use.program), fd_(fd), offset_(offset) {}

    /// As it stands.
    raw_json& text(std::string_view literal) noexcept;
    raw_json& number(std::integral auto value) noexcept {
        return digits(value < 0, static_cast<std::uint64_t>(value));
    }
    /// In quotation marks, with escapes.
    raw_json& quoted(std::string_view value) noexcept;
    /// An array of where each call lies, newest first. Each that is complete is written at once.
    raw_json& frames(std::span<const std::uintptr_t> calls) noexcept;
    /// Hands over what it holds. What can't be written is lost, with all that follows.
    void flush() noexcept;
    /// Of all that flush() has written, in bytes.
    std::uint64_t length() const noexcept { return length_; }

private:
    void put(char c) noexcept;
    raw_json& digits(bool negative, std::uint64_t value) noexcept;
    void module_of(std::uintptr_t call) noexcept;

    std::span<char> buffer_;
    std::span<char> program_;
    int fd_;
    off_t offset_;
    bool broken_ = false;
    std::uint64_t length_ = 0;
    std::size_t held_ = 0;
    std::string_view program_path_;  // once it was asked for
};

}  // namespace cohort::trace
