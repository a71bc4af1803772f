// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace cohort::base {

inline std::error_code last_error() noexcept { return {errno, std::system_category()}; }

/// Whether descriptors, memory or processes ran short: what failed may succeed later.
inline bool is_shortage(std::error_code error) noexcept {
    return error == std::errc::too_many_files_open ||
           error == std::errc::too_many_files_open_in_system ||
           error == std::errc::not_enough_memory || error == std::errc::no_buffer_space ||
           error == std::errc::resource_unavailable_try_again;
}

/// The descriptor table of this process, as a number. It is another one in a worker that is a
/// forked copy, because the copy closes all descriptors of its parent first. A number that an
/// object of the parent holds then means nothing, or another file.
using table_number = std::uint32_t;
table_number descriptor_table() noexcept;
/// Called in a forked copy when it has closed the descriptors of its parent, and before it opens
/// any of its own.
void begin_descriptor_table() noexcept;

/// Owns a descriptor and closes it. An `int fd` elsewhere only borrows. In a forked copy that has
/// closed the descriptors of its parent, an owner that was made by the parent is empty.
class unique_fd {
public:
    unique_fd() noexcept = default;
    explicit unique_fd(int fd) noexcept : fd_(fd), table_(descriptor_table()) {}
    unique_fd(unique_fd&& other) noexcept : unique_fd(other.release()) {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~unique_fd() { reset(); }

    int get() const noexcept { return table_ == descriptor_table() ? fd_ : -1; }
    explicit operator bool() const noexcept { return get() >= 0; }
    int release() noexcept {
        const int fd = get();
        fd_ = -1;
        return fd;
    }
    void reset(int fd = -1) noexcept;  // keeps errno

private:
    int fd_ = -1;
    table_number table_ = 0;
};

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
