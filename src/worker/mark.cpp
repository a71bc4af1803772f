// SPDX-License-Identifier: BSL-1.0
#include "worker/mark.hpp"

#include "sys/small_file.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>

#include <sys/stat.h>
#include <unistd.h>

namespace cohort::worker {
namespace {

template <class Number>
bool read_number(std::string_view text, Number& number) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

/// argv[1] as the kernel has it; longer ones than any mark are cut.
std::string_view first_argument(std::array<char, 4096 + 128>& buffer) noexcept {
    const std::string_view all = sys::read_start("/proc/self/cmdline", buffer);
    const auto end_of_zeroth = all.find('\0');
    if (end_of_zeroth == std::string_view::npos)
        return {};
    const std::string_view rest = all.substr(end_of_zeroth + 1);
    const auto end = rest.find('\0');
    return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

constexpr std::string_view prefix_of(mark::what names) noexcept {
    return names == mark::what::server ? record::server_argument_prefix
                                       : record::worker_argument_prefix;
}

bool look_up() noexcept {
    std::array<char, 4096 + 128> buffer;
    const auto m = parse_mark(first_argument(buffer));
    return m && holds(*m);
}

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
    if (!read_number(argument.substr(0, colon), m.fd) || m.fd < 0)
        return std::nullopt;
    if (!read_number(argument.substr(colon + 1), m.inode))
        return std::nullopt;
    return m;
}

std::optional<record::control_order> read_order(const mark& m) noexcept {
    struct stat status {};
    if (::fstat(m.fd, &status) != 0 || status.st_ino != m.inode)
        return std::nullopt;
    if (::fcntl(m.fd, F_GET_SEALS) < 0)
        return std::nullopt;  // EINVAL: not a memory file
    record::control_order order;
    ssize_t count = 0;
    do {
        count = ::pread(m.fd, &order, sizeof order, 0);
    } while (count < 0 && errno == EINTR);
    if (count != static_cast<ssize_t>(sizeof order))
        return std::nullopt;
    if (order.magic != record::control_magic)
        return std::nullopt;
    return order;
}

bool looks_like_mark(std::string_view argument) noexcept {
    return argument.starts_with(prefix_of(mark::what::worker)) ||
           argument.starts_with(prefix_of(mark::what::server));
}

bool holds(const mark& m) noexcept {
    if (m.names == mark::what::worker)
        return read_order(m).has_value();
    struct stat status {};
    return ::fstat(m.fd, &status) == 0 && status.st_ino == m.inode && S_ISSOCK(status.st_mode);
}

bool worker_main_reached() noexcept { return reached.load(std::memory_order_acquire); }
void note_worker_main() noexcept { reached.store(true, std::memory_order_release); }

bool is_worker_process() noexcept {
    // No guard: a fork may copy one. Who asks at the same time looks as well.
    static constinit std::atomic<int> known{-1};
    int is_worker = known.load(std::memory_order_acquire);
    if (is_worker < 0)
        known.store(is_worker = look_up() ? 1 : 0, std::memory_order_release);
    return is_worker == 1;
}

}  // namespace cohort::worker
