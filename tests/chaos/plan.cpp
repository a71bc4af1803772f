// SPDX-License-Identifier: BSL-1.0
#include "plan.hpp"

#include "sanitizers.hpp"

#include <fmt/format.h>

namespace chaos {

namespace {

constexpr const char* kind_names[] = {"nested", "function", "command"};
constexpr const char* method_names[] = {"spawn", "fork", "forkserver"};
constexpr const char* output_names[] = {"", ", captured", ", with lines that nobody reads"};
constexpr const char* behaviour_names[] = {"obeys",   "ignores", "is stopped",
                                           "is busy", "returns", "fails"};
constexpr const char* extra_process_texts[] = {
    "",
    ", with a child that obeys",
    ", with a child that ignores",
    ", with a child that is stopped",
    ", with a child that is busy",
    ", with a daemon",
};

constexpr int most_restarts = 3;

template <class Enum>
const char* name(const auto& names, Enum value) {
    return names[static_cast<int>(value)];
}

void make_batch(group_plan& group, random_numbers& random) {
    if (group.what == work_kind::nested) {
        group.at_once = 1;
        return;
    }
    group.at_once = 1 + random.below(3);
    group.size = group.at_once + 1 + random.below(8);
}

void limit_times(group_plan& group, random_numbers& random) {
    if (random.chance(20))
        group.limit_ms = 50 + random.below(950);
    if (random.chance(25)) {
        group.worker_limit_ms = 50 + random.below(250);
        group.keeps_going = random.chance(50);
    }
}

void restart_workers(group_plan& group, random_numbers& random) {
    group.is_watched = random.chance(50);
    if (!random.chance(25))
        return;
    auto& how = group.restarts.emplace();
    how.most = 1 + random.below(most_restarts);
    if (random.chance(40))
        how.scope = cohort::restart_scope::all;
    if (random.chance(30))
        how.after = cohort::restart_on::always;
    how.longest_ms = random.chance(50) ? random.below(6) : 0;
    how.first_ms = random.below(how.longest_ms + 1);
}

group_plan group_of(random_numbers& random, std::uint64_t seed, int levels, limits allowed) {
    group_plan group;
    group.seed = seed;
    group.method = static_cast<cohort::start_method>(random.below(3));
    group.notice_ms = random.chance(20) ? random.below(50) : 0;
    group.grace_ms = 50 + random.below(250);
    group.has_cgroup = !allowed.cgroup_off || random.chance(70);
    group.output = static_cast<output_kind>(random.below(3));
    limit_times(group, random);
    restart_workers(group, random);
    const bool is_batch = random.chance(40);
    if (levels > 1 && random.chance(75)) {
        group.what = work_kind::nested;
        if (!cohort::test::groups_in_copies && group.method == cohort::start_method::fork)
            group.method = cohort::start_method::spawn;
        group.size = 1 + random.below(2);
        if (is_batch)
            make_batch(group, random);
        return group;
    }
    group.what = random.chance(60) ? work_kind::function : work_kind::command;
    group.size = 1 + random.below(4);
    if (is_batch)
        make_batch(group, random);
    group.daemonic = random.chance(10);
    group.inherits_process_group = random.chance(10);
    return group;
}

behaviour behaviour_of(int percent) {
    if (percent < 35)
        return behaviour::obeys;
    if (percent < 60)
        return behaviour::ignores;
    if (percent < 75)
        return behaviour::is_stopped;
    if (percent < 87)
        return behaviour::is_busy;
    return percent < 98 ? behaviour::returns : behaviour::fails;
}

/// Of most workers of a batch: else those that wait would have no turn. Also of some that start
/// again.
behaviour brief_behaviour(int percent) {
    return percent < 93 ? behaviour::returns : behaviour::fails;
}

}  // namespace

std::uint64_t random_numbers::next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

int random_numbers::below(int count) {
    return static_cast<int>(next() % static_cast<std::uint64_t>(count));
}

std::uint64_t derived_seed(std::uint64_t seed, int part) {
    return random_numbers(seed + 0x632be59bd9b4e019 * static_cast<std::uint64_t>(part + 1)).next();
}

std::vector<group_plan> groups_of(std::uint64_t seed, int levels, limits allowed) {
    random_numbers random(seed);
    std::vector<group_plan> groups;
    const int count = 1 + random.below(2);
    for (int i = 0; i < count; ++i)
        // At most one group goes deeper, so that the tree does not overload the machine.
        groups.push_back(group_of(random, derived_seed(seed, i), i == 0 ? levels : 1, allowed));
    return groups;
}

bool has_pool(std::uint64_t seed) { return random_numbers(derived_seed(seed, -1)).chance(25); }

worker_plan worker_of(const group_plan& group, int index, limits allowed) {
    worker_plan worker;
    worker.seed = derived_seed(group.seed, index);
    random_numbers random(worker.seed);
    const int brief_percent = group.at_once > 0 ? 80 : group.restarts ? 40 : 0;
    worker.does = random.chance(brief_percent) ? brief_behaviour(random.below(100))
                                               : behaviour_of(random.below(100));
    if (group.restarts)
        worker.failing = random.below(1 << (most_restarts + 1));
    const auto extra = static_cast<extra_process>(random.below(6));
    if (group.inherits_process_group)
        return worker;
    const bool may =
        extra == extra_process::daemon ? allowed.daemons && group.has_cgroup : allowed.children;
    if (may && random.chance(60))
        worker.extra = extra;
    return worker;
}

bool has_lasting_worker(std::uint64_t seed, int levels, limits allowed) {
    for (const auto& group : groups_of(seed, levels, allowed))
        for (int index = 0; index < group.size; ++index) {
            const auto worker = worker_of(group, index, allowed);
            if (group.what == work_kind::nested
                    ? has_lasting_worker(worker.seed, levels - 1, allowed)
                    : worker.does != behaviour::returns)
                return true;
        }
    return false;
}

namespace {

std::string describe_attempts(const worker_plan& worker) {
    std::string text;
    for (int attempt = 0; attempt <= most_restarts; ++attempt)
        if (fails_in(worker.failing, attempt))
            text += fmt::format(", fails in attempt {}", attempt);
    return text;
}

std::string describe_order(const group_plan& group) {
    std::string text;
    if (group.at_once > 0)
        text += fmt::format(", {} at once", group.at_once);
    if (group.limit_ms > 0)
        text += fmt::format(", limited to {} ms", group.limit_ms);
    if (group.worker_limit_ms > 0)
        text += fmt::format(", each to {} ms", group.worker_limit_ms);
    if (group.keeps_going)
        text += ", keeps going";
    if (const auto& how = group.restarts) {
        text += fmt::format(", {} restarts of {} after {} with {} to {} ms", how->most,
                            how->scope == cohort::restart_scope::all ? "all" : "the failed",
                            how->after == cohort::restart_on::always ? "any end" : "a failure",
                            how->first_ms, how->longest_ms);
        if (how->jitter_percent > 0)
            text += fmt::format(" more or less {} %", how->jitter_percent);
        if (how->within_ms > 0)
            text += fmt::format(" within {} ms", how->within_ms);
    }
    return text + (group.is_watched ? ", watched" : "");
}

}  // namespace

std::string describe(const group_plan& group) {
    return fmt::format("{} of {} ({}{}{}{}{}{}), {} ms", group.size, name(kind_names, group.what),
                       name(method_names, group.method), group.daemonic ? ", daemonic" : "",
                       group.has_cgroup ? "" : ", cgroup off",
                       group.inherits_process_group ? ", process group inherited" : "",
                       name(output_names, group.output), describe_order(group), group.grace_ms);
}

std::string describe(std::uint64_t seed, int levels, limits allowed, int indent) {
    std::string text;
    if (has_pool(seed))
        text += fmt::format("{:{}}a pool\n", "", indent);
    for (const auto& group : groups_of(seed, levels, allowed)) {
        text += fmt::format("{:{}}{}\n", "", indent, describe(group));
        for (int index = 0; index < group.size; ++index) {
            const auto worker = worker_of(group, index, allowed);
            if (group.what == work_kind::nested && worker.failing != 0)
                text += fmt::format("{:{}}nested{}\n", "", indent + 4, describe_attempts(worker));
            if (group.what == work_kind::nested)
                text += describe(worker.seed, levels - 1, allowed, indent + 4);
            else
                text +=
                    fmt::format("{:{}}{}{}{}\n", "", indent + 4, name(behaviour_names, worker.does),
                                name(extra_process_texts, worker.extra), describe_attempts(worker));
        }
    }
    return text;
}

}  // namespace chaos
