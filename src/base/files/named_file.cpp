// SPDX-License-Identifier: BSL-1.0
#include "base/files/named_file.hpp"

#include "base/files/fork_held.hpp"
#include "base/files/name.hpp"
#include "base/files/name_mark.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/threads.hpp"
#include "base/sys/tiers.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace cohort::base {
namespace {

using namespace std::chrono_literals;

constexpr char directory_path[] = "/dev/shm";
/// How long open_named() waits for a sweeper, which holds its lock for microseconds.
constexpr auto longest_lock = 100ms;

std::error_code lock(int file, int how) noexcept {
    while (::flock(file, how | LOCK_NB) != 0)
        if (errno != EINTR)
            return base::last_error();
    return {};
}

/// Waits a little for a lock that somebody else holds for a moment.
std::error_code lock_shared(int file) {
    const auto deadline = std::chrono::steady_clock::now() + longest_lock;
    for (;;) {
        const auto error = lock(file, LOCK_SH);
        if (error != std::errc::operation_would_block)
            return error;
        if (std::chrono::steady_clock::now() >= deadline)
            return std::make_error_code(std::errc::device_or_resource_busy);
        std::this_thread::sleep_for(1ms);
    }
}

/// Gives a file without a name a name. EEXIST: somebody has it.
std::error_code link(int file, int directory, const std::string& name) noexcept {
    const auto path = base::path_of(file);
    if (::linkat(AT_FDCWD, path.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
        return {};
    if (errno != ENOENT)
        return base::last_error();
    // There is no /proc. This way needs a capability before Linux 6.10.
    return ::linkat(file, "", directory, name.c_str(), AT_EMPTY_PATH) == 0 ? std::error_code()
                                                                           : base::last_error();
}

std::string drawn_name() {
    static constinit std::atomic<unsigned> last{0};
    return fmt::format("{}{}.{}", prefix_of_session(), ::getpid(), ++last);
}

/// Opens a file by its name. Each way to one leads here, so none leaves the directory.
base::unique_fd open_in(int directory, const std::string& name, int flags,
                        std::error_code& error) noexcept {
    if (!is_name(name)) {
        error = std::make_error_code(std::errc::invalid_argument);
        return {};
    }
    return base::out_of_stdio(
        base::unique_fd(
            ::openat(directory, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)),
        error);
}

bool is_ours(const struct stat& file) noexcept {
    return S_ISREG(file.st_mode) && file.st_uid == ::geteuid() &&
           (file.st_mode & 07777) == marked_mode;
}

/// Whether nobody but this process' user has access to a file, which may be another program's.
bool is_of_user(const struct stat& file) noexcept {
    return S_ISREG(file.st_mode) && file.st_uid == ::geteuid() &&
           (file.st_mode & 07777 & ~static_cast<mode_t>(S_ISVTX)) == 0600;
}

/// A file without a name. Its mode does not depend on the umask.
base::unique_fd make_nameless(int directory, std::error_code& error) noexcept {
    auto file = base::out_of_stdio(
        base::unique_fd(::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)), error);
    if (!error && ::fchmod(file.get(), marked_mode) != 0)
        error = base::last_error();
    return error ? base::unique_fd() : std::move(file);
}

/// Whether an error says that there is no file of ours with a name, not that something was short.
bool means_no_file(std::error_code error) noexcept {
    return error == std::errc::no_such_file_or_directory || error == std::errc::invalid_argument ||
           error == std::errc::too_many_symbolic_link_levels ||
           error == std::errc::permission_denied || error == std::errc::no_such_device_or_address;
}

/// Held while an exclusive lock is. A forked copy would else inherit the lock for good.
/// Fair, because a sweep of many names would else keep a fork waiting.
struct removals {
    base::fair_mutex mutex;
};

removal remove_unused(int directory, const std::string& name) noexcept {
    const std::lock_guard no_fork(fork_held<removals>::get().mutex);
    std::error_code error;
    struct stat opened;
    struct stat named;
    // Anybody may make many such names, and an open takes longer than a look.
    if (::fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && !is_ours(named))
        return removal::none;
    const auto file = open_in(directory, name, O_RDONLY, error);
    if (error)
        return means_no_file(error) ? removal::none : removal::used;
    if (::fstat(file.get(), &opened) != 0 || !is_ours(opened))
        return removal::none;
    if (lock(file.get(), LOCK_EX))
        return removal::used;
    // With the exclusive lock nobody else removes the name. It may have been removed before, and
    // given to another file.
    const bool is_removed = ::fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                            named.st_ino == opened.st_ino && named.st_dev == opened.st_dev &&
                            ::unlinkat(directory, name.c_str(), 0) == 0;
    return is_removed ? removal::removed : removal::none;
}

std::string room_in_directory() {
    struct statvfs found {};
    if (::statvfs(directory_path, &found) != 0)
        return "";
    return fmt::format("/dev/shm has {} free of {}; file_descriptor arrays do not count there",
                       size_text(found.f_bavail * found.f_frsize),
                       size_text(found.f_blocks * found.f_frsize));
}

/// Why names don't work. What was short may be there again later; the rest can't change.
names_answer short_of(const std::string& what, std::error_code error) {
    return {fmt::format("{}: {}", what, error.message()), true};
}

/// Tries what the names stand on: a lock that stays when only a mapping is left.
names_answer probe() {
    if (!base::is_best(&base::tiers::names))
        return {base::current_tiers().names.reason};
    std::error_code error;
    const auto directory = open_directory(error);
    if (error)
        return short_of(directory_path, error);
    struct statfs system {};
    if (::fstatfs(directory.get(), &system) != 0 || system.f_type != TMPFS_MAGIC)
        return {"/dev/shm is not a tmpfs"};
    auto file = make_nameless(directory.get(), error);
    const auto again = base::path_of(file.get());
    const base::unique_fd other(file ? ::open(again.c_str(), O_RDWR | O_CLOEXEC) : -1);
    if (!error && !other)
        error = base::last_error();
    if (error)
        return short_of("a file without a name in /dev/shm", error);
    if (error = base::reserve(file.get(), 1); !error)
        error = lock(file.get(), LOCK_SH);
    void* const mapped =
        error ? MAP_FAILED : ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, file.get(), 0);
    if (mapped == MAP_FAILED)
        return short_of("a file in /dev/shm", error ? error : base::last_error());
    file.reset();
    const bool stays = bool(lock(other.get(), LOCK_EX));
    ::munmap(mapped, 1);
    if (stays && !lock(other.get(), LOCK_EX))
        return {};
    return {"a lock on a file in /dev/shm does not stay"};
}

}  // namespace

