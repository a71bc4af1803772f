// SPDX-License-Identifier: BSL-1.0
#include "output/pipes/pipe.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace cohort::output {

namespace {

std::size_t capacity_of(int fd) noexcept {
    constexpr std::size_t largest_for_users = 1'048'576;  // see pipe(7)
    const int capacity = ::fcntl(fd, F_GETPIPE_SZ);
    return capacity > 0 ? static_cast<std::size_t>(capacity) : largest_for_users;
}

}  // namespace

worker_pipe make_worker_pipe(pipe_use use, std::size_t size, std::error_code& error) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        error = base::last_error();
        return {};
    }
    base::unique_fd read_end(ends[0]);
    base::unique_fd write_end(ends[1]);
    read_end = base::out_of_stdio(std::move(read_end), error);
    if (!error)
        write_end = base::out_of_stdio(std::move(write_end), error);
    if (error)
        return {};
    if (size != 0)
        (void)::fcntl(write_end.get(), F_SETPIPE_SZ,
                      static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    worker_pipe made;
    made.capacity = capacity_of(read_end.get());
    made.ours = std::move(use == pipe_use::worker_writes ? read_end : write_end);
    made.theirs = std::move(use == pipe_use::worker_writes ? write_end : read_end);
    if (::fcntl(made.ours.get(), F_SETFL, O_NONBLOCK) != 0) {
        error = base::last_error();
        return {};
    }
    return made;
}

void open_for_both(base::unique_fd& write_end) noexcept {
    char path[40];
    *fmt::format_to_n(path, sizeof path - 1, "/proc/thread-self/fd/{}", write_end.get()).out = '\0';
    std::error_code error;
    auto both = base::out_of_stdio(base::unique_fd(::open(path, O_RDWR | O_CLOEXEC)), error);
    if (both)
        write_end = std::move(both);
}

std::size_t most_bytes_in(int fd) noexcept {
    int count = 0;
    if (::ioctl(fd, FIONREAD, &count) == 0)
        return static_cast<std::size_t>(std::max(count, 0));
    return capacity_of(fd);
}

namespace {

base::unique_fd sealed_file(const std::string& text, std::error_code& error) {
    auto file = base::make_memfd("cohort-input", error);
    if (!error)
        error = base::write_at(file.get(), std::as_bytes(std::span(text)), 0);
    if (!error)
        error =
            base::add_seals(file.get(), F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
    return error ? base::unique_fd() : std::move(file);
}

}  // namespace

base::unique_fd input_files::make(const std::shared_ptr<const std::string>& text,
                                  std::error_code& error) {
    if (text_ != text) {
        file_ = sealed_file(*text, error);
        text_ = error ? nullptr : text;
        if (error)
            return {};
    }
    auto path = base::path_of(file_.get());
    std::error_code denied;
    auto opened =
        base::out_of_stdio(base::unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), denied);
    if (!opened)  // there is no /proc
        opened = sealed_file(*text, error);
    return opened;
}

}  // namespace cohort::output
