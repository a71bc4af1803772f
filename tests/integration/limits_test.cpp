// SPDX-License-Identifier: BSL-1.0
// What a worker may use: set before it begins, by every way to start it.
#include "methods.hpp"
#include "start_support.hpp"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace limits_test {

using namespace cohort::test;
using cohort::io_class;
using cohort::resource;

namespace {

constexpr const char* ways[] = {"command", "spawn", "fork", "forkserver"};
constexpr int idle_class = 3;
constexpr int best_effort_class = 2;

/// What a worker sees of its limits.
using seen = std::map<std::string, std::int64_t>;

int number_in(const char* path) {
    int number = 0;
    std::ifstream(path) >> number;
    return number;
}

seen see(int) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    return {{"soft", static_cast<std::int64_t>(files.rlim_cur)},
            {"hard", static_cast<std::int64_t>(files.rlim_max)},
            {"nice", ::getpriority(PRIO_PROCESS, 0)},
            {"io", ::syscall(SYS_ioprio_get, 1, 0)},
            {"scheduling", ::sched_getscheduler(0)},
            {"timer slack", ::prctl(PR_GET_TIMERSLACK)},
            {"oom", number_in("/proc/self/oom_score_adj")},
            {"no new privileges", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)},
            {"leads its session", ::getsid(0) == ::getpid()},
            {"leads its group", ::getpgrp() == ::getpid()}};
}

std::string name_of(int) {
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    return name;
}

template <class Function>
auto result_by(cohort::start_method method, Function work, cohort::options how) {
    const auto report = ended(std::move(work), how.start_method(method));
    REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
    return report.outcomes.at(0);
}

/// The two numbers of a line of /proc/PID/limits.
std::string limits_in(const std::string& text, std::string_view name) {
    for (const auto& line : lines_of(text))
        if (line.starts_with(name)) {
            std::istringstream numbers(line.substr(name.size()));
            std::string soft, hard;
            numbers >> soft >> hard;
            return soft + " " + hard;
        }
    return "none";
}

cohort::options with_all() {
    return cohort::options(1)
        .limit(resource::open_files, 400, 500)
        .nice(7)
        .io_priority(io_class::idle)
        .batch_scheduling()
        .timer_slack(std::chrono::milliseconds(3))
        .oom_score_adj(500)
        .no_new_privileges()
        .session();
}

}  // namespace

TEST_CASE("limits: a function has what the options say, by every start method") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        const seen found =
            result_by(method, cohort::function<see>(), with_all()).template result<seen>();
        CHECK(found == seen{{"soft", 400},
                            {"hard", 500},
                            {"nice", 7},
                            {"io", idle_class << 13},
                            {"scheduling", SCHED_BATCH},
                            {"timer slack", 3'000'000},
                            {"oom", 500},
                            {"no new privileges", 1},
                            {"leads its session", 1},
                            {"leads its group", 1}});
    }
}

TEST_CASE("limits: a function without settings has what its caller has") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        auto found = result_by(method, cohort::function<see>(), 1).template result<seen>();
        auto ours = see(0);
        for (auto* each : {&found, &ours})
            for (const auto* of_process : {"leads its session", "leads its group"})
                each->erase(of_process);
        CHECK(found == ours);
    }
}

TEST_CASE("limits: a command has each of the limits of setrlimit") {
    const leak_guard guard;
    const struct {
        resource which;
        const char* name;
        std::uint64_t soft;
    } all[] = {
        {resource::core, "Max core file size", 4096},
        {resource::cpu_time, "Max cpu time", 1000},
        {resource::file_size, "Max file size", 1 << 20},
        {resource::address_space, "Max address space", std::uint64_t{1} << 45},
        {resource::data, "Max data size", std::uint64_t{1} << 40},
        {resource::stack, "Max stack size", 4 << 20},
        {resource::open_files, "Max open files", 300},
        {resource::processes, "Max processes", 5000},
        {resource::locked_memory, "Max locked memory", 1 << 16},
    };
    cohort::command cat("cat", "/proc/self/limits");
    for (const auto& each : all)
        cat.limit(each.which, each.soft, each.soft + 1);
    const auto text = printed_by(cat);
    for (const auto& each : all) {
        CAPTURE(each.name);
        CHECK(limits_in(text, each.name) ==
              std::to_string(each.soft) + " " + std::to_string(each.soft + 1));
    }
}

TEST_CASE("limits: one number is the soft limit and the hard one") {
    const leak_guard guard;
    const auto text = printed_by(cohort::command("cat", "/proc/self/limits"),
                                 cohort::options(1).limit(resource::open_files, 200));
    CHECK(limits_in(text, "Max open files") == "200 200");
}

TEST_CASE("limits: a command's stand over those of the options, the others stay") {
    const leak_guard guard;
    const auto how = with_all();
    const cohort::command work("sh", "-c",
                               "nice; cat /proc/self/oom_score_adj; ulimit -Sn; ulimit -Hn");
    CHECK(printed_by(work, how) == "7\n500\n400\n500\n");
    CHECK(printed_by(cohort::command(work).nice(9).limit(resource::open_files, 100), how) ==
          "9\n500\n100\n100\n");
}

TEST_CASE("limits: each command has its own") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto make = [&](int index) {
        return cohort::command("nice").nice(index).stdout_to(directory.file("{index}"));
    };
    CHECK(ended(cohort::command_for(make), 4).success());
    for (int index = 0; index < 4; ++index)
        CHECK(read_file(directory.file(std::to_string(index))) == std::to_string(index) + "\n");
}

