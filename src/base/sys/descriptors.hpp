// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace cohort::base {

/// How many descriptors this process has open; empty when /proc is not there.
[[nodiscard]] std::optional<std::uint64_t> open_descriptors() noexcept;

/// open_descriptors() as it counts before Linux 6.2: by listing /proc. It opens a descriptor for a
/// moment.
[[nodiscard]] std::optional<std::uint64_t> count_listed_descriptors() noexcept;

/// The soft RLIMIT_NOFILE: one more than the highest number that a new descriptor can get.
[[nodiscard]] std::uint64_t descriptor_limit() noexcept;

/// Whether so many more descriptors can be opened, with numbers from 3 on; true when /proc is not
/// there.
[[nodiscard]] bool has_room_for(std::uint64_t descriptors) noexcept;

/// The path by which the calling thread reaches an open file. It is not in /proc/self, because that
/// belongs to the main thread, which may have ended (pthread_exit).
[[nodiscard]] std::string path_of(int fd);

/// Whether a read would not wait. Does not wait itself.
[[nodiscard]] bool is_readable(int fd) noexcept;

/// Whether `fd` is open and not close-on-exec.
[[nodiscard]] bool survives_exec(int fd) noexcept;

/// Makes a descriptor close-on-exec, if it is open.
void close_on_exec(int fd) noexcept;

/// What a program gets in place of a standard stream that is non-blocking, because that is a flag
/// of the open file, which both would share: the pipe, FIFO or terminal opened anew, so that it
/// blocks. The descriptor is close-on-exec and numbered 3 or higher. May wait for a file system.
/// @return empty: `fd` blocks, or would not be inherited, or its file can't be opened anew (as no
///         socket can), or would be another one (as a regular file would have its own offset)
[[nodiscard]] unique_fd opened_to_block(int fd);

/// A close-on-exec duplicate numbered 3 or higher, so that it is never taken for a standard stream.
[[nodiscard]] unique_fd duplicate(int fd, std::error_code& error) noexcept;

/// `fd` itself if it is numbered 3 or higher, else a duplicate in its place: it may be numbered
/// lower if the host has closed its stdio. If `fd` is empty, `error` is errno.
[[nodiscard]] unique_fd out_of_stdio(unique_fd fd, std::error_code& error) noexcept;

/// A close-on-exec eventfd(2), numbered 3 or higher, whose read never blocks.
[[nodiscard]] unique_fd make_eventfd(std::error_code& error) noexcept;
/// Makes an eventfd readable. Async-signal-safe. @return false: it was not written to
bool raise_event(int eventfd) noexcept;
/// Makes an eventfd unreadable. One that another process has made blocking may block.
void drain_event(int eventfd) noexcept;

/// The ends of a pipe(2), both close-on-exec, numbered 3 or higher; neither ever blocks.
struct pipe_ends {
    unique_fd read;
    unique_fd write;
};
[[nodiscard]] pipe_ends make_pipe(std::error_code& error) noexcept;
/// A pipe as by make_pipe(), with as much room as a user may have. Much of it counts against what a
/// user may have in all pipes: pipe-user-pages-soft, pipe(7).
[[nodiscard]] pipe_ends make_large_pipe(std::error_code& error) noexcept;

}  // namespace cohort::base
