// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/trace/stack.hpp"

#include <array>
#include <climits>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <sys/types.h>

namespace cohort::protocol {

/// Writes JSON from within a signal handler: no allocation, no lock, output by write(2) alone.
class raw_json {
public:
    /// The memory that it needs, for static storage.
    struct memory {
        std::array<char, 1024> buffer;
        std::array<char, PATH_MAX> program;  // the path of the program
    };
    /// @param offset  where in the file the output begins; negative: at its end, or a pipe
    raw_json(memory& use, int fd, off_t offset) noexcept
        : buffer_(use.buffer), program_(use.program), fd_(fd), offset_(offset) {}

    /// Adds `literal` unchanged.
    raw_json& text(std::string_view literal) noexcept;
    raw_json& number(std::integral auto value) noexcept {
        return digits(value < 0, static_cast<std::uint64_t>(value));
    }
    /// Adds a string in quotation marks, with escapes.
    raw_json& quoted(std::string_view value) noexcept;
    /// Adds an array with the place of each call, newest first. Each element is written to the file
    /// as soon as it is complete.
    raw_json& frames(std::span<const std::uintptr_t> calls) noexcept;
    /// Writes what is in the buffer. If that fails, this and all later output is lost.
    void flush() noexcept;
    /// How many bytes flush() has written so far.
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
    std::string_view program_path_;  // empty until a frame needs it
};

}  // namespace cohort::protocol
