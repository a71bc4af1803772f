// SPDX-License-Identifier: BSL-1.0
// Shared arrays in results, in closures and in commands.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "system_call_filter.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace shared_results_test {

using namespace cohort::test;
using cohort::shared_array;
using cohort::start_method;

namespace {

void add_three(int, shared_array<int> array) {
    for (int& element : array)
        element += 3;
}
std::map<std::string, shared_array<double>> results(int index) {
    shared_array<double> squares(4);
    for (int i = 0; i < 4; ++i)
        squares(i) = index * i * i;
    return {{"squares", squares}, {"last", squares.narrow(0, 3, 1)}};
}
std::vector<shared_array<int>> many_results(int) {
    std::vector<shared_array<int>> made;
    for (int i = 0; i < 400; ++i) {
        made.emplace_back(1);
        made.back()(0) = i;
    }
    return made;
}
/// The first one fills each socket of packets that it has, so also that of its result.
shared_array<int> fills_its_socket(int index, const cohort::event& is_full) {
    if (index == 1) {
        is_full.wait();
        return shared_array<int>(4);
    }
    for (int fd = 3; fd < 256; ++fd) {
        int type = 0;
        socklen_t length = sizeof type;
        if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET)
            while (::send(fd, "junk", 4, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
            }
    }
    is_full.set();
    sleep_until_killed();
}
shared_array<int> same_back(int, const shared_array<int>& array) { return array; }
shared_array<int> dies_instead(int) {
    ::raise(SIGKILL);
    return {};
}
/// The kernel kills the worker when it begins to write its result: by then its arrays are sent.
std::map<std::string, shared_array<double>> dies_in_return(int index) {
    auto made = results(index);
    if (filter_calls(SYS_pwrite64, SECCOMP_RET_KILL_PROCESS) != 0)
        throw std::runtime_error("no system call can be denied here");
    return made;
}

int pass_on(int, const shared_array<int>& array) {
    asio::io_context io;
    const auto work = cohort::function<add_three>(array);
    run_coroutine(
        io, [](auto given) -> asio::awaitable<void> { co_await cohort::run(given, 1); }(work));
    return array(0);
}

}  // namespace

METHODS_TEST("shared results: arrays come back in results, though their workers are gone") {
    for (const auto method : all_methods) {
        const auto report = co_await cohort::run(cohort::function<results>(), by(method, 20));
        for (const auto& outcome : report.outcomes) {
            const auto got = outcome.result<std::map<std::string, shared_array<double>>>();
            CHECK(got.at("squares")(3) == 9.0 * outcome.index);
            CHECK(got.at("last").data() == &got.at("squares")(3));
            const auto again = outcome.result<std::map<std::string, shared_array<double>>>();
            CHECK(again.at("squares").data() == got.at("squares").data());
        }
    }
}

GROUP_TEST("shared results: many workers return arrays at once") {
    const int size = how_many(300, 50);
    const auto report = co_await cohort::run(cohort::function<results>(), size);
    std::vector<std::map<std::string, shared_array<double>>> all;
    for (const auto& outcome : report.outcomes)
        all.push_back(outcome.result<std::map<std::string, shared_array<double>>>());
    for (int index = 0; index < size; ++index)
        CHECK(all.at(static_cast<std::size_t>(index)).at("last")(0) == 9.0 * index);
}

METHODS_TEST("shared results: one result holds more arrays than one message carries") {
    for (const auto method : all_methods) {
        const auto report = co_await cohort::run(cohort::function<many_results>(), by(method));
        const auto got = report.outcomes[0].result<std::vector<shared_array<int>>>();
        REQUIRE(got.size() == 400);
        CHECK(got[0](0) == 0);
        CHECK(got[399](0) == 399);
    }
}

METHODS_TEST("shared results: an array that comes back is the one that was sent") {
    for (const auto method : all_methods) {
        const shared_array<int> sent(10);
        const auto work = cohort::function<same_back>(sent);
        const auto report = co_await cohort::run(work, by(method));
        CHECK(report.outcomes[0].result<shared_array<int>>().data() == sent.data());
    }
}

METHODS_TEST("shared results: a worker that fills its socket keeps no other from returning") {
    for (const auto method : all_methods) {
        const cohort::event is_full;
        auto group =
            co_await cohort::spawn(cohort::function<fills_its_socket>(is_full), by(method, 2));
        const auto first = co_await group.next();
        REQUIRE(first);
        CHECK(first->index == 1);
        CHECK(first->result<shared_array<int>>().size() == 4);
        (void)co_await group.stop();
    }
}

METHODS_TEST("shared results: a worker that dies before it returns leaves no array behind") {
    for (const auto method : all_methods) {
        std::optional<cohort::process_exited_exception> failure;
        try {
            co_await cohort::run(cohort::function<dies_instead>(), by(method, 3));
        } catch (const cohort::process_exited_exception& e) {
            failure = e;
        }
        REQUIRE(failure);
        CHECK_FALSE(failure->outcomes()[0].has_result());
    }
}

