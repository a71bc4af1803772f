// SPDX-License-Identifier: BSL-1.0
#include "guard.hpp"

#include <cohort/detail/work.hpp>
#include <cohort/errors.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace options_test {

struct handle {
    int number;
};

}  // namespace options_test

template <>
struct fmt::formatter<options_test::handle> : fmt::formatter<int> {
    auto format(const options_test::handle& h, fmt::format_context& context) const {
        return fmt::formatter<int>::format(h.number, context);
    }
};

namespace options_test {

using cohort::command;
using cohort::options;
using cohort::detail::command_access;
using cohort::detail::options_access;
using namespace std::chrono_literals;
using namespace std::string_literals;

const cohort::detail::group_settings& of(const options& o) { return options_access::settings(o); }
const std::vector<std::string>& argv_of(const command& c) {
    return command_access::program(c).argv;
}

cohort::detail::sink file_at(const char* path) { return cohort::detail::file_at("test", path); }

TEST_CASE("options: the defaults are those of the design") {
    const options defaults;
    const auto& s = of(defaults);
    CHECK(s.nprocs == 1);
    CHECK(s.method == cohort::start_method::spawn);
    CHECK_FALSE(s.daemon);
    CHECK(s.notice_period == 0s);
    CHECK(s.stop_signal == SIGTERM);
    CHECK(s.grace_period == 30s);
    CHECK(s.kill_timeout == 10s);
    CHECK(s.parent_death_signal == SIGKILL);
    CHECK(s.policy == cohort::on_failure::stop_all);
    CHECK(s.success_codes == std::set<int>{0});
    CHECK(s.process_group == cohort::process_group::own);
    CHECK(s.cgroup == cohort::cgroup::automatic);
    CHECK(s.cgroup_directory.empty());
    CHECK(s.error_file);
    CHECK(s.result_limit == std::uint64_t{1} << 30);
    CHECK(s.where == cohort::detail::placement());
}

TEST_CASE("options: every setter is kept, and an int is enough") {
    const options o = options(4)
                          .nprocs(3)
                          .start_method(cohort::start_method::forkserver)
                          .daemon(true)
                          .notice_period(0.5s)
                          .stop_signal(SIGINT)
                          .grace_period(std::chrono::hours::max())
                          .kill_timeout(2min)
                          .parent_death_signal(0)
                          .on_failure(cohort::on_failure::keep_going)
                          .success_codes(3, 0, 255)
                          .process_group(cohort::process_group::inherit)
                          .cgroup(cohort::cgroup::off);
    const auto& s = of(o);
    CHECK(s.nprocs == 3);
    CHECK(s.method == cohort::start_method::forkserver);
    CHECK(s.daemon);
    CHECK(s.notice_period == 500ms);
    CHECK(s.stop_signal == SIGINT);
    CHECK(s.grace_period == std::chrono::steady_clock::duration::max());
    CHECK(s.kill_timeout == 120s);
    CHECK(s.parent_death_signal == 0);
    CHECK(s.policy == cohort::on_failure::keep_going);
    CHECK(s.success_codes == std::set<int>{0, 3, 255});
    CHECK(s.process_group == cohort::process_group::inherit);
    CHECK(s.cgroup == cohort::cgroup::off);

    const options four = 4;
    CHECK(four == options(4));
    CHECK(four != o);
}

TEST_CASE("options: a negative count or duration is refused") {
    CHECK_THROWS_WITH_AS(options(-1), "cohort: nprocs: the number of workers is negative (-1)",
                         std::invalid_argument);
    const options none = 0;
    CHECK(of(none).nprocs == 0);
    CHECK_THROWS_AS(options().notice_period(-1ns), std::invalid_argument);
    CHECK_THROWS_AS(options().grace_period(-0.1s), std::invalid_argument);
    CHECK_THROWS_AS(options().kill_timeout(std::chrono::hours::min()), std::invalid_argument);
    const std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
    CHECK_THROWS_AS(options().grace_period(nan), std::invalid_argument);
}

TEST_CASE("options: the cgroup's directory is an absolute path, and the last one given counts") {
    const auto placed = options().cgroup(cohort::cgroup::off).cgroup("/sys/fs/cgroup/mine");
    CHECK(of(placed).cgroup_directory == "/sys/fs/cgroup/mine");
    CHECK(placed == options().cgroup(std::filesystem::path("/sys/fs/cgroup/mine")));
    CHECK(options(placed).cgroup(cohort::cgroup::automatic) == options());
    CHECK_THROWS_WITH_AS(options().cgroup("mine"),
                         "cohort: cgroup: \"mine\" is not an absolute path", std::invalid_argument);
    CHECK_THROWS_AS(options().cgroup(""), std::invalid_argument);
    CHECK_THROWS_AS(options().cgroup(std::string("/a\0b", 4)), std::invalid_argument);
}

TEST_CASE("options: a number that is no signal or no exit code is refused") {
    CHECK_THROWS_WITH_AS(options().stop_signal(0),
                         "cohort: stop_signal: 0 is not a signal number (1 to 64)",
                         std::invalid_argument);
    CHECK_THROWS_AS(options().stop_signal(65), std::invalid_argument);
    CHECK_THROWS_AS(options().parent_death_signal(-1), std::invalid_argument);
    CHECK_THROWS_AS(options().parent_death_signal(65), std::invalid_argument);
    CHECK_NOTHROW(options().stop_signal(SIGKILL).stop_signal(64).parent_death_signal(64));
    CHECK_THROWS_WITH_AS(options().success_codes(0, 256),
                         "cohort: success_codes: 256 is not an exit code (0 to 255)",
                         std::invalid_argument);
    CHECK_THROWS_AS(options().success_codes(-1), std::invalid_argument);
}

TEST_CASE("options: a variable that no environment can hold is refused") {
    CHECK_THROWS_AS(options().env("", "v"), std::invalid_argument);
    CHECK_THROWS_AS(options().env("A=B", "v"), std::invalid_argument);
    CHECK_THROWS_AS(options().env("A\0B"s, "v"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().env("A", "v\0w"s),
                         "cohort: the value of the variable A, \"v\", has a NUL at position 1",
                         std::invalid_argument);
    CHECK_THROWS_AS(options().unset_env(""), std::invalid_argument);
    CHECK_THROWS_AS(options().unset_env("A=B"), std::invalid_argument);
    const char* null = nullptr;
    CHECK_THROWS_AS(options().env("A", null), std::invalid_argument);
}

TEST_CASE("options: a path that is empty or has a NUL is refused") {
    const auto bad = "a\0b"s;
    for (const auto& path : {""s, bad}) {
        CHECK_THROWS_AS(options().working_directory(path), std::invalid_argument);
        CHECK_THROWS_AS(options().stdin_from(path), std::invalid_argument);
        CHECK_THROWS_AS(options().stdout_to(path), std::invalid_argument);
        CHECK_THROWS_AS(options().stderr_to(path), std::invalid_argument);
    }
    CHECK_THROWS_WITH_AS(options().stdout_to(""), "cohort: stdout_to: the path is empty",
                         std::invalid_argument);
}

TEST_CASE("options: the environment's changes are kept in order, and clear_env forgets them") {
    const auto o = options().env("A", 1).unset_env("B").env("C", std::filesystem::path("/x"));
    const auto& env = of(o).where.env;
    REQUIRE(env.size() == 3);
    CHECK(env[0] == cohort::detail::env_change{"A", "1"});
    CHECK(env[1] == cohort::detail::env_change{"B", std::nullopt});
    CHECK(env[2] == cohort::detail::env_change{"C", "/x"});

    const auto cleared = options().env("A", 1).clear_env().env("D", true);
    CHECK(of(cleared).where.clear_env);
    CHECK(of(cleared).where.env ==
          std::vector<cohort::detail::env_change>{{"D", std::string("true")}});
}

TEST_CASE("options: a descriptor is duplicated at the call and closed with the last copy") {
    cohort::test::leak_guard guard;
    const int ours = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    REQUIRE(ours >= 0);
    {
        options copy;
        {
            const auto o = options().fd(ours, 1).fd(ours, 40);
            copy = o;
        }
        ::close(ours);
        const auto& descriptors = of(copy).where.descriptors;
        REQUIRE(descriptors.size() == 2);
        const int held = *descriptors.at(40);
        CHECK(held > 2);
        CHECK(held != *descriptors.at(1));
        CHECK((::fcntl(held, F_GETFD) & FD_CLOEXEC) != 0);
    }
    CHECK(guard.leftovers(0ms) == "");
}

TEST_CASE("options: a descriptor that is not open, or has no place in the worker, is refused") {
    cohort::test::leak_guard guard;
    try {
        options().fd(987654, 3);
        FAIL("no exception");
    } catch (const std::system_error& error) {
        CHECK(error.code().value() == EBADF);
        CHECK(std::string(error.what()) == "cohort: fd: descriptor 987654: Bad file descriptor");
    }
    CHECK_THROWS_AS(options().fd(-1, 3), std::system_error);
    CHECK_THROWS_WITH_AS(options().fd(0, -1),
                         "cohort: fd: the worker's descriptor number is negative (-1)",
                         std::invalid_argument);
}

TEST_CASE("options: a command's settings override those of the options") {
    const auto o = options().env("A", 1).env("B", 2).working_directory("/o").stdout_to("o");
    const auto& base = of(o).where;
    const command c = command("x").env("B", 3).unset_env("C").stderr_to("c");
    const auto both = base.overridden_by(command_access::program(c).where);
    CHECK(both.env == std::vector<cohort::detail::env_change>{
                          {"A", "1"}, {"B", "2"}, {"B", "3"}, {"C", std::nullopt}});
    CHECK(both.working_directory == "/o");
    CHECK(both.sinks.at(1) == std::vector{file_at("o")});
    CHECK(both.sinks.at(2) == std::vector{file_at("c")});

    const command cleared = command("x").clear_env().env("D", 4).working_directory("/c");
    const auto fresh = base.overridden_by(command_access::program(cleared).where);
    CHECK(fresh.clear_env);
    CHECK(fresh.env == std::vector<cohort::detail::env_change>{{"D", "4"}});
    CHECK(fresh.working_directory == "/c");
}

TEST_CASE("options: a command takes text, paths and whatever fmt formats") {
    const std::string_view view = "view";
    command c("python3", "train.py", std::string("text"), view, 0.1, 7, true, 'c', handle{5});
    c.arg(std::filesystem::path("/a b")).args(std::vector<int>{1, 2}).args(std::set<std::string>{});
    CHECK(argv_of(c) == std::vector<std::string>{"python3", "train.py", "text", "view", "0.1", "7",
                                                 "true", "c", "5", "/a b", "1", "2"});
    CHECK(argv_of(command(std::filesystem::path("/bin/ls")))[0] == "/bin/ls");
    const char* pointer = "p";
    CHECK(argv_of(command("x", pointer))[1] == "p");
    CHECK(argv_of(command("x", ""))[1].empty());
}

TEST_CASE("options: copies of a command are independent, of constants and of variables") {
    command c("a", 1);
    command of_variable(c);
    const command of_constant(static_cast<const command&>(c));
    CHECK(argv_of(of_variable).size() == 2);
    CHECK(of_variable == c);
    CHECK(of_constant == c);
    of_variable.arg(2);
    CHECK(of_variable != c);
    static_assert(!std::is_convertible_v<const char*, command>);
}

TEST_CASE("options: an empty program name and a NUL are refused") {
    CHECK_THROWS_AS(command(""), std::invalid_argument);
    CHECK_THROWS_AS(command("a\0b"s), std::invalid_argument);
    CHECK_THROWS_WITH_AS(command("a", "x\0y"s),
                         "cohort: an argument of a command, \"x\", has a NUL at position 1",
                         std::invalid_argument);
    const char* null = nullptr;
    CHECK_THROWS_AS(command("a", null), std::invalid_argument);
    CHECK_THROWS_AS(command{null}, std::invalid_argument);
}

TEST_CASE("options: one command serves all workers, command_for makes one for each, in order") {
    const auto one = cohort::detail::make_plan(command("a", "b"), 4);
    CHECK(one.settings.nprocs == 4);
    REQUIRE(one.programs.size() == 1);
    CHECK(one.programs[0].argv == std::vector<std::string>{"a", "b"});

    std::vector<int> called;
    const auto make = [&called](int index) {
        called.push_back(index);
        return command("a", index).env("I", index);
    };
    const auto each = cohort::detail::make_plan(cohort::command_for(make), 3);
    CHECK(called == std::vector<int>{0, 1, 2});
    REQUIRE(each.programs.size() == 3);
    CHECK(each.programs[2].argv[1] == "2");
    CHECK(each.programs[2].where.env[0].value == "2");
    CHECK(cohort::detail::make_plan(cohort::command_for(make), 0).programs.empty());
}

TEST_CASE("options: the callable of command_for may change its state, and its exception leaves the "
          "call") {
    auto counting = [n = 0](int) mutable {
        if (++n == 3)
            throw std::out_of_range("three");
        return command("a", n);
    };
    const auto work = cohort::command_for(counting);
    CHECK(cohort::detail::make_plan(work, 1).programs[0].argv[1] == "1");
    CHECK_THROWS_AS(cohort::detail::make_plan(work, 3), std::out_of_range);
}

TEST_CASE("options: a closure needs start_method::fork") {
    using cohort::start_method;
    const auto closure = cohort::closure([](int index) { return index; });
    for (const auto method : {start_method::spawn, start_method::forkserver}) {
        try {
            cohort::detail::make_plan(closure, options().start_method(method));
            FAIL("no exception");
        } catch (const cohort::spawn_error& error) {
            CHECK(error.code() == std::errc::not_supported);
            CHECK(error.stage() == "start_method");
            CHECK(error.error_index() == -1);
        }
    }
    const auto plan =
        cohort::detail::make_plan(closure, options().start_method(start_method::fork));
    CHECK(plan.call);
    CHECK(plan.function == nullptr);
}

TEST_CASE("options: result_limit takes any integer but a negative one") {
    CHECK(of(options().result_limit(0)).result_limit == 0);
    CHECK(of(options().result_limit(std::uint64_t{1} << 40)).result_limit == std::uint64_t{1}
                                                                                 << 40);
    CHECK_THROWS_WITH_AS(options().result_limit(-1), "cohort: result_limit: negative",
                         std::invalid_argument);
}

TEST_CASE("options: variables by which the library tells a worker its place cannot be changed") {
    for (const std::string name :
         {"COHORT_INDEX", "COHORT_SIZE", "COHORT_HOST", "COHORT_ERROR_FILE",
          "TORCHELASTIC_ERROR_FILE"}) {
        const auto text = "cohort: the variable " + name +
                          " is set by the library for each worker: it can be neither set nor unset";
        CHECK_THROWS_WITH_AS(options().env(name, 1), text.c_str(), std::invalid_argument);
        CHECK_THROWS_WITH_AS(options().unset_env(name), text.c_str(), std::invalid_argument);
        CHECK_THROWS_WITH_AS(command("true").env(name, 1), text.c_str(), std::invalid_argument);
    }
    CHECK_NOTHROW(options().env("LOCAL_RANK", 7).unset_env("LOCAL_WORLD_SIZE"));
}

}  // namespace options_test
