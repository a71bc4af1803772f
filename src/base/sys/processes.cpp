// SPDX-License-Identifier: BSL-1.0
#include "base/sys/processes.hpp"

#include "base/sys/descriptors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cohort::base {
namespace {

unique_fd open_to_read(const char* path, int directory) noexcept {
    // O_NONBLOCK, so that open and read do not wait if the file is not a regular one.
    return unique_fd(::openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/// Reads until `room` is full or the file ends; empty when a read fails.
std::string_view fill(const unique_fd& file, std::span<char> room) noexcept {
    std::size_t length = 0;
    while (file && length < room.size()) {
        const auto got = ::read(file.get(), room.data() + length, room.size() - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return {};
        if (got == 0)
            break;
        length += static_cast<std::size_t>(got);
    }
    return {room.data(), length};
}

}  // namespace

std::string_view read_start(const char* path, std::span<char> room, int directory) noexcept {
    return fill(open_to_read(path, directory), room);
}

std::string_view read_entry(const char* path, int index, std::span<char> room) noexcept {
    const auto file = open_to_read(path, AT_FDCWD);
    for (std::size_t kept = 0;;) {  // how much of the wanted entry is in `room` already
        const std::size_t length = kept + fill(file, room.subspan(kept)).size();
        std::string_view rest(room.data(), length);
        for (; index > 0 && rest.find('\0') != rest.npos; --index)
            rest.remove_prefix(rest.find('\0') + 1);
        if (const auto end = rest.find('\0'); end != rest.npos)
            return rest.substr(0, end);
        const bool is_whole = length < room.size();
        const bool is_too_long = index == 0 && rest.size() == room.size();
        if (is_whole || is_too_long)
            return {};
        kept = index == 0 ? rest.size() : 0;
        std::ranges::copy(rest.substr(rest.size() - kept), room.begin());
    }
}

std::string read_text(const std::string& path, int directory) {
    const auto file = open_to_read(path.c_str(), directory);
    std::string text;
    for (std::string room(4096, '\0');;) {
        const auto more = fill(file, room);
        text += more;
        if (more.size() < room.size())
            return text;
    }
}

unique_fd open_cgroup_procs(int directory, std::error_code& error) noexcept {
    return out_of_stdio(unique_fd(::openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC)),
                        error);
}

namespace {

// Fixed parts of the kernel's interface that older headers lack.
constexpr int p_pidfd = 3;                      // P_PIDFD, glibc 2.36
constexpr unsigned to_process_group = 1U << 2;  // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9
constexpr std::uint64_t info_exit = 1ULL << 3;  // PIDFD_INFO_EXIT, Linux 6.15

/// struct pidfd_info as of Linux 6.15. Newer ones are longer; the kernel takes any known length.
struct info {
    std::uint64_t mask;
    std::uint64_t cgroup;
    std::uint32_t pid, tgid, ppid, ids[8];
    std::int32_t exit_code;  // a wait status
};
static_assert(sizeof(info) == 64);
constexpr unsigned long get_info = _IOWR(0xFF, 11, info);  // PIDFD_GET_INFO, Linux 6.13

std::error_code send(int pidfd, int signo, unsigned flags) noexcept {
    if (::syscall(SYS_pidfd_send_signal, pidfd, signo, nullptr, flags) == 0)
        return {};
    return last_error();
}

/// One raw waitid, because glibc's does not take rusage. If it returns 0, si_pid says whether an
/// ended child was found.
long wait_for(int kind, int id, siginfo_t& found, int how, rusage* usage) noexcept {
    long result;
    do {
        found = {};
        // __WALL: a child that failed before exec has no exit signal and would be passed over.
        result = ::syscall(SYS_waitid, kind, id, &found, WEXITED | WNOHANG | __WALL | how, usage);
    } while (result != 0 && errno == EINTR);
    return result;
}

exit_status to_status(const siginfo_t& found) noexcept {
    if (found.si_code == CLD_EXITED)
        return exit_status::from_code(found.si_status);
    return exit_status::from_signal(found.si_status, found.si_code == CLD_DUMPED);
}

}  // namespace

unique_fd open_pidfd(pid_t pid, std::error_code& error) noexcept {
    unique_fd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
    error = pidfd ? std::error_code{} : last_error();
    return pidfd;
}

std::error_code send_signal(int pidfd, int signo) noexcept { return send(pidfd, signo, 0); }

std::error_code send_signal_to_group(int pidfd, int signo) noexcept {
    return send(pidfd, signo, to_process_group);
}

reap_result reap(int pidfd, exit_status& status, rusage& usage) noexcept {
    siginfo_t found;
    if (wait_for(p_pidfd, pidfd, found, 0, &usage) != 0)
        return errno == ECHILD ? reap_result::lost : reap_result::error;
    if (found.si_pid == 0)  // also while a tracer holds the zombie
        return reap_result::not_yet;
    status = to_status(found);
    return reap_result::reaped;
}

child_state state_of_child(int pidfd) noexcept {
    siginfo_t found;
    if (wait_for(p_pidfd, pidfd, found, WNOWAIT, nullptr) != 0)
        return child_state::not_ours;
    return found.si_pid == 0 ? child_state::alive : child_state::zombie;
}

bool is_stopped(int pidfd) noexcept {
    siginfo_t found;
    return wait_for(p_pidfd, pidfd, found, WSTOPPED | WNOWAIT, nullptr) == 0 && found.si_pid != 0 &&
           found.si_code == CLD_STOPPED;
}

bool is_child(pid_t pid) noexcept {
    siginfo_t found;
    return wait_for(P_PID, pid, found, WNOWAIT, nullptr) == 0;
}

void reap_when_ended(int pidfd) noexcept {
    const timespec pause{0, 1'000'000};
    exit_status status;
    rusage usage{};
    pollfd ended{pidfd, POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    while (reap(pidfd, status, usage) == reap_result::not_yet)  // a tracer holds the zombie
        ::nanosleep(&pause, nullptr);
}

void reap_by_number(pid_t pid) noexcept {
    const timespec pause{0, 1'000'000};
    siginfo_t found;
    while (wait_for(P_PID, pid, found, 0, nullptr) == 0 && found.si_pid == 0)
        ::nanosleep(&pause, nullptr);
}

std::optional<exit_status> stolen_status(int pidfd) noexcept {
    info reply{};
    reply.mask = info_exit;
    // The mask of the reply says what was filled in: Linux 6.13 and 6.14 know the call, not the
    // status.
    if (::ioctl(pidfd, get_info, &reply) != 0 || (reply.mask & info_exit) == 0)
        return {};
    if (WIFEXITED(reply.exit_code))
        return exit_status::from_code(WEXITSTATUS(reply.exit_code));
    return exit_status::from_signal(WTERMSIG(reply.exit_code), WCOREDUMP(reply.exit_code));
}

bool knows_pidfd_info(int pidfd) noexcept {
    info reply{};
    return ::ioctl(pidfd, get_info, &reply) == 0;
}

namespace {

/// Takes the next word, up to a space or the end of the line.
std::string_view take_word(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    return word;
}

template <class Number>
bool take_number(std::string_view& text, Number& number) noexcept {
    const auto word = take_word(text);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size();
}

void skip_words(std::string_view& text, int count) noexcept {
    for (int i = 0; i < count; ++i)
        take_word(text);
}

}  // namespace

std::chrono::nanoseconds process_usage::cpu_time() const noexcept {
    const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    const auto nanoseconds = static_cast<double>(ticks) * 1e9 / static_cast<double>(per_second);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
}

std::uint64_t process_usage::resident() const noexcept {
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<process_usage> parse_stat(std::string_view text) noexcept {
    const auto name_end = text.rfind(')');
    if (name_end == text.npos)
        return std::nullopt;
    text.remove_prefix(name_end + 1);
    process_usage found;
    const auto state = take_word(text);
    std::uint64_t user = 0;
    std::uint64_t system = 0;
    std::uint64_t flags = 0;
    skip_words(text, 5);  // from ppid to tpgid
    if (!take_number(text, flags))
        return std::nullopt;
    skip_words(text, 4);  // from minflt to cmajflt
    if (state.size() != 1 || !take_number(text, user) || !take_number(text, system))
        return std::nullopt;
    skip_words(text, 4);  // from cutime to nice
    if (!take_number(text, found.threads))
        return std::nullopt;
    skip_words(text, 3);  // from itrealvalue to vsize
    if (!take_number(text, found.pages))
        return std::nullopt;
    found.state = state[0];
    constexpr std::uint64_t exiting = 4;  // PF_EXITING in the kernel's sched.h
    found.is_exiting = (flags & exiting) != 0;
    found.ticks = user + system;
    return found;
}

namespace {

std::optional<process_usage> usage_in(const char* path) noexcept {
    std::array<char, 1024> room;
    return parse_stat(read_start(path, room));
}

/// Of the threads of a process whose first one has ended, one that runs; of many only the first are
/// looked at.
std::optional<process_usage> usage_of_other_thread(pid_t pid) noexcept {
    constexpr int most_looks = 100;
    char path[64] = {};
    fmt::format_to_n(path, sizeof path - 1, "/proc/{}/task", pid);
    const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir(path), ::closedir);
    for (int i = 0; threads && i < most_looks; ++i) {
        const auto* const entry = ::readdir(threads.get());
        if (entry == nullptr)
            break;
        std::fill(std::begin(path), std::end(path), '\0');
        fmt::format_to_n(path, sizeof path - 1, "/proc/{}/task/{:.20}/stat", pid,
                         std::string_view(entry->d_name));
        const auto found = usage_in(path);
        if (found && found->state != 'Z' && found->state != 'X')
            return found;
    }
    return std::nullopt;
}

std::optional<process_usage> usage_of_number(pid_t pid) noexcept {
    char path[32] = {};
    fmt::format_to_n(path, sizeof path - 1, "/proc/{}/stat", pid);
    auto found = usage_in(path);
    if (!found || found->state != 'Z' || found->threads < 2)
        return found;
    if (const auto other = usage_of_other_thread(pid)) {
        found->state = other->state;
        found->pages = other->pages;
        found->is_exiting = other->is_exiting;
    }
    return found;
}

}  // namespace

bool is_exiting(pid_t pid) noexcept {
    const auto found = usage_of_number(pid);
    return !found || found->is_exiting || found->state == 'Z';
}

bool is_seen_exiting(pid_t pid, int pidfd) noexcept {
    const auto found = usage_of(pid, pidfd);
    return found && (found->is_exiting || found->state == 'Z');
}

std::optional<process_usage> usage_of(pid_t pid, int pidfd) noexcept {
    const auto found = usage_of_number(pid);
    // If it is not reaped now, the number was its own while the file was read. (EPERM: it lives,
    // and has executed a program of another user.)
    if (send_signal(pidfd, 0) == std::errc::no_such_process)
        return std::nullopt;
    return found;
}

}  // namespace cohort::base
