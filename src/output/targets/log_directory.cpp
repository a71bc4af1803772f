// SPDX-License-Identifier: BSL-1.0
#include "output/targets/log_directory.hpp"

#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "output/targets/files.hpp"

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::output {

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

}  // namespace cohort::output
