// SPDX-License-Identifier: BSL-1.0
#include "plan.hpp"

#include "sanitizers.hpp"

#include <fmt/format.h>

namespace chaos {

namespace {

constexpr const char* kinds[] = {"nested", "function", "command"};
constexpr const char* methods[] = {"spawn", "fork", "forkserver"};
constexpr const char* behaviours[] = {"obeys",   "ignores", "is stopped",
                                      "is busy", "returns", "fails"};
constexpr const char* companies[] = {
    "",
    ", with a child that obeys",
    ", with a child that ignores",
    ", with a child that is stopped",
    ", with a child that is busy",
    ", with a daemon",
};

template <class Enum>
const char* name(const auto& names, Enum value) {
    return names[static_cast<int>(value)];
}

group_plan group_of(dice& thrown, std::uint64_t seed, int levels, limits allowed) {
    group_plan group;
    group.seed = seed;
    group.method = static_cast<cohort::start_method>(thrown.below(3));
    group.notice_ms = thrown.percent(20) ? thrown.below(50) : 0;
    group.grace_ms = 50 + thrown.below(250);
    group.leaf = !allowed.leafless || thrown.percent(70);
    if (levels > 1 && thrown.percent(75)) {
        group.what = kind::nested;
        if (!cohort::test::groups_in_copies && group.method == cohort::start_method::fork)
            group.method = cohort::start_method::spawn;
        group.width = 1 + thrown.below(2);
        return group;
    }
    group.what = thrown.percent(60) ? kind::function : kind::command;
    group.width = 1 + thrown.below(4);
    group.daemonic = thrown.percent(10);
    group.inherits = thrown.percent(10);
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

}  // namespace

std::uint64_t dice::next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

int dice::below(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }

std::uint64_t part_of(std::uint64_t seed, int part) {
    return dice(seed + 0x632be59bd9b4e019 * static_cast<std::uint64_t>(part + 1)).next();
}

std::vector<group_plan> groups_of(std::uint64_t seed, int levels, limits allowed) {
    dice thrown(seed);
    std::vector<group_plan> groups;
    const int count = 1 + thrown.below(2);
    for (int i = 0; i < count; ++i)
        // At most one group goes deeper, so that the tree does not overload the machine.
        groups.push_back(group_of(thrown, part_of(seed, i), i == 0 ? levels : 1, allowed));
    return groups;
}

worker_plan worker_of(const group_plan& group, int index, limits allowed) {
    worker_plan worker;
    worker.seed = part_of(group.seed, index);
    dice thrown(worker.seed);
    worker.does = behaviour_of(thrown.below(100));
    const auto with = static_cast<company>(thrown.below(6));
    if (group.inherits)
        return worker;
    const bool may = with == company::daemon ? allowed.daemons && group.leaf : allowed.children;
    if (may && thrown.percent(60))
        worker.with = with;
    return worker;
}

bool groups_last(std::uint64_t seed, int levels, limits allowed) {
    for (const auto& group : groups_of(seed, levels, allowed))
        for (int index = 0; index < group.width; ++index) {
            const auto worker = worker_of(group, index, allowed);
            if (group.what == kind::nested ? groups_last(worker.seed, levels - 1, allowed)
                                           : worker.does != behaviour::returns)
                return true;
        }
    return false;
}

std::string describe(std::uint64_t seed, int levels, limits allowed, int indent) {
    std::string text;
    for (const auto& group : groups_of(seed, levels, allowed)) {
        text += fmt::format("{:{}}{} of {} ({}{}{}{}), {} ms\n", "", indent, group.width,
                            name(kinds, group.what), name(methods, group.method),
                            group.daemonic ? ", daemonic" : "", group.leaf ? "" : ", cgroup off",
                            group.inherits ? ", process group inherited" : "", group.grace_ms);
        for (int index = 0; index < group.width; ++index) {
            const auto worker = worker_of(group, index, allowed);
            if (group.what == kind::nested)
                text += describe(worker.seed, levels - 1, allowed, indent + 4);
            else
                text += fmt::format("{:{}}{}{}\n", "", indent + 4, name(behaviours, worker.does),
                                    name(companies, worker.with));
        }
    }
    return text;
}

}  // namespace chaos
