// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/mark.hpp"

#include "base/sys/processes.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <span>

#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace cohort::protocol {
namespace {

template <class Number>
bool read_number(std::string_view text, Number& number) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

/// argv[1] as the kernel has it; empty if it is longer than any mark.
std::string_view first_argument(std::span<char> room) noexcept {
    return base::read_entry("/proc/self/cmdline", 1, room);
}

constexpr std::string_view prefix_of(mark::what names) noexcept {
    return names == mark::what::server ? protocol::server_argument_prefix
                                       : protocol::worker_argument_prefix;
}

bool has_inode(const mark& m, const struct stat& file) noexcept {
    return file.st_ino == m.inode && (m.names == mark::what::worker || S_ISSOCK(file.st_mode));
}

/// Whether argv[1] is a mark and its descriptor matches. The file's owner is not checked, because a
/// worker that refuses its order must not start workers of its own either.
bool look_up() noexcept {
    std::array<char, 4096> room;
    const auto m = parse_mark(first_argument(room));
    struct stat status {};
    if (!m || ::fstat(m->fd, &status) != 0 || !has_inode(*m, status))
        return false;
    return m->names == mark::what::server || read_order(*m).has_value();
}

/// Whether the file was made by a user who may give orders to this process. The user who executes a
/// program chooses its arguments and descriptors, but may not have the rights that it runs with.
bool is_from_our_user(const struct stat& file) noexcept {
    const bool is_ours = file.st_uid == ::geteuid();
    const bool may_have_gained_rights =
        ::getauxval(AT_SECURE) != 0 && ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
    if (!may_have_gained_rights)
        return is_ours || file.st_uid == 0;
    // The program may have a set-user-ID bit. But a worker looks the same if its host runs as root
    // and is another user for a while (seteuid).
    return ::getuid() == 0 && is_ours && file.st_gid == ::getegid();
}

/// Whether it is one end of a socketpair(2), to which nobody else can have connected.
bool is_nameless_socket(int fd) noexcept {
    sockaddr_un own{};
    sockaddr_un other{};
    socklen_t own_length = sizeof own;
    socklen_t other_length = sizeof other;
    return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
           ::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_length) == 0 &&
           own.sun_family == AF_UNIX && own_length == sizeof own.sun_family &&
           other_length == sizeof other.sun_family;
}

constinit std::atomic<bool> called{false};
constinit std::atomic<bool> reached{false};

}  // namespace

std::string to_string(const mark& m) {
    return std::string(prefix_of(m.names)) + std::to_string(m.fd) + ":" + std::to_string(m.inode);
}

std::optional<mark> parse_mark(std::string_view argument) noexcept {
    mark m;
    if (argument.starts_with(prefix_of(mark::what::server)))
        m.names = mark::what::server;
    else if (!argument.starts_with(prefix_of(mark::what::worker)))
        return std::nullopt;
    argument.remove_prefix(prefix_of(m.names).size());
    const auto colon = argument.find(':');
    if (colon == std::string_view::npos)
        return std::nullopt;
    if (!read_number(argument.substr(0, colon), m.fd) || m.fd <= STDERR_FILENO)
        return std::nullopt;  // sudo and similar programs pass on the caller's standard streams
    if (!read_number(argument.substr(colon + 1), m.inode))
        return std::nullopt;
    return m;
}

std::optional<protocol::control_order> read_order(const mark& m) noexcept {
    struct stat status {};
    if (::fstat(m.fd, &status) != 0 || status.st_ino != m.inode)
        return std::nullopt;
    if (::fcntl(m.fd, F_GET_SEALS) < 0)
        return std::nullopt;  // EINVAL: it is no memory file
    protocol::control_order order;
    ssize_t count = 0;
    do {
        count = ::pread(m.fd, &order, sizeof order, 0);
    } while (count < 0 && errno == EINTR);
    if (count != static_cast<ssize_t>(sizeof order))
        return std::nullopt;
    if (order.magic != protocol::control_magic)
        return std::nullopt;
    return order;
}

bool looks_like_mark(std::string_view argument) noexcept {
    return argument.starts_with(prefix_of(mark::what::worker)) ||
           argument.starts_with(prefix_of(mark::what::server));
}

bool holds(const mark& m) noexcept {
    struct stat status {};
    if (::fstat(m.fd, &status) != 0 || !has_inode(m, status) || !is_from_our_user(status))
        return false;
    return m.names == mark::what::worker ? read_order(m).has_value() : is_nameless_socket(m.fd);
}

bool worker_main_called() noexcept { return called.load(std::memory_order_acquire); }
void note_worker_main_call() noexcept { called.store(true, std::memory_order_release); }

bool worker_main_reached() noexcept { return reached.load(std::memory_order_acquire); }
void note_worker_main() noexcept { reached.store(true, std::memory_order_release); }

bool is_worker_process() noexcept {
    // Not a guarded static, because a fork may copy the guard while it is taken. Threads that ask
    // at the same time all look.
    static constinit std::atomic<int> known{-1};
    int is_worker = known.load(std::memory_order_acquire);
    if (is_worker < 0)
        known.store(is_worker = look_up() ? 1 : 0, std::memory_order_release);
    return is_worker == 1;
}

bool may_be_agent() noexcept {
    return ::getauxval(AT_SECURE) == 0 && ::isatty(STDIN_FILENO) == 0 &&
           ::isatty(STDOUT_FILENO) == 0;
}

}  // namespace cohort::protocol
