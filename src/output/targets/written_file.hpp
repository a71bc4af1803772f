// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "output/lines/rotation.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace cohort::output {

/// How a file is replaced when it has grown too large.
struct rotated_path {
    rotation when;
    std::string path;
    std::shared_ptr<const base::unique_fd> base;  // of the path; null: AT_FDCWD
};

/// An open file that one thread at a time writes to, by a write(2) that may wait. The other members
/// than write() and close() may be called meanwhile.
class written_file {
public:
    /// Only a regular file is rotated.
    explicit written_file(base::unique_fd file, std::optional<rotated_path> rotate = {});
    /// Writes to a descriptor of others: never closes it and never changes its flags.
    explicit written_file(int borrowed) noexcept : fd_(borrowed) {}

    /// Writes all of `text`, and rotates between its lines. In a line that is spread over several
    /// calls it rotates only if the line is longer than lines usually may be.
    [[nodiscard]] std::error_code write(std::string_view text);
    void close() noexcept;

    bool is_owned() const noexcept { return is_owned_; }
    /// How many bytes were written, to this file and those before it.
    std::uint64_t written() const noexcept { return written_; }
    /// How many bytes of the present write() are not yet written.
    std::uint64_t unwritten() const noexcept { return unwritten_; }
    /// Why a file was not replaced although it had grown too large.
    std::error_code not_rotated() const noexcept { return {not_rotated_, std::system_category()}; }

private:
    std::size_t next_write(std::string_view text) const noexcept;
    std::error_code write_all(std::string_view text) noexcept;
    void count(std::string_view written) noexcept;
    std::error_code rotate();
    std::error_code make_way(int base);

    base::unique_fd file_;  // empty: borrowed or closed
    int fd_ = -1;
    bool is_owned_ = false;
    std::optional<rotated_path> rotate_;
    std::uint64_t size_ = 0;   // of a file that is rotated
    std::size_t unended_ = 0;  // how many bytes the file has after its last newline
    std::atomic<std::uint64_t> written_ = 0;
    std::atomic<std::uint64_t> unwritten_ = 0;
    std::atomic<int> not_rotated_ = 0;  // errno
};

}  // namespace cohort::output
