// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

// Plans for the tests of what hosts tell each other.
namespace cohort::test {

/// Makes plans by chance. One that changes everything leaves no member at its default.
class plan_maker {
public:
    explicit plan_maker(unsigned seed, bool changes_all) : random_(seed), all_(changes_all) {}

    /// Without a function; its commands are one, or one for each worker.
    detail::spawn_plan of_commands(int workers) {
        detail::spawn_plan plan;
        plan.settings = settings(workers);
        const int programs = one() ? workers : 1;
        for (int i = 0; i < programs; ++i)
            plan.programs.push_back({texts(), placement()});
        if (one())
            for (int i = 0; i < workers; ++i)
                plan.placements.push_back(placement());
        if (one())
            plan.work = text();
        plan.results_carry = one();
        if (one())
            plan.told = detail::numbering{number(1, 9), 10};
        return plan;
    }

    detail::group_settings settings(int workers) {
        using std::chrono::nanoseconds;
        detail::group_settings made;
        made.nprocs = workers;
        made.at_once = one() ? number(1, 8) : 0;
        if (one())
            made.restarts = detail::restart_settings{
                number(1, 9),       some_span(),       span(), span(), number(1, 9) * 0.1,
                restart_scope::all, restart_on::always};
        if (one())
            made.method = start_method::forkserver;
        made.daemon = one();
        made.crash_record = !one();
        made.stack_on_stop = one();
        made.error_file = !one();
        made.result_limit -= one() ? 5 : 0;
        made.notice_period = span();
        made.stop_signal = one() ? number(1, 14) : SIGTERM;
        made.grace_period = span();
        made.kill_timeout = span();
        made.parent_death_signal = one() ? number(0, 8) : SIGKILL;
        if (one())
            made.policy = on_failure::keep_going;
        made.time_limit = some_span();
        made.worker_time_limit = some_span();
        if (one())
            made.success_codes = {0, number(1, 255)};
        if (one())
            made.process_group = process_group::inherit;
        if (one())
            made.cgroup = cgroup::off;
        made.cgroup_directory = one() ? "/sys/" + text() : "";
        if (one())
            made.group_memory_max = number(1, 1'000'000);
        if (one())
            made.group_cpu_max = number(1, 64) / 4.0;
        made.name = one() ? text() : "";
        made.flush_timeout = span();
        made.pipe_size = one() ? 65'536 : 0;
        if (one())
            made.logs = detail::log_settings{text(), text()};
        made.where = placement();
        return made;
    }

    detail::placement placement() {
        detail::placement made;
        made.clear_env = one();
        if (one()) {
            made.set_variable("A", text());
            made.unset_variable("B" + std::to_string(number(0, 9)));
        }
        if (one())
            made.working_directory = "/" + text();
        if (one())
            made.umask = 027;
        if (one())
            made.sinks[1] = {file(), detail::capture_sink{1, 2, 3},
                             detail::lines_sink{{4, true}, when_full::block, 5}, console()};
        if (one())
            made.sinks[2] = {other()};
        if (one())
            made.input = input();
        made.limits = limits();
        return made;
    }

private:
    detail::worker_limits limits() {
        detail::worker_limits made;
        if (one())
            made.resources = {{resource::core, {1, 2}},
                              {resource::locked_memory, {3, ~std::uint64_t{0}}}};
        if (one())
            made.nice = number(-20, 19);
        if (one())
            made.io_priority = detail::io_priority_choice{io_class::idle, number(0, 7)};
        made.batch_scheduling = one();
        if (one())
            made.timer_slack = 1'000;
        if (one())
            made.cpus = detail::cpu_choice{{1, 5}};
        if (one())
            made.oom_score_adj = number(-1000, 1000);
        if (one())
            made.user = detail::user_choice{"user(\"nobody\")", 65'534, 65'533, {1, 2}};
        if (one())
            made.groups = std::vector<gid_t>{7};
        made.no_new_privileges = one();
        made.session = one();
        if (one())
            made.argv0 = text();
        if (one())
            made.executable = "/" + text();
        if (one())
            made.memory_max = number(1, 1'000'000);
        if (one())
            made.cpu_max = 0.5;
        if (one())
            made.tasks_max = number(1, 100);
        return made;
    }
    detail::file_sink file() {
        return {text(), true, 4096, number(1, 4), "{index}: ", true, when_full::drop_oldest};
    }
    detail::console_sink console() {
        return {text(), std::nullopt, nullptr, when_full::drop_oldest};
    }
    detail::sink other() {
        switch (number(0, 4)) {
        case 0:
            return detail::inherit_sink();
        case 1:
            return detail::discard_sink();
        case 2:
            return detail::merge_sink();
        case 3:
            return detail::capture_sink();
        default:
            return detail::chunks_sink{{6, true}, when_full::block};
        }
    }
    detail::input input() {
        switch (number(0, 2)) {
        case 0:
            return detail::path_input{"/" + text()};
        case 1:
            return detail::feed_input();
        default:
            return detail::bytes_input{std::make_shared<const std::string>(text() + '\0')};
        }
    }

    bool one() { return all_ || random_() % 2 == 0; }
    int number(int lowest, int highest) {
        return std::uniform_int_distribution(lowest, highest)(random_);
    }
    std::chrono::steady_clock::duration span() {
        return std::chrono::nanoseconds(number(1, 1'000'000'000));
    }
    std::optional<std::chrono::steady_clock::duration> some_span() {
        return one() ? std::optional(span()) : std::nullopt;
    }
    /// Any bytes but NULs, also such as are no UTF-8.
    std::string text() {
        std::string made;
        for (int left = number(1, 30); left > 0; --left)
            made += static_cast<char>(number(1, 255));
        return made;
    }
    std::vector<std::string> texts() { return {text(), "", text()}; }

    std::mt19937 random_;
    bool all_;
};

}  // namespace cohort::test
