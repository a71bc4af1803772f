// SPDX-License-Identifier: BSL-1.0
#include "base/sys/descriptors.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::base {
namespace {

constinit std::atomic<table_number> current_table{0};

}  // namespace

table_number descriptor_table() noexcept { return current_table.load(std::memory_order_relaxed); }

// The copy has one thread only.
void begin_descriptor_table() noexcept { current_table.fetch_add(1, std::memory_order_relaxed); }

void unique_fd::reset(int fd) noexcept {
    const int old = release();
    fd_ = fd;
    table_ = descriptor_table();
    if (old < 0)
        return;
    const int saved = errno;
    // Not repeated after EINTR, because Linux has freed the number by then, close(2).
    ::close(old);
    errno = saved;
}

namespace {

// Not in /proc/self, see path_of().
constexpr const char* directory_of_descriptors = "/proc/thread-self/fd";

/// How many of the numbers 0 to 2 are free, which the library's own descriptors never have.
std::uint64_t free_standard_streams() noexcept {
    std::uint64_t count = 0;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        count += ::fcntl(fd, F_GETFD) < 0 ? 1 : 0;
    return count;
}

/// Whether to open the file anew gives the same pipe or terminal. Each open(2) of a terminal's
/// master makes another terminal.
bool has_other_openings(int fd) noexcept {
    struct stat file {};
    unsigned number = 0;
    return ::fstat(fd, &file) == 0 &&
           (S_ISFIFO(file.st_mode) || (::isatty(fd) == 1 && ::ioctl(fd, TIOCGPTN, &number) != 0));
}

}  // namespace

std::string path_of(int fd) { return directory_of_descriptors + ('/' + std::to_string(fd)); }

unique_fd out_of_stdio(unique_fd fd, std::error_code& error) noexcept {
    error = fd ? std::error_code{} : last_error();
    if (fd && fd.get() <= STDERR_FILENO)
        fd = duplicate(fd.get(), error);
    return fd;
}

std::optional<std::uint64_t> open_descriptors() noexcept {
    struct stat directory;
    if (::stat(directory_of_descriptors, &directory) != 0)
        return {};
    if (directory.st_size > 0)  // the count, since Linux 6.2; 0 before
        return static_cast<std::uint64_t>(directory.st_size);
    return count_listed_descriptors();
}

std::optional<std::uint64_t> count_listed_descriptors() noexcept {
    const unique_fd directory{::open(directory_of_descriptors, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!directory && errno == EMFILE)
        return descriptor_limit();  // no number below it is free
    if (!directory)
        return {};
    alignas(dirent64) char buffer[4096];
    std::uint64_t entries = 0;
    for (;;) {
        const long n = ::syscall(SYS_getdents64, directory.get(), buffer, sizeof buffer);
        if (n < 0)
            return {};
        if (n == 0)
            return entries - 3;  // ".", ".." and the descriptor that reads them
        for (long at = 0; at < n; ++entries)
            at += reinterpret_cast<const dirent64*>(buffer + at)->d_reclen;
    }
}

std::uint64_t descriptor_limit() noexcept {
    rlimit limit{};
    // Can only fail for a bad pointer or resource, getrlimit(2).
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

bool has_room_for(std::uint64_t descriptors) noexcept {
    if (descriptors == 0)
        return true;
    const auto open = open_descriptors();
    return !open || *open + free_standard_streams() + descriptors <= descriptor_limit();
}

bool is_readable(int fd) noexcept {
    pollfd polled{fd, POLLIN, 0};
    return ::poll(&polled, 1, 0) > 0;
}

bool survives_exec(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

void close_on_exec(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0)
        ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

unique_fd duplicate(int fd, std::error_code& error) noexcept {
    unique_fd copy{::fcntl(fd, F_DUPFD_CLOEXEC, 3)};
    error = copy ? std::error_code{} : std::error_code{errno, std::system_category()};
    return copy;
}

unique_fd opened_to_block(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) == 0 || !survives_exec(fd) || !has_other_openings(fd))
        return {};
    // With O_NONBLOCK open(2) does not wait for the other end of a FIFO, or for a modem.
    const int mode = flags & O_ACCMODE;
    unique_fd opened(::open(path_of(fd).c_str(), mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    std::error_code error;
    opened = out_of_stdio(std::move(opened), error);
    // Once the other end is closed nothing waits for it, and poll(2) does not report that close for
    // a FIFO that was opened after it.
    pollfd other_end{fd, 0, 0};
    if (::poll(&other_end, 1, 0) != 0 ||
        ::fcntl(opened.get(), F_SETFL, flags & ~(O_NONBLOCK | O_ASYNC)) != 0)
        return {};
    return opened;
}

unique_fd make_eventfd(std::error_code& error) noexcept {
    return out_of_stdio(unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), error);
}

bool raise_event(int eventfd) noexcept {
    constexpr std::uint64_t one = 1;
    return ::write(eventfd, &one, sizeof one) == sizeof one;
}

void drain_event(int eventfd) noexcept {
    std::uint64_t count = 0;
    (void)!::read(eventfd, &count, sizeof count);
}

pipe_ends make_pipe(std::error_code& error) noexcept {
    int ends[2] = {-1, -1};
    error = ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? std::error_code{} : last_error();
    pipe_ends made{unique_fd(ends[0]), unique_fd(ends[1])};
    for (unique_fd* end : {&made.read, &made.write})
        if (!error)
            *end = out_of_stdio(std::move(*end), error);
    return made;
}

pipe_ends make_large_pipe(std::error_code& error) noexcept {
    constexpr int most = 1 << 20;  // pipe-max-size, pipe(7)
    auto made = make_pipe(error);
    if (!error)
        (void)::fcntl(made.write.get(), F_SETPIPE_SZ, most);
    return made;
}

}  // namespace cohort::base