METHODS_TEST("shared results: a worker that dies after it has sent its arrays has no result") {
    for (const auto method : all_methods) {
        auto group =
            co_await cohort::spawn(cohort::function<dies_in_return>(),
                                   by(method, 3).on_failure(cohort::on_failure::keep_going));
        const auto report = co_await group.wait();
        for (const auto& outcome : report.outcomes) {
            if (outcome.error) {
                skip(outcome.error->message);
                co_return;
            }
            CHECK(outcome.status.signal() == SIGSYS);
            CHECK_FALSE(outcome.has_result());
        }
    }
}

GROUP_TEST("shared results: a closure reads what it has captured, and sends on what it has kept") {
    if (!groups_in_copies) {
        skip(no_threads_in_copies);
        co_return;
    }
    shared_array<int> array(3);
    array(1) = 5;
    const auto read = [array](int) { return array(1); };
    const auto reads = cohort::closure(read);
    auto report = co_await cohort::run(reads, by(start_method::fork));
    CHECK(report.outcomes[0].result<int>() == 5);

    const auto send = [array](int index) { return pass_on(index, array); };
    const auto sends = cohort::closure(send);
    std::string text;
    try {
        co_await cohort::run(sends, by(start_method::fork));
    } catch (const cohort::process_raised_exception& e) {
        text = e.what();
    }
    // A copy of the copy needs no descriptor.
    if (default_method() != start_method::fork)
        CHECK(text.find("name it: closure(f).keep(array)") != text.npos);
    array(0) = 0;
    array(1) = 5;

    const auto keeps = cohort::closure(send).keep(array);
    report = co_await cohort::run(keeps, by(start_method::fork));
    CHECK(report.outcomes[0].result<int>() == 3);
    CHECK(array(1) == 8);
}

GROUP_TEST(
    "shared results: a command reads and writes an array with its language's standard library") {
    const auto program = R"(
import json, mmap, os
w = json.loads(os.environ["COHORT_SHARED_weights"])
assert w["dtype"] == "<f4" and w["shape"] == [2, 3] and w["strides"] == [12, 4], w
assert w["read_only"] is False and w["offset"] == 0, w
m = memoryview(mmap.mmap(w["fd"], w["bytes"])).cast("f")
m[5] = m[0] + m[1]
)";
    auto weights = cohort::share_memory(std::vector<float>{1, 2, 3, 4, 5, 6}).reshape(2, 3);
    auto python = cohort::command("python3", "-c", program);
    python.share("weights", weights);
    co_await cohort::run(python, 1);
    CHECK(weights(1, 2) == 3);
}

GROUP_TEST("shared results: a language without mmap reads and writes the descriptor itself") {
    if (!std::filesystem::exists("/usr/bin/perl")) {
        skip("no perl here");
        co_return;
    }
    const auto program = R"(
my ($fd) = $ENV{COHORT_SHARED_weights} =~ /"fd":(\d+)/;
open(my $memory, "+<&=", $fd) or die "open: $!";
sysread($memory, my $bytes, 8) == 8 or die "sysread: $!";
my ($first, $second) = unpack("f<2", $bytes);
sysseek($memory, 20, 0) == 20 or die "sysseek: $!";
syswrite($memory, pack("f<", $first + $second)) == 4 or die "syswrite: $!";
)";
    const auto weights = cohort::share_memory(std::vector<float>{1, 2, 3, 4, 5, 6});
    co_await cohort::run(cohort::command("/usr/bin/perl", "-e", program).share("weights", weights),
                         1);
    CHECK(weights(5) == 3);
}

GROUP_TEST("shared results: a command gets what it was given, not what its parent was given") {
    cohort::shared_value<int> mine(1);
    auto env = cohort::command(
        "sh", "-c", "test -z \"$COHORT_SHARED_stale\" && test -n \"$COHORT_SHARED_mine\"");
    env.share("mine", mine);
    ::setenv("COHORT_SHARED_stale", "{}", 1);
    const auto report = co_await cohort::run(env, 1);
    ::unsetenv("COHORT_SHARED_stale");
    CHECK(report.outcomes[0].success());
}

TEST_CASE("shared results: the name given to share may have letters, digits and underscores only") {
    shared_array<int> array(1);
    cohort::command work("true");
    CHECK_THROWS_AS(work.share("a-b", array), std::invalid_argument);
    CHECK_THROWS_AS(work.share("", array), std::invalid_argument);
    CHECK_THROWS_AS(work.share("empty", shared_array<int>(0)), std::invalid_argument);
    CHECK_THROWS_AS(work.env("COHORT_SHARED_x", 1), std::invalid_argument);
}

}  // namespace shared_results_test
