// SPDX-License-Identifier: BSL-1.0
// Texts that other programs read or that users know: byte for byte as they were.
#include "hosts_values_ends.hpp"
#include "scratch.hpp"
#include "source_files.hpp"

#include <cohort/host_errors.hpp>
#include <cohort/json.hpp>
#include <cohort/launchers.hpp>
#include <cohort/options.hpp>
#include <cohort/pool_options.hpp>
#include <cohort/sinks.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace golden_test {

using namespace cohort;
using namespace cohort::test;
using namespace std::chrono_literals;
using namespace std::string_literals;
using access = detail::outcome_access;

namespace {

/// Compares `text` with the file tests/unit/golden/`name`, line by line. With COHORT_WRITE_GOLDEN
/// in the environment the text becomes the file: then look at the difference by git.
void check_golden(const char* name, const std::string& text) {
    const auto file = root / "tests/unit/golden" / name;
    if (std::getenv("COHORT_WRITE_GOLDEN") != nullptr)
        std::ofstream(file) << text;
    std::istringstream wanted(read_file(file.string()));
    std::istringstream found(text);
    std::string wanted_line;
    for (std::string line; std::getline(found, line); wanted_line.clear()) {
        std::getline(wanted, wanted_line);
        CHECK(line == wanted_line);
    }
    CHECK_FALSE(std::getline(wanted, wanted_line));
}

outcome an_outcome(int index, int attempt) {
    auto made = some_outcome(index, attempt);
    made.host = "node03";
    made.out = some_text("out \u00e9\n");
    made.err = some_text("err");
    made.started_at = std::chrono::system_clock::time_point(1'795'000'000'123ms);
    made.ended_at = made.started_at + 5s;
    return made;
}

process_exception::outcome_list outcomes() {
    std::vector<outcome> all{an_outcome(0, 1), an_outcome(1, 0), outcome()};
    all[0].restarted = true;
    all[0].history = {an_outcome(0, 0)};
    all[0].history[0].status = exit_status::from_code(3);
    all[1].cause = cause::exited;
    all[1].status = exit_status::from_code(0);
    access::has_parents_memory(all[1]) = false;
    return std::make_shared<const std::vector<outcome>>(std::move(all));
}

std::string refusal_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("golden: the JSON of reports and records") {
    std::string text;
    const auto add = [&](const std::string& line) { text += line + "\n"; };
    const auto all = outcomes();
    add(to_json(process_exception("worker 1 failed", 1, 4711, all)));
    add(to_json(group_stopped(all)));
    add(to_json(group_timed_out(all, 1500ms)));
    add(to_json(host_lost("host node03 was lost: no beat for 10 s", 0, 4711, all, "node03")));
    add(to_json(process_raised_exception("worker 0 raised", 0, 4711, all, some_error())));
    add(to_json(
        process_exited_exception("worker 1 exited", 1, 4711, all, exit_status::from_code(3))));
    add(to_json(process_exited_exception("worker 1 was killed", 1, 4711, all,
                                         exit_status::from_signal(11, true))));
    check_golden("records.jsonl", text);
}

#define COHORT_ROW(call)                                                                           \
    {                                                                                              \
#call, [] { call; }                                                                        \
    }

TEST_CASE("golden: the sentences of settings that are refused") {
    const struct {
        const char* text;
        std::function<void()> call;
    } rows[] = {
        COHORT_ROW(options(-1)),
        COHORT_ROW(options().per_host(0)),
        COHORT_ROW(options().at_once(0)),
        COHORT_ROW(options().notice_period(-1ns)),
        COHORT_ROW(options().grace_period(-0.1s)),
        COHORT_ROW(options().kill_timeout(std::numeric_limits<double>::quiet_NaN() * 1s)),
        COHORT_ROW(options().time_limit(-1s)),
        COHORT_ROW(options().worker_time_limit(-1s)),
        COHORT_ROW(options().flush_timeout(-1s)),
        COHORT_ROW(options().stop_signal(0)),
        COHORT_ROW(options().parent_death_signal(65)),
        COHORT_ROW(options().success_codes(0, 256)),
        COHORT_ROW(options().cgroup("mine")),
        COHORT_ROW(options().cgroup("/a\0b"s)),
        COHORT_ROW(options().name("")),
        COHORT_ROW(options().name("a\0b"s)),
        COHORT_ROW(options().pipe_size(0)),
        COHORT_ROW(options().pipe_size(-1)),
        COHORT_ROW(options().result_limit(-1)),
        COHORT_ROW(options().group_memory_max(0)),
        COHORT_ROW(options().group_cpu_max(0)),
        COHORT_ROW(options().nice(20)),
        COHORT_ROW(options().oom_score_adj(-1001)),
        COHORT_ROW(options().io_priority(io_class::best_effort, 8)),
        COHORT_ROW(options().limit(resource::core, -1)),
        COHORT_ROW(options().limit(resource::core, 5, 4)),
        COHORT_ROW(options().timer_slack(0ns)),
        COHORT_ROW(options().timer_slack(-1ns)),
        COHORT_ROW(options().user(-1, 0)),
        COHORT_ROW(options().argv0("")),
        COHORT_ROW(options().argv0("a\0b"s)),
        COHORT_ROW(options().cpus("0-x")),
        COHORT_ROW(options().cpus(std::vector<int>())),
        COHORT_ROW(options().cpus({70'000})),
        COHORT_ROW(options().executable("")),
        COHORT_ROW(options().executable("job")),
        COHORT_ROW(options().memory_max(0)),
        COHORT_ROW(options().cpu_max(-1)),
        COHORT_ROW(options().tasks_max(0)),
        COHORT_ROW(options().working_directory("")),
        COHORT_ROW(options().working_directory("a\0b"s)),
        COHORT_ROW(options().umask(01000)),
        COHORT_ROW(options().env("", 1)),
        COHORT_ROW(options().env("A=B", 1)),
        COHORT_ROW(options().env("A\0B"s, 1)),
        COHORT_ROW(options().env("A", "v\0w"s)),
        COHORT_ROW(options().env("COHORT_INDEX", 1)),
        COHORT_ROW(options().env("COHORT_SHARED_X", 1)),
        COHORT_ROW(options().unset_env("A=B")),
        COHORT_ROW(options().stdin_from("")),
        COHORT_ROW(options().stdout_to("")),
        COHORT_ROW(options().stdout_to(merge())),
        COHORT_ROW(options().stdout_to(inherit(), capture())),
        COHORT_ROW(options().stderr_to(capture(), capture())),
        COHORT_ROW(options().stderr_to(lines(), chunks())),
        COHORT_ROW(options().fd(0, -1)),
        COHORT_ROW(command("")),
        COHORT_ROW(command("x", "a\0b"s)),
        COHORT_ROW(restarts(-1)),
        COHORT_ROW(restarts(1).backoff(2s, 1s)),
        COHORT_ROW(restarts(1).jitter(2)),
        COHORT_ROW(pool_options(0)),
        COHORT_ROW(pool_options(1).at_least(-1)),
        COHORT_ROW(pool_options(1).queue(0)),
        COHORT_ROW(pool_options(1).ready_within(0s)),
        COHORT_ROW(pool_options(1).task_deadline(0s)),
    };
    std::string text;
    for (const auto& [call, run] : rows)
        text += std::string(call) + "\n    " + refusal_of(run) + "\n";
    check_golden("sentences.txt", text);
}

}  // namespace golden_test
