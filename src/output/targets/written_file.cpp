// SPDX-License-Identifier: BSL-1.0
#include "output/targets/written_file.hpp"

#include "base/sys/descriptors.hpp"
#include "output/targets/files.hpp"

#include <cohort/detail/sink.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::output {

namespace {

/// Waits until there is room, or an error for write(2) to report.
void await_room(int fd) noexcept {
    pollfd polled{fd, POLLOUT, 0};
    (void)::poll(&polled, 1, -1);
}

}  // namespace

written_file::written_file(base::unique_fd file, std::optional<rotated_path> rotate)
    : file_(std::move(file)), fd_(file_.get()), is_owned_(true) {
    struct stat now {};
    if (!rotate || ::fstat(fd_, &now) != 0 || !S_ISREG(now.st_mode))
        return;
    rotate_ = std::move(rotate);
    size_ = static_cast<std::uint64_t>(now.st_size);
}

std::error_code written_file::write(std::string_view text) {
    unwritten_ = text.size();
    while (!text.empty()) {
        const std::size_t next = next_write(text);
        if (const auto error = next == 0 ? rotate() : write_all(text.substr(0, next)))
            return error;
        text.remove_prefix(next);
    }
    return {};
}

/// How much of `text` goes into the present file; 0: rotate first.
std::size_t written_file::next_write(std::string_view text) const noexcept {
    if (!rotate_)
        return text.size();
    const std::size_t fitting = rotate_->when.next_write(size_, text);
    if (fitting > 0 || unended_ == 0)
        return fitting;
    const std::size_t rest_of_line = std::min(text.find('\n'), text.size() - 1) + 1;
    return unended_ + rest_of_line <= detail::default_longest_line ? rest_of_line : 0;
}

std::error_code written_file::write_all(std::string_view text) noexcept {
    while (!text.empty()) {
        const auto done = ::write(fd_, text.data(), text.size());
        if (done > 0) {
            count(text.substr(0, static_cast<std::size_t>(done)));
            text.remove_prefix(static_cast<std::size_t>(done));
        } else if (done == 0) {
            return std::make_error_code(std::errc::io_error);  // or this would go on for ever
        } else if (errno == EAGAIN) {
            await_room(fd_);  // somebody else has set O_NONBLOCK on the file that we share
        } else if (errno != EINTR) {
            return base::last_error();
        }
    }
    return {};
}

void written_file::count(std::string_view written) noexcept {
    written_ += written.size();
    unwritten_ -= written.size();
    if (!rotate_)
        return;
    size_ += written.size();
    const auto newline = written.rfind('\n');
    unended_ = newline == written.npos ? unended_ + written.size() : written.size() - newline - 1;
}

/// If the old file cannot be renamed, for lack of a right to its directory say, the text goes on
/// into it, because a file that is too large is better than text that is lost.
std::error_code written_file::rotate() {
    const int base = number_of(rotate_->base.get());
    for (int tries = 4;; --tries) {
        if (const auto error = make_way(base)) {
            not_rotated_ = error.value();
            size_ = 0;  // the next try comes after as many bytes again
            return {};
        }
        if (rotate_->when.kept() == 0)
            break;
        std::error_code error;
        auto next = open_next(base, rotate_->path, error);
        if (!error) {
            file_ = std::move(next);
            fd_ = file_.get();
            break;
        }
        // What others have put in the file's place is renamed as well.
        if (error != std::errc::file_exists || tries == 1)
            return error;
    }
    size_ = 0;
    unended_ = 0;
    return {};
}

std::error_code written_file::make_way(int base) {
    if (const int kept = rotate_->when.kept(); kept > 0)
        return rename_older(base, rotate_->path, kept);
    return ::ftruncate(fd_, 0) == 0 ? std::error_code() : base::last_error();
}

void written_file::close() noexcept {
    file_.reset();
    fd_ = -1;
}

}  // namespace cohort::output
