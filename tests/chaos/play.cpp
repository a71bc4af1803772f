// SPDX-License-Identifier: BSL-1.0
#include "play.hpp"

#include "sanitizers.hpp"

#include <fmt/format.h>

namespace chaos {

namespace {

constexpr const char* deed_names[] = {"succeeds", "fails", "recovers", "kills itself",
                                      "sleeps",   "obeys", "ignores",  "is missing"};
constexpr const char* finish_names[] = {"stop", "drop", "cancel", "join", "join with a timeout",
                                        "wait", "next"};

/// A deed that ends by itself is more likely, because workers that wait have no turn else.
deed deed_of_play(random_numbers& random, bool may_be_missing) {
    if (random.chance(60))
        return static_cast<deed>(random.below(4));
    return static_cast<deed>(4 + random.below(may_be_missing ? 4 : 3));
}

/// The stop token of a function needs a thread.
bool can_obey(const group_plan& group) {
    const bool is_copy =
        group.what == work_kind::function && group.method == cohort::start_method::fork;
    return !is_copy || !cohort::test::under_tsan;
}

restart_plan restarts_of_play(random_numbers& random) {
    restart_plan how;
    how.most = random.below(4);
    how.first_ms = random.below(6);
    how.jitter_percent = random.chance(50) ? random.below(100) : 0;
    if (random.chance(30)) {
        how.within_ms = 1 + random.below(200);
        how.most = random.below(60);
        // Without end, but no more attempts than a history keeps, which are 100.
        how.first_ms = 8 + random.below(8);
        how.jitter_percent = 0;
    }
    if (random.chance(35))
        how.scope = cohort::restart_scope::all;
    if (random.chance(20))
        how.after = cohort::restart_on::always;
    how.longest_ms = how.first_ms + random.below(10);
    return how;
}

}  // namespace

play::play(std::uint64_t seed) {
    random_numbers random(seed);
    group.seed = seed;
    group.what = random.chance(50) ? work_kind::command : work_kind::function;
    group.method = static_cast<cohort::start_method>(random.below(3));
    group.at_once = random.chance(70) ? 1 + random.below(8) : 0;
    group.size = 1 + random.below(group.at_once > 0 ? 30 : 8);
    group.grace_ms = random.chance(20) ? 0 : 50;
    group.notice_ms = random.chance(20) ? random.below(20) : 0;
    group.keeps_going = random.chance(50);
    group.output = static_cast<output_kind>(random.below(3));
    if (random.chance(25))
        group.limit_ms = 1 + random.below(40);
    if (random.chance(25))
        group.worker_limit_ms = 1 + random.below(20);
    if (random.chance(70))
        group.restarts = restarts_of_play(random);
    const bool may_be_missing = group.what == work_kind::command && group.at_once > 0;
    even = deed_of_play(random, may_be_missing);
    odd = deed_of_play(random, may_be_missing);
    group.lacks_programs = even == deed::is_missing || odd == deed::is_missing;
    for (auto* does : {&even, &odd})
        if (*does == deed::obeys && !can_obey(group))
            *does = deed::sleeps;
    has_logs = random.chance(20);
    reports_stacks = random.chance(20);
    by = static_cast<finish>(random.below(7));
    after_us = random.below(30'000);
    group.is_watched = by != finish::drop && by != finish::next && random.chance(50);
}

/// The workers that start with the group must have a program, else the start fails.
deed play::deed_of(int index) const {
    const auto does = index % 2 == 0 ? even : odd;
    return does == deed::is_missing && index < group.at_once ? deed::succeeds : does;
}

std::string play::text() const {
    return fmt::format("{}{}{}; even workers: {}, odd ones: {}; {} after {} us", describe(group),
                       has_logs ? ", with logs" : "", reports_stacks ? ", with stacks" : "",
                       deed_names[static_cast<int>(even)], deed_names[static_cast<int>(odd)],
                       finish_names[static_cast<int>(by)], after_us);
}

}  // namespace chaos
