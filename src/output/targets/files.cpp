// SPDX-License-Identifier: BSL-1.0
#include "output/targets/files.hpp"

#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "output/lines/rotation.hpp"

#include <cohort/detail/sink.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::output {

const base_directory& base_directories::of(const std::string& working_directory,
                                           const std::string& path) {
    static const base_directory none;
    if (path.starts_with('/'))
        return none;
    auto [found, is_new] = opened_.try_emplace(working_directory);
    if (is_new)
        found->second.directory = std::make_shared<base::unique_fd>(
            open_base(caller_, working_directory, found->second.error));
    return found->second;
}

namespace {

/// Makes a directory unless it is there.
std::error_code make_directory(int from, const std::string& name) {
    return ::mkdirat(from, name.c_str(), 0777) == 0 || errno == EEXIST ? std::error_code()
                                                                       : base::last_error();
}

/// Not through a link: a worker may have put one in the place of its directory.
base::unique_fd open_directory(int from, const std::string& name, std::error_code& error) {
    base::unique_fd found(
        ::openat(from, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!found) {
        error = base::last_error();
        return found;
    }
    return base::out_of_stdio(std::move(found), error);
}

}  // namespace

std::error_code log_directory::make(std::shared_ptr<base::unique_fd> base, std::string path,
                                    std::optional<workers_of_host> of_host) {
    const int from = number_of(base.get());
    if (const auto error = make_directories(from, path))
        return error;
    if (::mkdirat(from, path.c_str(), 0777) != 0 && (errno != EEXIST || !of_host))
        return base::last_error();
    std::error_code error;
    made_ = open_directory(from, path, error);
    if (!error && of_host)
        error = claim(*of_host);
    if (error) {
        made_.reset();  // so that remove() takes nothing that is another run's
        ::unlinkat(from, path.c_str(), AT_REMOVEDIR);  // if nothing is in it
    }
    base_ = std::move(base);
    path_ = std::move(path);
    return error;
}

/// Makes the directories of all of them, so that of two runs with one name one fails, however they
/// are divided among hosts.
std::error_code log_directory::claim(const workers_of_host& workers) const {
    const auto name_of = [&](int number) { return std::to_string(workers.first + number); };
    for (int made = 0; made < workers.count; ++made) {
        if (::mkdirat(made_.get(), name_of(made).c_str(), 0777) == 0)
            continue;
        const auto error = base::last_error();
        while (made-- > 0)
            ::unlinkat(made_.get(), name_of(made).c_str(), AT_REMOVEDIR);
        return error;
    }
    return {};
}

base::unique_fd log_directory::open(int attempt, int index, const char* name,
                                    std::error_code& error) const {
    base::unique_fd later;
    if (attempt != 0) {
        const auto beside = "../attempt_" + std::to_string(attempt);
        error = make_directory(made_.get(), beside);
        if (!error)
            later = open_directory(made_.get(), beside, error);
        if (error)
            return {};
    }
    const int from = attempt == 0 ? made_.get() : later.get();
    const auto part = std::to_string(index);
    error = make_directory(from, part);
    if (error)
        return {};
    const auto directory = open_directory(from, part, error);
    return directory ? open_anew(directory.get(), name, error) : base::unique_fd();
}

base::unique_fd log_directory::open_beside(const char* name, std::error_code& error) const {
    if (made_)
        return open_anew(made_.get(), std::string("../") + name, error);
    error = make_directories(AT_FDCWD, path_);
    const auto run = std::filesystem::path(path_).parent_path();
    return error ? base::unique_fd() : open_next(AT_FDCWD, run / name, error);
}

void log_directory::remove(int first, std::size_t workers) const {
    if (!made_)
        return;
    std::error_code ignored;
    for (std::size_t index = 0; index < workers; ++index) {
        const auto name = std::to_string(static_cast<std::size_t>(first) + index);
        const auto directory = open_directory(made_.get(), name, ignored);
        if (!directory)
            continue;
        for (const char* file : {"stdout.log", "stderr.log", "error.json"})
            ::unlinkat(directory.get(), file, 0);
        ::unlinkat(made_.get(), name.c_str(), AT_REMOVEDIR);
    }
    struct stat here {};
    if (::fstatat(number_of(base_.get()), path_.c_str(), &here, AT_SYMLINK_NOFOLLOW) == 0 &&
        base::id_of(made_.get()) == base::file_id{here.st_dev, here.st_ino})
        ::unlinkat(number_of(base_.get()), path_.c_str(), AT_REMOVEDIR);
}

namespace {

/// The kernel would take the path up to its first NUL for the whole.
bool has_nul(const std::string& path) noexcept { return path.find('\0') != path.npos; }

bool is_directory(int base, const char* path) noexcept {
    struct stat found {};
    return ::fstatat(base, path, &found, 0) == 0 && S_ISDIR(found.st_mode);
}

/// What cannot be seen counts as missing, so that the search for a gap ends.
bool exists(int base, const std::string& path) noexcept {
    struct stat found {};
    return ::fstatat(base, path.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
}

base::unique_fd open_at(int base, const std::string& path, int flags, std::error_code& error) {
    error.clear();
    if (has_nul(path)) {
        error = std::make_error_code(std::errc::invalid_argument);
        return {};
    }
    int fd = -1;
    do
        fd = ::openat(base, path.c_str(), flags | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        error = base::last_error();
        return {};
    }
    return base::out_of_stdio(base::unique_fd(fd), error);
}

base::unique_fd open_to_append(int base, const std::string& path, int flags,
                               std::error_code& error) {
    // O_NONBLOCK is for the open alone. This description is new, so nobody else sees the change.
    auto file =
        open_at(base, path, flags | O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_NONBLOCK, error);
    if (!file)
        return file;
    const int now = ::fcntl(file.get(), F_GETFL);
    if (now < 0 || ::fcntl(file.get(), F_SETFL, now & ~O_NONBLOCK) != 0) {
        error = base::last_error();
        file.reset();
    }
    return file;
}

}  // namespace

int number_of(const base::unique_fd* directory) noexcept {
    return directory != nullptr ? directory->get() : AT_FDCWD;
}

base::unique_fd open_base(int callers_directory, const std::string& working_directory,
                          std::error_code& error) {
    return open_at(callers_directory < 0 ? AT_FDCWD : callers_directory,
                   working_directory.empty() ? "." : working_directory, O_PATH | O_DIRECTORY,
                   error);
}

std::error_code make_directories(int base, const std::string& path_of_file) {
    if (has_nul(path_of_file))
        return std::make_error_code(std::errc::invalid_argument);
    // Nearly always there is nothing to do.
    if (const auto last = path_of_file.rfind('/');
        last != path_of_file.npos && last != 0 && last + 1 != path_of_file.size())
        if (::mkdirat(base, path_of_file.substr(0, last).c_str(), 0777) == 0 || errno == EEXIST)
            return {};
    for (auto slash = path_of_file.find('/', 1); slash != path_of_file.npos;
         slash = path_of_file.find('/', slash + 1)) {
        if (path_of_file.find_first_not_of('/', slash) == path_of_file.npos)
            break;  // it ends with slashes
        const auto directory = path_of_file.substr(0, slash);
        if (::mkdirat(base, directory.c_str(), 0777) == 0 || errno == EEXIST)
            continue;
        const auto error = base::last_error();
        // Some file systems refuse before they look whether it exists.
        if (!is_directory(base, directory.c_str()))
            return error;
    }
    return {};
}

base::unique_fd open_output(int base, const std::string& path, old_text before,
                            std::error_code& error) {
    const int flags = before == old_text::is_dropped ? O_TRUNC : 0;
    auto file = open_to_append(base, path, flags, error);
    if (file || error != std::errc::no_such_file_or_directory)
        return file;
    error = make_directories(base, path);
    return error ? std::move(file) : open_to_append(base, path, flags, error);
}

std::error_code rename_older(int base, const std::string& path, int kept) {
    int gap = 1;
    while (gap < kept && exists(base, rotation::name(path, gap)))
        ++gap;
    for (int number = gap; number > 0; --number) {
        const auto from = rotation::name(path, number - 1);
        const auto to = rotation::name(path, number);
        if (::renameat(base, from.c_str(), base, to.c_str()) != 0 && errno != ENOENT)
            return base::last_error();
    }
    return {};
}

base::unique_fd open_next(int base, const std::string& path, std::error_code& error) {
    return open_to_append(base, path, O_EXCL | O_NOFOLLOW, error);
}

base::unique_fd open_anew(int directory, const std::string& name, std::error_code& error) {
    return open_to_append(directory, name, O_TRUNC | O_NOFOLLOW, error);
}

bool is_regular(int fd) noexcept {
    struct stat found {};
    return ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

bool is_same_file(int a, int b) noexcept {
    struct stat of_a {};
    struct stat of_b {};
    return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

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
    rotate_.reset();  // it has a directory open
}

}  // namespace cohort::output
