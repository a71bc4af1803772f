// SPDX-License-Identifier: BSL-1.0
#include "base/sys/confinement.hpp"

#include "base/sys/fork_mark.hpp"
#include "base/sys/small_file.hpp"

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::base {
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
