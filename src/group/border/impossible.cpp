// SPDX-License-Identifier: BSL-1.0
#include "group/border/impossible.hpp"

#include "base/sys/credentials.hpp"
#include "base/sys/descriptors.hpp"
#include "group/lifecycle/schedule.hpp"
#include "share/sync/barrier.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
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

[[noreturn]] void refuse_confinement(const char* what) {
    throw spawn_error({EPERM, std::system_category()},
                      fmt::format("confine before the first start of a group, or all threads at "
                                  "once: the calling thread has {} that the threads of the library "
                                  "do not have, so its workers would be less confined than it is",
                                  what),
                      -1, "confinement");
}

/// A namespace that can't be read is not compared.
void refuse_other(const char* name, unsigned long starters) {
    const auto own = starters == 0 ? 0 : base::namespace_of(base::own_proc, name);
    if (own != starters && own != 0)
        refuse_confinement("a namespace");
}

/// @throws spawn_error  /proc can't be read, because no descriptor is left
template <class Count>
int filters(Count count) {
    errno = 0;
    const int found = count();
    if (found == base::some_filters && (errno == EMFILE || errno == ENFILE))
        refuse(errno, "reading a thread's status in /proc");
    return found;
}

void refuse_filters(const base::known_thread& starter) {
    const int own = filters([] { return base::own_filters(); });
    if (own == 0)
        return;
    // Kept: a filter is never taken off.
    static constinit std::atomic<int> known{0};
    if (own > 0 && own <= known)
        return;
    const int others = filters([&] { return starter.filters(); });
    if (others > known)
        known = others;
    const bool can_compare = own > 0 && others >= 0;
    if (can_compare ? others < own : !starter.had_filter)
        refuse_confinement("a filter of system calls (seccomp)");
}

void refuse_files(const base::known_thread& starter) {
    for (const auto* name : {"mnt", "uts", "ipc", "cgroup", "pid_for_children", "user"})
        refuse_other(name, starter.proc.empty() ? 0 : base::namespace_of(starter.proc, name));
    if (!starter.has_own_root())
        refuse_confinement("a root directory");
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

void refuse_confined(const base::known_thread& starter, bool shares_files) {
    refuse_filters(starter);
    refuse_other("net", starter.net);
    // The other links in /proc cost microseconds each, so they are read only where a thread has
    // left the directory of the others: who makes a mount namespace does.
    if (!shares_files)
        refuse_files(starter);
}

void refuse_at_exit(const loop::runtime& runtime) {
    if (runtime.exiting())
        throw spawn_error({ESHUTDOWN, std::system_category()},
                          "spawn was called while the program exits", -1, "exit");
}

}  // namespace cohort::detail::inline v0_1
