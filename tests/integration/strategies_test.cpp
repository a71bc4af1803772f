// SPDX-License-Identifier: BSL-1.0
// Sharing strategies: what workers inherit, names in /dev/shm, and who removes them.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "names_support.hpp"
#include "pipes.hpp"
#include "reporter.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace strategies_test {

using namespace cohort::test;
using cohort::shared_array;
using cohort::sharing_strategy;
using cohort::start_method;

namespace {

std::string strategy_of(int) { return to_string(cohort::get_sharing_strategy()); }
void add_three(int, const std::vector<shared_array<int>>& arrays) {
    for (const auto& array : arrays)
        for (int& element : array)
            element += 3;
}
void put_sum(int, const std::vector<shared_array<int>>&, cohort::queue_writer<int> sums) {
    sums.put(1);
}
shared_array<int> make_one(int index) {
    shared_array<int> made(2);
    made(1) = index;
    return made;
}
void add_by_name(int, const std::string& name) { shared_array<int>::attach(name)(0) += 1; }
void holds_by_name(int, const std::string& name) {
    const auto array = shared_array<int>::attach(name);
    say_ready();
    ::pause();
}
void is_killed(int, shared_array<int> array) {
    const shared_array<int> own(100);
    array(0) = own.name().empty() ? 1 : 2;
    ::raise(SIGKILL);
}

}  // namespace

METHODS_TEST("strategies: a worker starts with its parent's") {
    if (names_are_denied())
        co_return;
    CHECK(cohort::get_sharing_strategy() == sharing_strategy::file_descriptor);
    CHECK(cohort::get_all_sharing_strategies().size() == 2);
    for (const auto strategy : cohort::get_all_sharing_strategies()) {
        const with_strategy scope(strategy);
        for (const auto method : all_methods) {
            const auto report = co_await cohort::run(cohort::function<strategy_of>(), by(method));
            CHECK(report.outcomes[0].result<std::string>() == fmt::format("{}", strategy));
        }
    }
}

METHODS_TEST("strategies: arrays with names cross as others do, and their names go with them") {
    if (names_are_denied())
        co_return;
    const with_strategy scope(sharing_strategy::file_system);
    const auto before = names();
    for (const auto method : all_methods) {
        CHECK(names_go(before));  // the engine lets go of results a moment later
        std::vector<shared_array<int>> arrays;
        for (int i = 0; i < 20; ++i)
            arrays.emplace_back(5);
        CHECK(names().size() == before.size() + 20);
        const std::vector passed{arrays[0], arrays[1], arrays[1].narrow(0, 1, 1)};
        co_await cohort::run(cohort::function<add_three>(passed), by(method, 2));
        CHECK(arrays[0](4) == 6);
        CHECK(arrays[1](1) == 12);
        CHECK(arrays[1](2) == 6);
        const auto report = co_await cohort::run(cohort::function<make_one>(), by(method, 3));
        for (const auto& outcome : report.outcomes) {
            const auto got = outcome.result<shared_array<int>>();
            CHECK(got(1) == outcome.index);
            CHECK(got.strategy() == sharing_strategy::file_system);
        }
    }
    CHECK(names_go(before));
}

METHODS_TEST("strategies: a worker finds an array by its name") {
    if (names_are_denied())
        co_return;
    const auto name = "cohort-test-" + std::to_string(::getpid());
    const shared_array<int> array(cohort::share_options().name(name), 3);
    CHECK(array.name() == name);
    for (const auto method : all_methods)
        co_await cohort::run(cohort::function<add_by_name>(name), by(method));
    CHECK(array(0) == static_cast<int>(std::size(all_methods)));
}

METHODS_TEST("strategies: a killed worker leaves no name") {
    if (names_are_denied())
        co_return;
    const with_strategy scope(sharing_strategy::file_system);
    const auto before = names();
    for (const auto method : all_methods) {
        shared_array<int> array(1);
        try {
            co_await cohort::run(cohort::function<is_killed>(array), by(method, 3));
        } catch (const cohort::process_exited_exception& e) {
            CHECK(e.status().signal() == SIGKILL);
        }
        CHECK(array(0) == 2);
        CHECK(names().size() == before.size() + 1);  // that of the array
    }
    CHECK(names() == before);
}

METHODS_TEST("strategies: a name of the user's goes with the killed worker that used it last") {
    if (names_are_denied())
        co_return;
    const auto name = "cohort-test-" + std::to_string(::getpid());
    for (const auto method : all_methods) {
        ready up(co_await asio::this_coro::executor);
        shared_array<int> array(cohort::share_options().name(name), 3);
        auto group = co_await cohort::spawn(cohort::function<holds_by_name>(name),
                                            by(method)
                                                .fd(up.child_end(), ready::number)
                                                .on_failure(cohort::on_failure::keep_going));
        co_await up.wait();
        array = shared_array<int>();
        CHECK(std::filesystem::exists("/dev/shm/" + name));
        group.signal(SIGKILL);
        (void)co_await group.wait();
        CHECK_FALSE(std::filesystem::exists("/dev/shm/" + name));
    }
}

