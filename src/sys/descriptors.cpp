// SPDX-License-Identifier: BSL-1.0
#include "sys/descriptors.hpp"

#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::sys {
std::optional<std::uint64_t> open_descriptors() noexcept {
    struct stat directory;
    if (::stat("/proc/self/fd", &directory) != 0)
        return {};
    if (directory.st_size > 0)  // the count, since Linux 6.2; 0 before
        return static_cast<std::uint64_t>(directory.st_size);
    return count_listed_descriptors();
}

std::optional<std::uint64_t> count_listed_descriptors() noexcept {
    const unique_fd directory{::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
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

unique_fd duplicate(int fd, std::error_code& error) noexcept {
    unique_fd copy{::fcntl(fd, F_DUPFD_CLOEXEC, 3)};
    error = copy ? std::error_code{} : std::error_code{errno, std::system_category()};
    return copy;
}

unique_fd make_eventfd(std::error_code& error) noexcept {
    unique_fd counter{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    error = counter ? std::error_code{} : std::error_code{errno, std::system_category()};
    if (!error && counter.get() < 3)  // the host has closed its stdio
        counter = duplicate(counter.get(), error);
    return counter;
}

constexpr int most_in_pipe = 1 << 20;  // pipe-max-size, pipe(7)

pipe_ends make_pipe(std::error_code& error) noexcept {
    int ends[2] = {-1, -1};
    error = ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0
                ? std::error_code{}
                : std::error_code{errno, std::system_category()};
    pipe_ends made{unique_fd(ends[0]), unique_fd(ends[1])};
    for (unique_fd* end : {&made.read, &made.write})
        if (!error && end->get() < 3)
            *end = duplicate(end->get(), error);
    if (!error)
        (void)::fcntl(made.write.get(), F_SETPIPE_SZ, most_in_pipe);  // as much as users may have
    return made;
}

}  // namespace cohort::sys
