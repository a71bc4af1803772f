// SPDX-License-Identifier: BSL-1.0
#include "start/cgroup/cgroup_usage.hpp"

#include "base/sys/processes.hpp"

#include <sstream>
#include <string>

namespace cohort::start {
namespace {

template <class Number>
std::optional<Number> first_number(int directory, const char* file) {
    std::istringstream in(base::read_text(file, directory));
    Number number = 0;
    return in >> number ? std::optional(number) : std::nullopt;
}

/// The value of a line such as "usage_usec 12".
std::optional<std::int64_t> number_after(const std::string& wanted, int directory,
                                         const char* file) {
    std::istringstream in(base::read_text(file, directory));
    std::string key;
    for (std::int64_t value = 0; in >> key >> value;)
        if (key == wanted)
            return value;
    return std::nullopt;
}

}  // namespace

cgroup_usage usage_of_cgroup(int directory) {
    cgroup_usage usage;
    if (const auto time = number_after("usage_usec", directory, "cpu.stat"))
        usage.cpu_time = std::chrono::microseconds(*time);
    usage.memory = first_number<std::uint64_t>(directory, "memory.current");
    usage.tasks = first_number<int>(directory, "pids.current");
    return usage;
}

}  // namespace cohort::start
