// SPDX-License-Identifier: BSL-1.0
#include "round.hpp"

#include "process_tree.hpp"
#include "procfs.hpp"
#include "round_actions.hpp"
#include "sanitizers.hpp"
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

constexpr const char* target_names[] = {"host", "worker", "any process", "fork server", "guardian"};

target_kind target_of(int percent) {
    if (percent < 35)
        return target_kind::host;
    if (percent < 65)
        return target_kind::worker;
    if (percent < 83)
        return target_kind::any_process;
    return percent < 91 ? target_kind::fork_server : target_kind::guardian;
}

std::string status_text(const std::optional<int>& status) {
    if (!status)
        return "not reaped";
    return WIFSIGNALED(*status) ? fmt::format("signal {}", WTERMSIG(*status))
                                : fmt::format("exit code {}", WEXITSTATUS(*status));
}

/// All living processes with the mark, in the tree or not.
std::string processes_with(const std::string& mark) {
    std::string found;
    for (const auto& [pid, process] : cohort::test::all_processes())
        if (process.state != 'Z' && cohort::test::has_in_environment(pid, mark))
            found += "    " + cohort::test::describe(process) + "\n";
    return found;
}

std::set<std::string> cgroups_in(const std::string& cgroup) {
    auto names = cgroup.empty() ? std::set<std::string>() : cohort::test::names_in(cgroup);
    std::erase_if(names, [&](const auto& name) { return !fs::is_directory(cgroup + "/" + name); });
    return names;
}

}  // namespace

promises promises_here(std::string cgroup) {
    const auto host = cohort::capabilities();
    return {host.parent_death.tier.find("guardian") != std::string::npos,
            host.tree.tier.starts_with("cgroup"), std::move(cgroup)};
}

round_plan::round_plan(std::uint64_t seed, const promises& promised) {
    random_numbers random(seed);
    tree_seed = random.next();
    levels = 1 + random.below(3);
    first_target = target_of(random.below(100));
    // With a guardian any process may be killed. Without a guardian only the host itself can end
    // what is in its groups' cgroups, so half of these rounds do not kill the host.
    const bool guarded = promised.has_guardian && first_target != target_kind::guardian;
    if (!guarded && promised.has_cgroups && first_target != target_kind::host)
        spares_host = random.chance(50);
    allowed.children = guarded || spares_host;
    allowed.daemons = allowed.children && promised.has_cgroups;
    allowed.cgroup_off = guarded;
    after_roles = random.chance(50);
    moment = after_roles ? 1 + random.below(8) : random.below(30'000);
    action_seed = random.next();
}

std::string round_plan::text() const {
    return fmt::format("the {} is killed after {} {}{}; the tree:\n{}",
                       target_names[static_cast<int>(first_target)], moment,
                       after_roles ? "reported roles" : "microseconds",
                       spares_host ? ", the host is not" : "",
                       describe(tree_seed, levels, allowed));
}

std::string round_runner::end_host(process_tree& tree, const round_plan& plan) {
    const round_actions done(tree, plan);
    const auto begin = clock::now();
    std::string wrong;
    if (!tree.await_end(bound))
        wrong = "processes are left:\n" + tree.listing();
    else if (!tree.role_pipe_is_closed())
        wrong = "a process holds the role pipe\n";
    longest_ms_ = std::max<long>(
        longest_ms_, std::chrono::duration_cast<milliseconds>(clock::now() - begin).count());
    ++counts_[fmt::format("{}{}", done.found_target() ? "" : "no ",
                          target_names[static_cast<int>(plan.first_target)])];
    ++counts_["host: " + status_text(tree.host_status())];
    for (const auto& [pid, role] : tree.roles())
        if (role.starts_with(broken))
            wrong += fmt::format("{} says: {}\n", pid, role);
    const bool right = tree.host_status() && done.expects(*tree.host_status());
    if (!right)
        wrong += "the host should not have ended so\n";
    if (!wrong.empty())
        wrong += fmt::format("the host: {}, {}; {}\n", tree.host(), status_text(tree.host_status()),
                             done.text());
    return wrong;
}

std::string round_runner::remove_cgroups(const std::string& directory, const std::string& output,
                                         const std::string& mark) {
    if (cgroups_in(promised_.cgroup).empty())
        return {};
    ++counts_["cgroups left to the next start"];
    for (const auto until = clock::now() + bound; clock::now() < until;) {
        process_tree cleanup({"cleanup"}, directory, output, mark);
        if (!cleanup.await_end(bound))
            return "the host that cleans up hangs:\n" + cleanup.listing();
        if (cgroups_in(promised_.cgroup).empty())
            return {};
    }
    return fmt::format("cgroups are left after another start: {}\n",
                       fmt::join(cgroups_in(promised_.cgroup), " "));
}

std::string round_runner::run(std::uint64_t seed) {
    const round_plan plan(seed, promised_);
    const cohort::test::scratch_directory directory;
    const auto temporary = directory.file("tmp");
    const auto output = directory.file("output");
    fs::create_directory(temporary);
    const auto mark = fmt::format("COHORT_CHAOS_ROUND={}-{}", ::getpid(), ++last_round_);
    const auto descriptors = cohort::test::open_descriptors();
    std::string wrong;
    {
        process_tree tree({"host", std::to_string(plan.tree_seed), std::to_string(plan.levels),
                           std::to_string(plan.allowed.as_number())},
                          temporary, output, mark);
        wrong = end_host(tree, plan);
    }
    if (const auto left = processes_with(mark); !left.empty())
        wrong += "processes have escaped:\n" + left;
    wrong += remove_cgroups(temporary, output, mark);
    for (const auto& name : cohort::test::names_in(temporary))
        if (!cohort::test::is_tsan_file(name))
            wrong += fmt::format("a file is left: {}/{}\n", temporary, name);
    if (cohort::test::open_descriptors() != descriptors)
        wrong += "the test has other descriptors than before\n";
    if (!wrong.empty())
        wrong += plan.text() + cohort::test::read_file(output);
    return wrong;
}

std::string round_runner::statistics() const {
    std::string text;
    for (const auto& [what, count] : counts_)
        text += fmt::format("{}: {}; ", what, count);
    return text + fmt::format("longest end: {} ms", longest_ms_);
}

}  // namespace chaos