base::unique_fd open_directory(std::error_code& error) noexcept {
    return base::out_of_stdio(
        base::unique_fd(::open(directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)), error);
}

base::unique_fd create_named(std::size_t bytes, std::string& name, const std::string& what) {
    if (!name.empty())
        check_name(name);
    std::error_code error;
    const auto directory = open_directory(error);
    if (error)
        refuse(what, error);
    auto file = make_nameless(directory.get(), error);
    if (!error)
        error = base::reserve(file.get(), bytes);
    if (error == std::errc::no_space_on_device)
        refuse(what, ENOSPC, fmt::format("{}: {}", error.message(), room_in_directory()));
    if (!error)
        error = lock(file.get(), LOCK_SH);
    if (!error && name.empty()) {
        do
            error = link(file.get(), directory.get(), name = drawn_name());
        while (error == std::errc::file_exists);
    } else if (!error) {
        (void)remove_unused(directory.get(), name);
        error = link(file.get(), directory.get(), name);
    }
    if (error)
        refuse(what, error);
    return file;
}

base::unique_fd open_named(const std::string& name, int flags, std::error_code& error) {
    const auto directory = open_directory(error);
    if (error)
        return {};
    auto file = open_in(directory.get(), name, flags, error);
    struct stat found {};
    if (!error && ::fstat(file.get(), &found) != 0)
        error = base::last_error();
    if (!error && !is_of_user(found))
        error = std::make_error_code(std::errc::operation_not_permitted);
    if (error || !is_ours(found))
        return error ? base::unique_fd() : std::move(file);
    error = lock_shared(file.get());
    // A sweeper may have removed the name before the lock was there.
    if (!error && ::fstat(file.get(), &found) == 0 && found.st_nlink == 0)
        error = std::make_error_code(std::errc::no_such_file_or_directory);
    return error ? base::unique_fd() : std::move(file);
}

std::string name_of(int descriptor) {
    struct stat found {};
    if (::fstat(descriptor, &found) != 0 || !is_ours(found) || found.st_nlink == 0)
        return "";
    char path[256];
    const auto link = base::path_of(descriptor);
    const auto length = ::readlink(link.c_str(), path, sizeof path);
    const std::string_view all(path, length < 0 ? 0 : static_cast<std::size_t>(length));
    if (all.size() == sizeof path)
        return "";
    // Whatever the directory's path is: /dev/shm may be a link.
    std::string name(all.substr(all.rfind('/') + 1));
    std::error_code error;
    const auto directory = open_directory(error);
    struct stat named {};
    const bool is_there =
        !error && is_name(name) &&
        ::fstatat(directory.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0;
    return is_there && named.st_ino == found.st_ino && named.st_dev == found.st_dev ? name : "";
}

bool is_used(const std::string& name) noexcept {
    const std::lock_guard no_fork(fork_held<removals>::get().mutex);
    std::error_code error;
    const auto directory = open_directory(error);
    if (error)
        return true;
    const auto file = open_in(directory.get(), name, O_RDONLY, error);
    return error || lock(file.get(), LOCK_EX);
}

removal remove_unused(const std::string& name) noexcept {
    std::error_code error;
    const auto directory = open_directory(error);
    return error ? removal::used : remove_unused(directory.get(), name);
}

swept sweep(std::string_view prefix, std::size_t most) {
    std::error_code error;
    const auto directory = open_directory(error);
    swept done;
    std::filesystem::directory_iterator entry(directory_path, error);
    const std::filesystem::directory_iterator end;
    for (std::size_t read = 0; !error && entry != end && read < most; ++read) {
        const auto name = entry->path().filename().native();
        if (name.starts_with(prefix)) {
            const auto what = remove_unused(directory.get(), name);
            done.removed += what == removal::removed;
            done.has_used |= what == removal::used;
        }
        entry.increment(error);
    }
    done.is_complete = error || entry == end;
    return done;
}

std::string prefix_of_user() { return fmt::format("cohort.{}.", ::geteuid()); }
std::string prefix_of_session() { return fmt::format("{}{:012x}.", prefix_of_user(), session()); }

names_answer why_no_names() {
    static constinit std::atomic<const names_answer*> kept{nullptr};  // leaked
    if (const auto* const known = kept.load(std::memory_order_acquire))
        return *known;
    auto answer = probe();
    if (!answer.may_change) {
        auto made = std::make_unique<const names_answer>(answer);
        const names_answer* before = nullptr;
        if (kept.compare_exchange_strong(before, made.get(), std::memory_order_acq_rel))
            (void)made.release();
    }
    return answer;
}

}  // namespace cohort::base