GROUP_TEST("strategies: what a killed program has left is swept, and what is used is not") {
    if (names_are_denied())
        co_return;
    const auto before = names();
    const shared_array<int> used(cohort::share_options().strategy(sharing_strategy::file_system),
                                 10);
    int ready[2];
    REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        cohort::set_sharing_strategy(sharing_strategy::file_system);
        std::vector<shared_array<int>> left;
        for (int i = 0; i < 10; ++i)
            left.emplace_back(1);
        (void)!::write(ready[1], "x", 1);
        ::pause();
    }
    char byte;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    CHECK(names().size() == before.size() + 11);
    (void)cohort::sweep_shared_memory();
    CHECK(names().size() == before.size() + 11);
    ::kill(child, SIGKILL);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    CHECK(cohort::sweep_shared_memory() <= 10);  // a program that starts just now sweeps, too
    CHECK(names().size() == before.size() + 1);
    CHECK(used(9) == 0);
    ::close(ready[0]);
    ::close(ready[1]);
}

GROUP_TEST("strategies: a name is used once at a time, and what is left of it is replaced") {
    if (names_are_denied())
        co_return;
    auto name = "cohort-test-" + std::to_string(::getpid());
    const auto named = [&] { return shared_array<int>(cohort::share_options().name(name), 3); };
    {
        const auto first = named();
        const auto code = [&] {
            try {
                (void)named();
            } catch (const cohort::sharing_error& e) {
                return e.code();
            }
            return std::error_code();
        };
        CHECK(code() == std::errc::file_exists);
        const auto again = shared_array<const int>::attach(name);
        CHECK(again.shares_memory_with(first));
        CHECK(again.size() == 3);
    }
    CHECK_THROWS_AS((void)shared_array<int>::attach(name), cohort::sharing_error);
    // Another name, because this process may still try to remove the first one: it let go of that
    // while the other array had it.
    name += "-left";
    const pid_t killed = ::fork();
    if (killed == 0) {
        const auto left = named();
        ::raise(SIGKILL);
    }
    REQUIRE(::waitpid(killed, nullptr, 0) == killed);
    CHECK(std::filesystem::exists("/dev/shm/" + name));
    CHECK(named().valid());
    CHECK_THROWS_AS((void)cohort::share_options().name("a/b"), std::invalid_argument);
    CHECK_THROWS_AS((void)cohort::share_options().name(".."), std::invalid_argument);
    co_return;
}

METHODS_TEST("strategies: an array whose name was removed is used on, but not sent on") {
    if (names_are_denied())
        co_return;
    shared_array<int> array(cohort::share_options().strategy(sharing_strategy::file_system), 3);
    REQUIRE(::unlink(("/dev/shm/" + array.name()).c_str()) == 0);
    array(0) = 1;
    const std::vector arrays{array};
    std::string text;
    try {
        co_await cohort::run(cohort::function<add_three>(arrays), by(start_method::forkserver));
    } catch (const std::exception& e) {
        text = e.what();
    }
    CHECK(text.find("was removed from /dev/shm") != text.npos);
    CHECK(array(0) == 1);
}

GROUP_TEST("strategies: an array that can't be sent is an error beside an argument that is sent") {
    if (names_are_denied())
        co_return;
    shared_array<int> array(cohort::share_options().strategy(sharing_strategy::file_system), 3);
    REQUIRE(::unlink(("/dev/shm/" + array.name()).c_str()) == 0);
    const std::vector arrays{array};
    cohort::queue<int> sums;
    std::string text;
    try {
        co_await cohort::run(cohort::function<put_sum>(arrays, sums.writer()),
                             by(start_method::fork));
    } catch (const std::exception& e) {
        text = e.what();
    }
    CHECK(text.find("was removed from /dev/shm") != text.npos);
}

GROUP_TEST("strategies: a full /dev/shm is an error that tells what is free") {
    if (names_are_denied())
        co_return;
    const auto how = cohort::share_options().strategy(sharing_strategy::file_system);
    std::string text;
    try {
        const shared_array<char> array(how, std::int64_t{1} << 50);
    } catch (const cohort::sharing_error& e) {
        CHECK(e.code() == std::errc::no_space_on_device);
        text = e.what();
    }
    CHECK(
        text.find("shared array of 1.0 PiB (file_system): No space left on device: /dev/shm has") !=
        text.npos);
    CHECK(text.find("file_descriptor arrays do not count there") != text.npos);
    co_return;
}

TEST_CASE("strategies: where names are denied there is one strategy, and it says why") {
    if (std::string(std::getenv("COHORT_FORCE") == nullptr ? "" : std::getenv("COHORT_FORCE"))
            .find("no_file_system") == std::string::npos)
        return skip("not forced by COHORT_FORCE=no_file_system");
    CHECK(cohort::get_all_sharing_strategies() == std::set{sharing_strategy::file_descriptor});
    CHECK_THROWS_AS(cohort::set_sharing_strategy(sharing_strategy::file_system),
                    cohort::sharing_error);
    CHECK(cohort::capabilities().sharing.reason == "forced by COHORT_FORCE");
}

}  // namespace strategies_test
