// SPDX-License-Identifier: BSL-1.0
#include "cgroup/reuse_check.hpp"

#include "sys/descriptors.hpp"

#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::cgroups {

namespace {

bool has_controllers(int directory) noexcept {
    const sys::unique_fd controllers(
        ::openat(directory, "cgroup.controllers", O_RDONLY | O_CLOEXEC));
    char first;
    return !controllers || ::read(controllers.get(), &first, 1) != 0;
}

bool is_same_time(const timespec& a, const timespec& b) noexcept {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

reuse_check::reuse_check(int directory) noexcept {
    if (has_controllers(directory))
        return;
    std::error_code error;
    auto events = sys::out_of_stdio(
        sys::unique_fd(::openat(directory, "cgroup.events", O_RDONLY | O_CLOEXEC)), error);
    // The kernel notes the times of a cgroup's directory only if somebody has set anything of it.
    if (!error && ::fstat(directory, &as_new_) == 0 &&
        ::fchmod(directory, as_new_.st_mode & 07777) == 0 && ::fstat(directory, &as_new_) == 0)
        events_ = std::move(events);
}

bool reuse_check::is_empty() const noexcept {
    std::array<char, 128> text;
    const auto length = ::pread(events_.get(), text.data(), text.size(), 0);
    if (length <= 0)
        return false;
    const std::string_view events(text.data(), static_cast<std::size_t>(length));
    return events.find("populated 0") != events.npos && events.find("frozen 1") == events.npos;
}

bool reuse_check::is_unchanged(int directory) const noexcept {
    struct stat now {};
    return ::fstat(directory, &now) == 0 && now.st_mode == as_new_.st_mode &&
           now.st_uid == as_new_.st_uid && now.st_gid == as_new_.st_gid &&
           now.st_nlink == as_new_.st_nlink && is_same_time(now.st_mtim, as_new_.st_mtim) &&
           is_same_time(now.st_ctim, as_new_.st_ctim);
}

}  // namespace cohort::cgroups
