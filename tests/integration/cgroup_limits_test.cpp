// SPDX-License-Identifier: BSL-1.0
// What a worker and a group may use, limited by their cgroups: where the kernel has the controllers
// for a directory that these tests can make. Else the start says which file is missing.
#include "cgroup_support.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cgroup_limits_test {

using namespace cohort::test;
namespace fs = std::filesystem;

namespace {

struct limit {
    const char* controller;
    const char* file;
    std::function<void(cohort::options&)> set;
};

const std::vector<limit> of_workers{
    {"memory", "memory.max", [](cohort::options& o) { o.memory_max(64 << 20); }},
    {"cpu", "cpu.max", [](cohort::options& o) { o.cpu_max(1.5); }},
    {"pids", "pids.max", [](cohort::options& o) { o.tasks_max(50); }},
};
const std::vector<limit> of_groups{
    {"memory", "memory.max", [](cohort::options& o) { o.group_memory_max(64 << 20); }},
    {"cpu", "cpu.max", [](cohort::options& o) { o.group_cpu_max(1.5); }},
};

bool has_controller(const fs::path& cgroup, const std::string& name) {
    std::istringstream names(read_file(cgroup / "cgroup.controllers"));
    for (std::string each; names >> each;)
        if (each == name)
            return true;
    return false;
}

std::set<std::string> workers_in(const std::string& cgroup) {
    std::set<std::string> names;
    for (const auto& each : fs::directory_iterator(cgroup))
        if (each.is_directory())
            names.insert(each.path().filename());
    return names;
}

void sleeps(int) {
    say_ready();
    sleep_until_killed();
}

/// The file of the only group's cgroup in `place`, or of its worker's.
std::string read_limit(const scratch_cgroup& place, const std::string& inner) {
    const auto groups = place.group_cgroups();
    return groups.size() == 1 ? read_file(place.path() + "/" + *groups.begin() + inner)
                              : "not one group";
}

/// Starts workers with the limit, and looks at the file while they live.
void check_limit(const limit& one, const std::string& inner, const std::string& wanted) {
    if (!has_cgroups())
        return;
    const scratch_cgroup place;
    if (!has_controller(place.path(), one.controller))
        return skip(fmt::format("{}/cgroup.controllers lacks {}", place.path(), one.controller));
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        auto how = by(method).cgroup(place.path());
        one.set(how);
        asio::io_context io;
        auto group = start_ready(io, cohort::function<sleeps>(), 2, how);
        CHECK(read_limit(place, inner) == wanted);
        run_coroutine(
            io, [](cohort::group& g) -> asio::awaitable<void> { (void)co_await g.stop(); }(group));
    }
}

}  // namespace

TEST_CASE("cgroup limits: a limit without a cgroup fails the start and names the file") {
    have_server();
    const leak_guard guard;
    for (const auto* all : {&of_workers, &of_groups})
        for (const auto& one : *all) {
            CAPTURE(one.file);
            auto how = cohort::options(2).cgroup(cohort::cgroup::off);
            one.set(how);
            const auto check = [&](const cohort::spawn_error& e) {
                CHECK(e.stage() == "cgroup");
                CHECK(e.code() == std::errc::not_supported);
                CHECK(std::string(e.what()).starts_with(
                    std::string(one.file) + ": the group has no cgroup, see options::cgroup(): "));
            };
            check(thrown_by<cohort::spawn_error>(cohort::command("true"), how));
            for (const auto method : all_methods)
                check(thrown_by<cohort::spawn_error>(cohort::function<do_nothing>(),
                                                     cohort::options(how).start_method(method)));
        }
}

TEST_CASE("cgroup limits: a controller that is missing is told with the file that lacks it") {
    if (!has_cgroups())
        return;
    const scratch_cgroup place;
    const leak_guard guard;
    for (const auto* all : {&of_workers, &of_groups})
        for (const auto& one : *all) {
            CAPTURE(one.file);
            if (has_controller(place.path(), one.controller))
                continue;
            auto how = cohort::options(2).cgroup(place.path());
            one.set(how);
            const auto error = thrown_by<cohort::spawn_error>(cohort::command("true"), how);
            CHECK(error.stage() == "cgroup");
            CHECK(error.code() == std::errc::not_supported);
            CHECK(std::string(error.what())
                      .starts_with(fmt::format(
                          "the controller {} is not in {}/cgroup.controllers: ", one.controller,
                          place.path())));
            CHECK(place.group_cgroups().empty());
        }
}

TEST_CASE("cgroup limits: capabilities() says which of them will work") {
    const auto limits = cohort::capabilities().limits;
    const leak_guard guard;
    for (const auto& one : of_workers) {
        CAPTURE(one.file);
        cohort::options how(1);
        one.set(how);
        bool works = true;
        try {
            (void)ended(cohort::command("true"), how);
        } catch (const cohort::spawn_error& e) {
            works = false;
            CHECK(limits.reason != "");
        }
        CHECK(works == (limits.tier.find(one.controller) != std::string::npos));
    }
}

TEST_CASE("cgroup limits: a limit of a command alone needs a cgroup as well") {
    const leak_guard guard;
    const auto error = thrown_by<cohort::spawn_error>(
        cohort::command("true").tasks_max(5), cohort::options(1).cgroup(cohort::cgroup::off));
    CHECK(error.stage() == "cgroup");
    CHECK(std::string(error.what()).starts_with("pids.max: "));
}

TEST_CASE("cgroup limits: each worker has its memory, without swap") {
    check_limit(of_workers[0], "/worker-1/memory.max", "67108864\n");
}

TEST_CASE("cgroup limits: each worker has its time of CPUs") {
    check_limit(of_workers[1], "/worker-1/cpu.max", "150000 100000\n");
}

TEST_CASE("cgroup limits: each worker has its number of tasks") {
    check_limit(of_workers[2], "/worker-1/pids.max", "50\n");
}

TEST_CASE("cgroup limits: the cgroup of a worker goes with it, also if its start has failed") {
    if (!has_cgroups())
        return;
    const scratch_cgroup place;
    if (!has_controller(place.path(), "pids"))
        return skip(place.path() + "/cgroup.controllers lacks pids");
    const leak_guard guard;
    const auto make = [](int index) {
        return index == 39       ? cohort::command("sleep", "1000")
               : index % 10 == 9 ? cohort::command("cohort-no-such-program")
                                 : cohort::command("true");
    };
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command_for(make),
                        cohort::options(40)
                            .at_once(3)
                            .on_failure(cohort::on_failure::keep_going)
                            .cgroup(place.path())
                            .tasks_max(10),
                        started.into());
    run_out(io);
    auto group = started.take();
    for (int ended = 0; ended < 39; ++ended)
        run_coroutine(io, [](cohort::group& g) -> asio::awaitable<void> {
            CHECK(static_cast<bool>(co_await g.next()));
        }(group));
    // They are removed a moment later, by another thread.
    const auto groups = place.group_cgroups();
    REQUIRE(groups.size() == 1);
    const auto inner = place.path() + "/" + *groups.begin();
    const watchdog guarded;
    while (workers_in(inner) != std::set<std::string>{"worker-39"})
        std::this_thread::yield();
    run_coroutine(
        io, [](cohort::group& g) -> asio::awaitable<void> { (void)co_await g.stop(); }(group));
}

TEST_CASE("cgroup limits: a group has its memory") {
    check_limit(of_groups[0], "/memory.max", "67108864\n");
}

TEST_CASE("cgroup limits: a group has its time of CPUs") {
    check_limit(of_groups[1], "/cpu.max", "150000 100000\n");
}

}  // namespace cgroup_limits_test
