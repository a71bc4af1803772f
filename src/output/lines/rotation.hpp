// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::output {

/// The length of the whole lines at the start of `lines` that fit into `room` bytes. A last line
/// without a newline counts as whole.
std::size_t fitting_prefix(std::string_view lines, std::uint64_t room) noexcept;

/// When a file is renamed to make room for a new one, and how: "log" becomes "log.1", and "log.1"
/// becomes "log.2".
class rotation {
public:
    /// @param limit  of the file's size in bytes; only a file of one line is larger.
    /// @param kept   how many older files are kept.
    rotation(std::uint64_t limit, int kept) noexcept : limit_(limit), kept_(kept) {}

    /// How many bytes of `lines` go into the file of `size_now` bytes before a rotation: whole
    /// lines, and one at least if the file is empty. 0: rotate first.
    std::size_t next_write(std::uint64_t size_now, std::string_view lines) const noexcept;

    /// How many older files are kept. None: the file is truncated instead.
    int kept() const noexcept { return kept_; }
    /// The name of the file that was `path` so many rotations ago.
    static std::string name(std::string_view path, int number);

private:
    std::uint64_t limit_;
    int kept_;
};

}  // namespace cohort::output
