// SPDX-License-Identifier: BSL-1.0
#include "round.hpp"

#include "course.hpp"
#include "family.hpp"
#include "procfs.hpp"
#include "scratch.hpp"

#include <cohort/capabilities.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace chaos {

namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

/// Far more than any round needs: a longer one hangs.
constexpr milliseconds bound{60'000};

constexpr const char* victims[] = {"host", "worker", "anybody", "fork server", "guardian"};

victim victim_of(int percent) {
    if (percent < 35)
        return victim::host;
    if (percent < 65)
        return victim::worker;
    if (percent < 83)
        return victim::anybody;
    return percent < 91 ? victim::server : victim::guardian;
}

std::string told(const std::optional<int>& status) {
    if (!status)
        return "not reaped";
    return WIFSIGNALED(*status) ? fmt::format("signal {}", WTERMSIG(*status))
                                : fmt::format("exit code {}", WEXITSTATUS(*status));
}

/// All living processes with the mark, in the tree or not.
std::string marked(const std::string& mark) {
    std::string found;
    for (const auto& [pid, process] : cohort::test::all_processes())
        if (process.state != 'Z' && cohort::test::has_in_environment(pid, mark))
            found += "    " + cohort::test::describe(process) + "\n";
    return found;
}

std::string new_names(const std::string& directory, const std::set<std::string>& before,
                      const std::set<std::string>& after) {
    std::string text;
    for (const auto& name : after)
        if (!before.contains(name))
            text += fmt::format("a file is left: {}/{}\n", directory, name);
    return text;
}

/// Only names of the library count, because other programs make files in /dev/shm too.
std::set<std::string> shared_memory() {
    auto names = cohort::test::names_in("/dev/shm");
    std::erase_if(names, [](const auto& name) { return name.find("cohort") == name.npos; });
    return names;
}

std::set<std::string> leaves_in(const std::string& cgroup) {
    auto names = cgroup.empty() ? std::set<std::string>() : cohort::test::names_in(cgroup);
    std::erase_if(names, [&](const auto& name) { return !fs::is_directory(cgroup + "/" + name); });
    return names;
}

}  // namespace

promises promises_here(std::string cgroup) {
    const auto host = cohort::capabilities();
    return {host.parent_death.best(), host.tree.tier.starts_with("cgroup"), std::move(cgroup)};
}

round_plan::round_plan(std::uint64_t seed, const promises& promised) {
    dice thrown(seed);
    tree = thrown.next();
    levels = 1 + thrown.below(3);
    who = victim_of(thrown.below(100));
    // With a guardian any process may be killed. Without a guardian only the host itself can end
    // what is in its groups' cgroups, so half of these rounds spare the host.
    const bool guarded = promised.guardian && who != victim::guardian;
    if (!guarded && promised.leaves && who != victim::host)
        spares_host = thrown.percent(50);
    allowed.children = guarded || spares_host;
    allowed.daemons = allowed.children && promised.leaves;
    allowed.leafless = guarded;
    after_lines = thrown.percent(50);
    moment = after_lines ? 1 + thrown.below(8) : thrown.below(30'000);
    rest = thrown.next();
}

std::string round_plan::text() const {
    return fmt::format("the {} is killed after {} {}{}; the tree:\n{}",
                       victims[static_cast<int>(who)], moment,
                       after_lines ? "lines on the roster" : "microseconds",
                       spares_host ? ", the host is not" : "", describe(tree, levels, allowed));
}

std::string arena::end_host(family& tree, const round_plan& plan) {
    const course done(tree, plan);
    const auto begin = clock::now();
    std::string wrong;
    if (!tree.await_end(bound))
        wrong = "processes are left:\n" + tree.listing();
    else if (!tree.roster_is_closed())
        wrong = "somebody holds the roster\n";
    longest_ms_ = std::max<long>(
        longest_ms_, std::chrono::duration_cast<milliseconds>(clock::now() - begin).count());
    ++counts_[fmt::format("{}{}", done.found_victim() ? "" : "no ",
                          victims[static_cast<int>(plan.who)])];
    ++counts_["host: " + told(tree.host_status())];
    const bool right = tree.host_status() && done.expects(*tree.host_status());
    if (!right)
        wrong += "the host should not have ended so\n";
    if (!wrong.empty())
        wrong += fmt::format("the host: {}, {}; {}\n", tree.host(), told(tree.host_status()),
                             done.text());
    return wrong;
}

std::string arena::remove_leaves(const std::string& directory, const std::string& output,
                                 const std::string& mark) {
    if (leaves_in(promised_.cgroup).empty())
        return {};
    ++counts_["cgroups left to the next start"];
    for (const auto until = clock::now() + bound; clock::now() < until;) {
        family sweeper({"sweeper"}, directory, output, mark);
        if (!sweeper.await_end(bound))
            return "the sweeper hangs:\n" + sweeper.listing();
        if (leaves_in(promised_.cgroup).empty())
            return {};
    }
    return fmt::format("cgroups are left after another start: {}\n",
                       fmt::join(leaves_in(promised_.cgroup), " "));
}

std::string arena::play(std::uint64_t seed) {
    const round_plan plan(seed, promised_);
    const cohort::test::scratch_directory directory;
    const auto temporary = directory.file("tmp");
    const auto output = directory.file("output");
    fs::create_directory(temporary);
    const auto mark = fmt::format("COHORT_CHAOS_ROUND={}-{}", ::getpid(), ++played_);
    const auto shared = shared_memory();
    const auto descriptors = cohort::test::open_descriptors();
    std::string wrong;
    {
        family tree({"host", std::to_string(plan.tree), std::to_string(plan.levels),
                     std::to_string(plan.allowed.as_number())},
                    temporary, output, mark);
        wrong = end_host(tree, plan);
    }
    if (const auto left = marked(mark); !left.empty())
        wrong += "processes have escaped:\n" + left;
    wrong += remove_leaves(temporary, output, mark);
    wrong += new_names(temporary, {}, cohort::test::names_in(temporary)) +
             new_names("/dev/shm", shared, shared_memory());
    if (cohort::test::open_descriptors() != descriptors)
        wrong += "the judge has other descriptors than before\n";
    if (!wrong.empty())
        wrong += plan.text() + cohort::test::read_file(output);
    return wrong;
}

std::string arena::statistics() const {
    std::string text;
    for (const auto& [what, count] : counts_)
        text += fmt::format("{}: {}; ", what, count);
    return text + fmt::format("longest end: {} ms", longest_ms_);
}

}  // namespace chaos
