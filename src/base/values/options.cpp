// SPDX-License-Identifier: BSL-1.0
#include <cohort/command.hpp>

#include "base/sys/descriptors.hpp"

#include <cohort/call_limits.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/detail/pool_plan.hpp>
#include <cohort/errors.hpp>
#include <cohort/options.hpp>
#include <cohort/restarts.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>

namespace cohort {

command::command(const std::vector<std::string>& words) {
    if (words.empty())
        throw std::invalid_argument("cohort: a command of no words");
    set_program(words.front());
    for (std::size_t i = 1; i < words.size(); ++i)
        add(words[i]);
}

void command::set_program(std::string name) {
    if (name.empty())
        throw std::invalid_argument("cohort: the program of a command has an empty name");
    detail::require_no_nul(name, "the program of a command");
    program_.argv.assign(1, std::move(name));
}

void command::add(std::string text) {
    detail::require_no_nul(text, "an argument of a command");
    program_.argv.push_back(std::move(text));
}

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

namespace cohort::detail::inline v0_1 {

namespace {

void require_name(std::string_view name) {
    require_no_nul(name, "the name of a variable");
    if (name.empty())
        throw std::invalid_argument("cohort: the name of a variable is empty");
    if (name.find('=') != std::string_view::npos)
        throw std::invalid_argument(
            fmt::format("cohort: the name of a variable, \"{}\", has a '=' in it", name));
}

constexpr std::string_view share_prefix = "COHORT_SHARED_";

/// Refuses the variables that the library sets for each worker, because their values must be true.
void require_not_reserved(std::string_view name) {
    if (name.starts_with(share_prefix))
        throw std::invalid_argument(
            fmt::format("cohort: the variable {} is set by share() alone", name));
    for (const std::string_view reserved :
         {"COHORT_INDEX", "COHORT_SIZE", "COHORT_HOST", "COHORT_ERROR_FILE",
          "TORCHELASTIC_ERROR_FILE"})
        if (name == reserved)
            throw std::invalid_argument(fmt::format(
                "cohort: the variable {} is set by the library for each worker: it can be neither "
                "set nor unset",
                name));
}

/// Checks sinks that are to stand beside each other on one stream.
void require_together(const char* setter, int stream, const std::vector<sink>& sinks) {
    std::size_t captures = 0;
    std::size_t queued = 0;
    const char* lonely = nullptr;
    for (const sink& one : sinks) {
        captures += std::holds_alternative<capture_sink>(one);
        queued +=
            std::holds_alternative<lines_sink>(one) || std::holds_alternative<chunks_sink>(one);
        if (std::holds_alternative<inherit_sink>(one))
            lonely = "inherit()";
        else if (std::holds_alternative<discard_sink>(one))
            lonely = "discard()";
        else if (std::holds_alternative<merge_sink>(one))
            lonely = "merge()";
        if (std::holds_alternative<merge_sink>(one) && stream != STDERR_FILENO)
            throw std::invalid_argument(fmt::format(
                "cohort: {}: merge() sends standard error to standard output: it is for stderr_to",
                setter));
    }
    if (lonely && sinks.size() > 1)
        throw std::invalid_argument(
            fmt::format("cohort: {}: {} is possible only as the one sink", setter, lonely));
    if (captures > 1)
        throw std::invalid_argument(
            fmt::format("cohort: {}: more than one capture() for a stream", setter));
    if (queued > 1)
        throw std::invalid_argument(
            fmt::format("cohort: {}: more than one of lines() and chunks() for a stream", setter));
}

/// A close-on-exec duplicate, closed by its last owner. Numbered 3 or higher, so that a program
/// that has closed its standard streams does not get it as one of them.
std::shared_ptr<const int> duplicate(int fd) {
    struct owned {
        base::unique_fd file;
        int number = -1;
    };
    const auto made = std::make_shared<owned>();
    made->number = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (made->number < 0)
        throw std::system_error(errno, std::generic_category(),
                                fmt::format("cohort: fd: descriptor {}", fd));
    made->file = base::unique_fd(made->number);
    return {made, &made->number};
}

}  // namespace

void require_no_nul(std::string_view text, std::string_view what) {
    if (const auto at = text.find('\0'); at != std::string_view::npos)
        throw std::invalid_argument(fmt::format("cohort: {}, \"{}\", has a NUL at position {}",
                                                what, text.substr(0, at), at));
}

void require_path(const char* setter, std::string_view path) {
    if (path.empty())
        throw std::invalid_argument(fmt::format("cohort: {}: the path is empty", setter));
    if (const auto at = path.find('\0'); at != std::string_view::npos)
        throw std::invalid_argument(
            fmt::format("cohort: {}: the path \"{}\" has a NUL at position {}", setter,
                        path.substr(0, at), at));
}

placement::placement() = default;
placement::placement(const placement& other) = default;
placement::placement(placement&& other) noexcept = default;
placement& placement::operator=(const placement& other) = default;
placement& placement::operator=(placement&& other) noexcept = default;
placement::~placement() = default;

bool operator==(const placement& a, const placement& b) {
    return a.clear_env == b.clear_env && a.env == b.env &&
           a.working_directory == b.working_directory && a.umask == b.umask &&
           a.descriptors == b.descriptors && a.sinks == b.sinks && a.input == b.input &&
           a.shared == b.shared && a.limits == b.limits;
}

void placement::set_variable(std::string name, std::string value) {
    require_name(name);
    require_not_reserved(name);
    require_no_nul(value, fmt::format("the value of the variable {}", name));
    env.push_back(env_change{std::move(name), std::move(value)});
}

void placement::unset_variable(std::string name) {
    require_name(name);
    require_not_reserved(name);
    env.push_back(env_change{std::move(name), std::nullopt});
}

bool placement::changes_variable(std::string_view name) const noexcept {
    return std::ranges::find(env, name, &env_change::name) != env.end();
}

void placement::clear_variables() {
    clear_env = true;
    env.clear();
}

void placement::set_working_directory(std::string path) {
    require_path("working_directory", path);
    working_directory = std::move(path);
}

void placement::set_umask(mode_t mask) {
    if ((mask & ~mode_t{0777}) != 0)
        throw std::invalid_argument(
            fmt::format("cohort: umask: {:#o} has bits outside 0777", mask));
    umask = mask;
}

void placement::set_sinks(const char* setter, int theirs, std::vector<sink> targets) {
    require_together(setter, theirs, targets);
    sinks.insert_or_assign(theirs, std::move(targets));
    descriptors.erase(theirs);
}

void placement::set_input(detail::input from) {
    if (const auto* file = std::get_if<path_input>(&from))
        require_path("stdin_from", file->path);
    input = std::move(from);
    descriptors.erase(STDIN_FILENO);
}

void placement::set_descriptor(int ours, int theirs) {
    if (theirs < 0)
        throw std::invalid_argument(
            fmt::format("cohort: fd: the worker's descriptor number is negative ({})", theirs));
    descriptors.insert_or_assign(theirs, duplicate(ours));
    sinks.erase(theirs);
    if (theirs == STDIN_FILENO)
        input.reset();
}

void placement::hold_lent() {
    for (auto& [name, item] : shared) {
        if (item.descriptor)
            continue;
        item.descriptor = item.lent.lock();
        if (!item.descriptor)
            throw sharing_error(std::make_error_code(std::errc::bad_file_descriptor),
                                "cohort: share(\"" + name +
                                    "\"): this process has closed that end of the queue");
    }
}

void placement::share(std::string name, shared_item item) {
    const auto is_allowed = [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    };
    if (name.empty() || !std::ranges::all_of(name, is_allowed))
        throw std::invalid_argument(fmt::format("cohort: share: the name \"{}\" may have letters, "
                                                "digits and '_' only, and must have one",
                                                name));
    if (!item.descriptor && item.lent.expired())
        throw std::invalid_argument(
            fmt::format("cohort: share: \"{}\" is an array without memory", name));
    shared.insert_or_assign(std::move(name), std::move(item));
}

placement placement::overridden_by(const placement& over) const {
    placement result = *this;
    if (over.clear_env)
        result.clear_variables();
    result.env.insert(result.env.end(), over.env.begin(), over.env.end());
    if (over.umask)
        result.umask = over.umask;
    if (over.working_directory)
        result.working_directory = over.working_directory;
    for (const auto& [number, fd] : over.descriptors) {
        result.descriptors.insert_or_assign(number, fd);
        result.sinks.erase(number);
        if (number == STDIN_FILENO)
            result.input.reset();
    }
    for (const auto& [number, targets] : over.sinks) {
        result.sinks.insert_or_assign(number, targets);
        result.descriptors.erase(number);
    }
    if (over.input) {
        result.input = over.input;
        result.descriptors.erase(STDIN_FILENO);
    }
    for (const auto& [name, item] : over.shared)
        result.shared.insert_or_assign(name, item);
    result.limits.override_by(over.limits);
    return result;
}

}  // namespace cohort::detail::inline v0_1

namespace cohort {

restarts::restarts(int most) {
    if (most < 0)
        throw std::invalid_argument(fmt::format("cohort: restarts: negative ({})", most));
    data_.most = most;
}

restarts& restarts::set_backoff(detail::steady_duration first, detail::steady_duration longest) {
    if (first > longest)
        throw std::invalid_argument(
            "cohort: backoff: the first pause is more than the longest one");
    data_.first_pause = first;
    data_.longest_pause = longest;
    return *this;
}

restarts& restarts::jitter(double part) {
    if (!(part >= 0 && part <= 1))
        throw std::invalid_argument(fmt::format("cohort: jitter: {} is not in 0..1", part));
    data_.jitter = part;
    return *this;
}

restarts& restarts::scope(restart_scope who) noexcept {
    data_.scope = who;
    return *this;
}

restarts& restarts::on(restart_on what) noexcept {
    data_.after = what;
    return *this;
}

}  // namespace cohort

namespace cohort::detail::inline v0_1 {
namespace {

void require_some_of(const char* setter, std::int64_t n) {
    if (n < 1)
        throw std::invalid_argument(fmt::format("cohort: {}: less than 1 ({})", setter, n));
}

}  // namespace

std::chrono::steady_clock::duration require_positive(const char* setter,
                                                     std::chrono::steady_clock::duration d) {
    if (d <= std::chrono::steady_clock::duration::zero())
        throw std::invalid_argument(fmt::format("cohort: {}: the duration is not above 0", setter));
    return d;
}

void pool_settings::set_size(int n) {
    require_some_of("pool_options", n);
    workers.nprocs = n;
}

void pool_settings::set_at_least(int n) {
    if (n < 0)
        throw std::invalid_argument(fmt::format("cohort: at_least: negative ({})", n));
    at_least = n;
}

void pool_settings::set_queue(std::uint64_t n) {
    if (n == 0)
        throw std::invalid_argument("cohort: queue: less than 1 (0)");
    queue = n;
}

void pool_settings::set_start_attempts(int n) {
    require_some_of("start_attempts", n);
    start_attempts = n;
}

void pool_settings::set_starts_at_once(int n) {
    require_some_of("starts_at_once", n);
    starts_at_once = n;
}

}  // namespace cohort::detail::inline v0_1
