// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/limits.hpp>
#include <cohort/detail/placement.hpp>

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace cohort::detail::inline v0_1 {

namespace {

void require_within(const char* setter, int value, int lowest, int highest) {
    if (value < lowest || value > highest)
        throw std::invalid_argument(
            fmt::format("cohort: {}: {} is not within {} and {}", setter, value, lowest, highest));
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
    override_one(oom_score_adj, over.oom_score_adj);
    no_new_privileges |= over.no_new_privileges;
    session |= over.session;
    override_one(argv0, over.argv0);
}

}  // namespace cohort::detail::inline v0_1
