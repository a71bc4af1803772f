// SPDX-License-Identifier: BSL-1.0
#include "base/sys/credentials.hpp"

#include "base/sys/fork_mark.hpp"
#include "base/sys/processes.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::base {
namespace {

std::vector<gid_t> supplementary_groups() {
    constexpr int few = 32;  // most users have no more, so one call is enough
    std::vector<gid_t> groups(few);
    int count = ::getgroups(few, groups.data());
    if (count < 0) {
        groups.resize(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
        count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    }
    groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    return groups;
}

}  // namespace

// By system calls, because the C library's functions leave its own signals out.
user_hold::user_hold() noexcept {
    constexpr int setxid_signal = 33;
    const auto blocked = std::uint64_t{1} << (setxid_signal - 1);
    ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before_, sizeof blocked);
}

user_hold::~user_hold() {
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
}

user_ids user_ids::now() noexcept {
    user_ids self;
    ::getresuid(&self.real, &self.effective, &self.saved);
    return self;
}

bool may_signal(uid_t user) noexcept {
    const auto self = user_ids::now();
    if (user == self.real || user == self.effective)
        return true;
    return (capabilities::now().bits[0] & CAP_TO_MASK(CAP_KILL)) != 0;
}

credentials credentials::now() {
    credentials self;
    self.user = user_ids::now();
    ::getresgid(&self.groups[0], &self.groups[1], &self.groups[2]);
    self.supplementary = supplementary_groups();
    return self;
}

bool credentials::uniform() const noexcept {
    return user.real == user.effective && user.real == user.saved &&
           std::ranges::all_of(groups, [this](gid_t id) { return id == groups[0]; });
}

capabilities capabilities::now() noexcept {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    capabilities own;
    static_assert(sizeof own == sizeof(__user_cap_data_struct[_LINUX_CAPABILITY_U32S_3]));
    return ::syscall(SYS_capget, &header, own.bits.data()) == 0 ? own : capabilities();
}

std::uint64_t ambient_capabilities(const capabilities& own) noexcept {
    std::uint64_t found = 0;
    // Only what is permitted and inheritable can be ambient. Most threads have nothing of that.
    for (unsigned bit = 0; bit < 64; ++bit) {
        const auto half = bit / 32 * 3;
        if ((own.bits[half + 1] & own.bits[half + 2] & CAP_TO_MASK(bit)) != 0 &&
            ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, bit, 0, 0) == 1)
            found |= std::uint64_t{1} << bit;
    }
    return found;
}

capabilities capabilities::also_in(const capabilities& other) const noexcept {
    capabilities both;
    for (std::size_t half = 0; half < bits.size(); half += 3) {
        const auto permitted = other.bits[half + 1];
        both.bits[half] = bits[half] & permitted;
        both.bits[half + 1] = bits[half + 1] & permitted;
        both.bits[half + 2] = bits[half + 2] & (other.bits[half + 2] | permitted);
    }
    return both;
}

namespace {

/// Kept, to save a system call; a thread that has been forked has another number.
pid_t own_thread() {
    thread_local std::uint64_t process = 0;  // none has this number
    thread_local pid_t number = 0;
    if (const auto now = process_generation(); process != now) {
        number = static_cast<pid_t>(::syscall(SYS_gettid));
        process = now;
    }
    return number;
}

int filters_in(const std::string& proc) {
    const auto text = status_of(proc, "Seccomp_filters");
    int count = some_filters;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
}

std::optional<root_directory> root_at(const std::string& path) {
    struct statx found {};
    if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_MNT_ID, &found) != 0)
        return std::nullopt;
    return root_directory{found.stx_dev_major, found.stx_dev_minor, found.stx_ino,
                          found.stx_mnt_id};
}

}  // namespace

bool shares_files_with(pid_t thread) {
    const pid_t own = own_thread();
    return own == thread || ::syscall(SYS_kcmp, own, thread, KCMP_FS, 0, 0) == 0;
}

std::string status_of(const std::string& proc, const char* name) {
    const auto text = "\n" + read_text(proc + "status");
    const auto key = "\n" + std::string(name) + ":\t";
    const auto at = text.find(key);
    if (at == text.npos)
        return {};
    const auto from = at + key.size();
    return text.substr(from, text.find('\n', from) - from);
}

int own_filters() {
    // Unlike the file this is there in all threads, and it tells at once that there are none. A
    // filter may deny the call itself.
    const int mode = ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
    return mode == 0 || (mode < 0 && errno == EINVAL) ? 0 : filters_in(own_proc);
}

known_thread known_thread::self() {
    known_thread found;
    found.number = static_cast<pid_t>(::syscall(SYS_gettid));
    // Its number is another one there if /proc is that of an outer pid namespace.
    char link[64];
    if (const auto length = ::readlink("/proc/thread-self", link, sizeof link); length > 0)
        found.proc = "/proc/" + std::string(link, static_cast<std::size_t>(length)) + "/";
    found.had_filter = own_filters() != 0;
    found.net = namespace_of(own_proc, "net");
    found.first_root = root_at("/");
    return found;
}

bool known_thread::has_own_root() const {
    const auto shown = proc.empty() ? std::nullopt : root_at(proc + "root");
    const auto& root = shown ? shown : first_root;
    const auto own = root_at("/");
    return !root || !own || *root == *own;
}

int known_thread::filters() const { return proc.empty() ? some_filters : filters_in(proc); }

unsigned long namespace_of(const std::string& proc, const char* name) {
    char link[64];
    const auto length = ::readlink((proc + "ns/" + name).c_str(), link, sizeof link);  // "net:[17]"
    const std::string_view text(link, length > 0 ? static_cast<std::size_t>(length) : 0);
    unsigned long number = 0;
    if (const auto at = text.find('['); at != text.npos)
        std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
    return number;
}

}  // namespace cohort::base
