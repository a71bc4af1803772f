// SPDX-License-Identifier: BSL-1.0
#include "output/targets/files.hpp"

#include "base/sys/descriptors.hpp"
#include "output/lines/rotation.hpp"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace cohort::output {

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

}  // namespace cohort::output
