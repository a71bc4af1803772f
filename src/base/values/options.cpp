// SPDX-License-Identifier: BSL-1.0
#include <cohort/options.hpp>

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace cohort {

namespace {

constexpr int last_signal = 64;  // the kernel's _NSIG; glibc's SIGRTMAX is a function call

void require_signal(const char* setter, int lowest, int signo) {
    if (signo < lowest || signo > last_signal)
        throw std::invalid_argument(fmt::format("cohort: {}: {} is not a signal number ({} to {})",
                                                setter, signo, lowest, last_signal));
}

}  // namespace

namespace detail {

void group_settings::set_stop_signal(int signo) {
    require_signal("stop_signal", 1, signo);
    stop_signal = signo;
}

void group_settings::set_parent_death_signal(int signo) {
    require_signal("parent_death_signal", 0, signo);
    parent_death_signal = signo;
}

void group_settings::set_cgroup_directory(std::string path) {
    detail::require_no_nul(path, "the path of cgroup");
    if (!path.starts_with('/'))
        throw std::invalid_argument(
            fmt::format("cohort: cgroup: \"{}\" is not an absolute path", path));
    cgroup = cgroup::automatic;
    cgroup_directory = std::move(path);
}

void group_settings::set_name(std::string text) {
    if (text.empty())
        throw std::invalid_argument("cohort: name: empty");
    if (const auto at = text.find('\0'); at != std::string::npos)
        throw std::invalid_argument(
            fmt::format("cohort: name: \"{}\" has a NUL at position {}", text.substr(0, at), at));
    name = std::move(text);
}

remote_place::~remote_place() = default;

void group_settings::settle_size() {
    if (per_host == 0)
        return;
    if (!machines)
        throw std::invalid_argument("cohort: per_host: no hosts were given by on()");
    const auto n = std::int64_t{per_host} * machines->size();
    if (is_sized && nprocs != n)
        throw std::invalid_argument(
            fmt::format("cohort: {} workers on each of {} hosts are {}, but nprocs is {}", per_host,
                        machines->size(), n, nprocs));
    if (n > std::numeric_limits<int>::max())
        throw std::invalid_argument(fmt::format("cohort: per_host: {} workers are too many", n));
    nprocs = static_cast<int>(n);
}

void group_settings::set_pipe_size(std::uint64_t bytes) {
    if (bytes == 0)
        throw std::invalid_argument("cohort: pipe_size: a pipe of 0 bytes");
    pipe_size = bytes;
}

}  // namespace detail

void detail::refuse_negative(const char* setter) {
    throw std::invalid_argument(fmt::format("cohort: {}: negative", setter));
}

options& options::nprocs(int n) {
    if (n < 0)
        throw std::invalid_argument(
            fmt::format("cohort: nprocs: the number of workers is negative ({})", n));
    settings_.nprocs = n;
    settings_.is_sized = true;
    return *this;
}

options& options::per_host(int n) {
    if (n < 1)
        throw std::invalid_argument(fmt::format("cohort: per_host: less than 1 ({})", n));
    settings_.per_host = n;
    return *this;
}

options& options::at_once(int n) {
    if (n < 1)
        throw std::invalid_argument(fmt::format("cohort: at_once: less than 1 ({})", n));
    settings_.at_once = n;
    return *this;
}

options& options::restart(const restarts& how) {
    settings_.restarts = how.data_;
    return *this;
}

options& options::error_file(bool on) {
    settings_.error_file = on;
    return *this;
}

options& options::on_failure(cohort::on_failure policy) {
    settings_.policy = policy;
    return *this;
}

options& options::set_group_memory_max(std::uint64_t bytes) {
    detail::require_some("group_memory_max", bytes);
    settings_.group_memory_max = bytes;
    return *this;
}

options& options::group_cpu_max(double cores) {
    detail::require_cores("group_cpu_max", cores);
    settings_.group_cpu_max = cores;
    return *this;
}

options& options::set_success_codes(std::set<int> codes) {
    for (const int code : codes)
        if (code < 0 || code > 255)
            throw std::invalid_argument(
                fmt::format("cohort: success_codes: {} is not an exit code (0 to 255)", code));
    settings_.success_codes = std::move(codes);
    return *this;
}

}  // namespace cohort
