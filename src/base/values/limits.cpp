// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/limits.hpp>
#include <cohort/detail/placement.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace cohort::detail::inline v0_1 {

namespace {

void require_within(const char* setter, int value, int lowest, int highest) {
    if (value < lowest || value > highest)
        throw std::invalid_argument(
            fmt::format("cohort: {}: {} is not within {} and {}", setter, value, lowest, highest));
}

constexpr int last_cpu = 65'535;  // more than any kernel has

[[noreturn]] void refuse_cpus(std::string_view list) {
    throw std::invalid_argument(
        fmt::format("cohort: cpus: \"{}\" is no list of numbers such as \"0-3,8\"", list));
}

/// Takes a number of a CPU from the beginning of `text`. @return -1: there is none
int take_cpu(std::string_view& text) {
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0 || number > last_cpu)
        return -1;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool take(std::string_view& text, char c) {
    if (!text.starts_with(c))
        return false;
    text.remove_prefix(1);
    return true;
}

template <class T>
void override_one(std::optional<T>& value, const std::optional<T>& over) {
    if (over)
        value = over;
}

}  // namespace

void worker_limits::set_resource(resource which, std::uint64_t soft, std::uint64_t hard) {
    if (soft > hard)
        throw std::invalid_argument(fmt::format(
            "cohort: limit: the soft limit, {}, is above the hard limit, {}", soft, hard));
    resources.insert_or_assign(which, soft_and_hard{soft, hard});
}

void worker_limits::set_nice(int value) {
    require_within("nice", value, -20, 19);
    nice = value;
}

void worker_limits::set_io_priority(io_class of, int level) {
    require_within("io_priority", level, 0, 7);
    io_priority = io_priority_choice{of, of == io_class::idle ? 0 : level};
}

void worker_limits::set_oom_score_adj(int value) {
    require_within("oom_score_adj", value, -1000, 1000);
    oom_score_adj = value;
}

void worker_limits::set_cpus(std::string_view list) {
    std::vector<int> numbers;
    std::string_view rest = list;
    do {
        const int first = take_cpu(rest);
        const int last = take(rest, '-') ? take_cpu(rest) : first;
        if (first < 0 || last < first)
            refuse_cpus(list);
        for (int cpu = first; cpu <= last; ++cpu)
            numbers.push_back(cpu);
        if (numbers.size() > std::size_t{last_cpu} + 1)  // some more than once
            refuse_cpus(list);
    } while (take(rest, ','));
    if (!rest.empty())
        refuse_cpus(list);
    set_cpus(std::move(numbers));
}

void worker_limits::set_cpus(std::vector<int> list) {
    if (list.empty())
        throw std::invalid_argument("cohort: cpus: the list is empty");
    for (const int cpu : list)
        require_within("cpus", cpu, 0, last_cpu);
    std::ranges::sort(list);
    const auto twice = std::ranges::unique(list);
    list.erase(twice.begin(), twice.end());
    cpus = cpu_choice{std::move(list)};
}

void worker_limits::set_argv0(std::string name) {
    if (name.empty())
        throw std::invalid_argument("cohort: argv0: the name is empty");
    require_no_nul(name, "the name of argv0");
    argv0 = std::move(name);
}

void worker_limits::override_by(const worker_limits& over) {
    for (const auto& [which, values] : over.resources)
        resources.insert_or_assign(which, values);
    override_one(nice, over.nice);
    override_one(io_priority, over.io_priority);
    batch_scheduling |= over.batch_scheduling;
    override_one(cpus, over.cpus);
    override_one(oom_score_adj, over.oom_score_adj);
    no_new_privileges |= over.no_new_privileges;
    session |= over.session;
    override_one(argv0, over.argv0);
}

}  // namespace cohort::detail::inline v0_1