TEST_CASE("limits: a level of reads and writes is that of its class") {
    const leak_guard guard;
    const auto how = cohort::options(1).io_priority(io_class::best_effort, 6);
    CHECK(result_by(cohort::start_method::spawn, cohort::function<see>(), how)
              .result<seen>()
              .at("io") == (best_effort_class << 13 | 6));
}

TEST_CASE("limits: a worker with a session of its own is stopped as ever") {
    const leak_guard guard;
    const auto text =
        printed_by(cohort::command("sh", "-c", "cut -d' ' -f1,5,6 /proc/self/stat"),
                   cohort::options(1).session().process_group(cohort::process_group::inherit));
    std::istringstream numbers(text);
    std::string own, group, session;
    numbers >> own >> group >> session;
    CHECK(group == session);
    CHECK(session != std::to_string(::getsid(0)));
}

TEST_CASE("limits: argv0 is the name by which a program is called") {
    have_server();
    const leak_guard guard;
    CHECK(printed_by(cohort::command("sh", "-c", "echo $0; tr '\\0' ' ' < /proc/$$/cmdline")
                         .argv0("my shell")) ==
          "my shell\nmy shell -c echo $0; tr '\\0' ' ' < /proc/$$/cmdline ");
    for (const auto method : all_methods) {
        CAPTURE(method);
        const auto how = cohort::options(1).argv0("a_name_of_more_than_15_bytes");
        CHECK(result_by(method, cohort::function<name_of>(), how).template result<std::string>() ==
              "a_name_of_more_");
    }
}

TEST_CASE("limits: a limit ends the worker that goes beyond it, and the outcome says how") {
    const leak_guard guard;
    const auto error = thrown_by<cohort::process_exited_exception>(
        cohort::command("sh", "-c", "while :; do :; done"),
        cohort::options(1).limit(resource::cpu_time, 1, 2).limit(resource::core, 0));
    CHECK(error.signal_name() == "SIGXCPU");
}

TEST_CASE("limits: one that the kernel refuses fails the start, by every start method") {
    have_server();
    const leak_guard guard;
    const auto check = [](const cohort::spawn_error& e) {
        CHECK(e.stage() == "limit");
        CHECK(e.code() == std::errc::operation_not_permitted);
        CHECK(e.error_index() == 0);
        CHECK(std::string(e.what()) ==
              "setrlimit(open_files, 10, unlimited): Operation not permitted (worker 0)");
    };
    // More than fs.nr_open, which not even root may have.
    const auto how = cohort::options(3).limit(resource::open_files, 10, RLIM_INFINITY);
    check(thrown_by<cohort::spawn_error>(cohort::command("true"), how));
    for (const auto method : all_methods) {
        CAPTURE(method);
        check(thrown_by<cohort::spawn_error>(cohort::function<do_nothing>(),
                                             cohort::options(how).start_method(method)));
    }
}

TEST_CASE("limits: what an ordinary user may not have is told by its stage") {
    if (::geteuid() != 0)
        return skip("needs root, to become another user");
    const leak_guard guard;
    const std::pair<const char*, const char*> told[] = {
        {"nice", "nice: setpriority(-5): Permission denied (worker 0)"},
        {"io_priority", "io_priority: ioprio_set(realtime, 0): Operation not permitted (worker 0)"},
        {"batch", "well"},
        {"oom_score_adj", "oom_score_adj: writing -500 to /proc/self/oom_score_adj: Permission "
                          "denied (worker 0)"},
        {"limit", "limit: setrlimit(open_files, unlimited): Operation not permitted (worker 0)"},
        {"groups", "groups: setgroups(5): Operation not permitted (worker 0)"},
        {"other user", "user: user(30000, 30000): without CAP_KILL the group could not stop a "
                       "worker of that user: Operation not permitted (worker 0)"},
        {"nobody", "user: user(65534, 65534): setgroups: Operation not permitted (worker 0)"},
    };
    std::string wanted;
    for (const auto& [name, text] : told)
        for (const auto* way : ways)
            wanted += fmt::format("{}, {}: {}\n", name, way, text);
    CHECK(printed_by(cohort::command(COHORT_PROGRAM_LIMITED_HOST, "user"),
                     cohort::options(1).env("COHORT_FORCE", forced_tiers())) == wanted);
}

TEST_CASE("limits: a user whose workers the group could not stop is refused") {
    if (::geteuid() != 0)
        return skip("needs root, to become another user");
    const leak_guard guard;
    const auto told = printed_by(cohort::command(COHORT_PROGRAM_LIMITED_HOST, "no_kill"),
                                 cohort::options(1).env("COHORT_FORCE", forced_tiers()));
    if (told.starts_with("skip: "))
        return skip(told.substr(6));
    for (const std::string way : ways) {
        CHECK(told.find("groups, " + way + ": well\n") != told.npos);
        CHECK(told.find("nobody, " + way + ": user: user(65534, 65534): without CAP_KILL ") !=
              told.npos);
    }
}

TEST_CASE("limits: a system call that a filter denies is told by its stage") {
    const leak_guard guard;
    const auto told = printed_by(cohort::command(COHORT_PROGRAM_LIMITED_HOST, "filter"),
                                 cohort::options(1).env("COHORT_FORCE", forced_tiers()));
    if (told.starts_with("skip: "))
        return skip(told.substr(6));
    for (const std::string way : ways) {
        CHECK(told.find("nice, " + way + ": nice: setpriority(-5): Operation not permitted") !=
              told.npos);
        CHECK(told.find("io_priority, " + way + ": io_priority: ioprio_set(realtime, 0): ") !=
              told.npos);
        CHECK(told.find("batch, " + way + ": scheduling: sched_setscheduler(SCHED_BATCH): ") !=
              told.npos);
    }
}

}  // namespace limits_test
