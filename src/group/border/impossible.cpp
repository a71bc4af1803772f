// SPDX-License-Identifier: BSL-1.0
#include "group/border/impossible.hpp"

#include "base/sys/descriptors.hpp"
#include "group/lifecycle/schedule.hpp"
#include "share/sync/barrier.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>

namespace cohort::detail::inline v0_1 {

namespace {

/// Of more than these the outcomes alone would take gigabytes.
constexpr int most_workers = 1'000'000;

/// So few are not counted here.
constexpr int few_workers = 10'000;

[[noreturn]] void refuse(int error, const std::string& text) {
    throw spawn_error({error, std::system_category()}, text, -1, "limit");
}

}  // namespace

void refuse_impossible(const spawn_plan& plan) {
    const auto& s = plan.settings;
    const int at_once = groups::schedule::first(s.nprocs, s.at_once);
    // Each worker needs a record and a pidfd at least; the start counts exactly.
    const auto needed = 2 * static_cast<std::uint64_t>(at_once);
    if (const auto limit = base::descriptor_limit();
        !s.machines && at_once > few_workers && needed > limit)
        refuse(EMFILE, fmt::format("{} workers need {} descriptors, the limit is {}", at_once,
                                   needed, limit));
    if (s.nprocs > most_workers)
        refuse(E2BIG,
               fmt::format("a group of {} workers, the limit is {}", s.nprocs, most_workers));
    // A barrier waits for all its parties.
    const bool all_meet = at_once == s.nprocs && !s.restarts;
    if (all_meet || share::barriers_among(plan.attachments).empty())
        return;
    if (s.restarts)
        throw std::invalid_argument("cohort: workers that start again can't share a barrier, which "
                                    "is broken for ever when one of them ends");
    throw std::invalid_argument(fmt::format(
        "cohort: {} workers of which {} run at once can't share a barrier", s.nprocs, at_once));
}

void refuse_at_exit(const loop::runtime& runtime) {
    if (runtime.exiting())
        throw spawn_error({ESHUTDOWN, std::system_category()},
                          "spawn was called while the program exits", -1, "exit");
}

}  // namespace cohort::detail::inline v0_1
