// SPDX-License-Identifier: BSL-1.0
// What comes back from a worker: results, exceptions, exit codes and what it used.
#include "group_test.hpp"
#include "guard.hpp"
#include "pipes.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace results_test {

using namespace std::chrono_literals;
using cohort::cause;

struct tally {
    int files = 0;
    std::string name;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(tally, files, name)

class odd_error {};

class own_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

namespace {

int give_int(int index) { return 40 + index; }
std::string give_string(int index) { return std::string(index, 'x') + std::string("\0\n\"", 3); }
std::vector<double> give_vector(int index) { return {0.5, -1.0, double(index)}; }
std::map<std::string, std::vector<int>> give_map(int index) { return {{"a", {index}}, {"b", {}}}; }
std::optional<int> give_optional(int index) {
    return index == 0 ? std::nullopt : std::optional<int>(index);
}
tally give_tally(int index) { return {index, "of " + std::to_string(index)}; }
std::string give_much(int) { return std::string(5'000'000, 'm'); }
void give_nothing(int) {}

int leave_early(int index) {
    switch (index) {
    case 0:
        std::exit(0);
    case 1:
        ::_exit(0);
    default:
        std::exit(300);
    }
}

int throw_one_of_all(int index) {
    switch (index) {
    case 0:
        throw std::runtime_error("a standard one");
    case 1:
        throw results_test::own_error("one of our own");
    case 2:
        throw 42;
    case 3:
        throw "a literal";
    case 4:
        throw std::string("a string");
    case 5:
        throw results_test::odd_error();
    case 6:
        throw std::runtime_error("bytes \xff\xfe, not UTF-8");
    default:
        throw std::runtime_error("head" + std::string(1 << 20, 'm') + "tail");
    }
}

/// Leaves the process in a way of its own after its function has returned.
class parting {
public:
    explicit parting(void (*leave)()) : leave_(leave) {}
    parting(const parting&) = delete;
    parting& operator=(const parting&) = delete;
    ~parting() { leave_(); }

private:
    void (*leave_)();
};

void abort_without_core() {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    std::signal(SIGABRT, SIG_DFL);
    std::abort();
}

int fail_after_returning(int index) {
    if (index == 0) {
        static const parting at_exit([] { ::_exit(3); });
    } else {
        static const parting at_exit(abort_without_core);
    }
    return index;
}

/// Uses 50 ms of its processor and 64 MiB.
void use_something(int) {
    std::vector<char> memory(64 << 20, 1);
    rusage used{};
    volatile char sum = 0;
    do {
        for (std::size_t i = 0; i < memory.size(); i += 4096)
            sum = static_cast<char>(sum + memory[i]);
        ::getrusage(RUSAGE_SELF, &used);
    } while (used.ru_utime.tv_sec == 0 && used.ru_utime.tv_usec < 50'000);
}

void raise_in_sixth(int index) {
    if (index == 5)
        throw std::runtime_error("while the others work");
    for (volatile unsigned work = 0;;)
        work = work + 1;
}

template <auto Fn>
asio::awaitable<std::vector<cohort::outcome>> outcomes_of(int nprocs) {
    auto group = co_await cohort::spawn(
        cohort::function<Fn>(), cohort::options(nprocs).on_failure(cohort::on_failure::keep_going));
    auto told = co_await group.wait();
    co_return std::move(told.outcomes);
}

}  // namespace

GROUP_TEST("results: the function's return value is the worker's result") {
    const auto ints = co_await outcomes_of<give_int>(2);
    CHECK(ints[0].result<int>() == 40);
    CHECK(ints[1].result<int>() == 41);
    CHECK(ints[1].has_result());
    CHECK(ints[1].cause == cause::returned);
    const auto strings = co_await outcomes_of<give_string>(2);
    CHECK(strings[1].result<std::string>() == std::string("x\0\n\"", 4));
    const auto vectors = co_await outcomes_of<give_vector>(2);
    CHECK(vectors[1].result<std::vector<double>>() == std::vector<double>{0.5, -1.0, 1.0});
    const auto maps = co_await outcomes_of<give_map>(2);
    const std::map<std::string, std::vector<int>> expected{{"a", {1}}, {"b", {}}};
    CHECK((maps[1].result<std::map<std::string, std::vector<int>>>() == expected));
    const auto optionals = co_await outcomes_of<give_optional>(2);
    CHECK(optionals[0].has_result());
    CHECK_FALSE(optionals[0].result<std::optional<int>>().has_value());
    CHECK(optionals[1].result<std::optional<int>>().value() == 1);
    const auto tallies = co_await outcomes_of<give_tally>(2);
    CHECK(tallies[1].result<tally>().files == 1);
    CHECK(tallies[1].result<tally>().name == "of 1");
    const auto much = co_await outcomes_of<give_much>(1);
    CHECK((much[0].result<std::string>() == std::string(5'000'000, 'm')));
}

GROUP_TEST(
    "results: reading a result as the wrong type, or where there is none, is a typed error") {
    const auto ints = co_await outcomes_of<give_int>(1);
    CHECK_THROWS_WITH_AS(ints[0].result<std::string>(),
                         doctest::Contains("worker 0 returned int, not std::"),
                         cohort::result_error);
    CHECK_THROWS_AS(ints[0].result<long>(), cohort::result_error);
    const auto nothing = co_await outcomes_of<give_nothing>(1);
    CHECK_FALSE(nothing[0].has_result());
    CHECK(nothing[0].cause == cause::returned);
    CHECK_THROWS_WITH_AS(nothing[0].result<int>(), doctest::Contains("returned void"),
                         cohort::result_error);
    const auto raised = co_await outcomes_of<throw_one_of_all>(1);
    CHECK_THROWS_WITH_AS(raised[0].result<int>(),
                         doctest::Contains("did not return (raised, exit code 1)"),
                         cohort::result_error);
    const auto commands = co_await cohort::run(cohort::command("true"), 1);
    CHECK_FALSE(commands.outcomes[0].has_result());
    CHECK_THROWS_WITH_AS(commands.outcomes[0].result<int>(), doctest::Contains("a command"),
                         cohort::result_error);
}

GROUP_TEST("results: exit with 0 inside the function is a success without a result") {
    const auto ends = co_await outcomes_of<leave_early>(2);
    for (const auto& worker : ends) {
        CHECK(worker.success());
        CHECK(worker.cause == cause::exited);
        CHECK(worker.status.exit_code() == 0);
        CHECK_FALSE(worker.has_result());
        CHECK_THROWS_AS(worker.result<int>(), cohort::result_error);
    }
}

GROUP_TEST("results: an exit code keeps its lowest eight bits") {
    const auto ends = co_await outcomes_of<leave_early>(3);
    CHECK(ends[2].status.exit_code() == 44);
    CHECK(ends[2].status.exited());
    CHECK(ends[2].first_failure);
}

GROUP_TEST("results: any thrown value is reported by its type and text") {
    const auto ends = co_await outcomes_of<throw_one_of_all>(8);
    for (const auto& worker : ends) {
        CHECK(worker.cause == cause::raised);
        CHECK(worker.status.exit_code() == 1);
        REQUIRE(worker.error.has_value());
    }
    CHECK(ends[0].error->type == "std::runtime_error");
    CHECK(ends[0].error->message == "a standard one");
    CHECK(ends[0].error->trace.ends_with("\nstd::runtime_error: a standard one"));
    CHECK(ends[1].error->type == "results_test::own_error");
    CHECK(ends[1].error->message == "one of our own");
    CHECK(ends[2].error->type == "int");
    CHECK(ends[2].error->message == "a thrown number: 42");
    CHECK(ends[3].error->type == "char const*");
    CHECK(ends[3].error->message == "a literal");
    CHECK(ends[4].error->type.starts_with("std::"));
    CHECK(ends[4].error->message == "a string");
    CHECK(ends[5].error->type == "results_test::odd_error");
    CHECK(ends[5].error->message == "unknown exception");
    CHECK(ends[6].error->message == "bytes \xef\xbf\xbd\xef\xbf\xbd, not UTF-8");
    const auto& longest = ends[7].error->message;
    CHECK(longest.starts_with("headmmm"));
    CHECK(longest.ends_with("mmmtail"));
    CHECK(longest.size() > 100'000);
    CHECK(longest.size() <= (1 << 20));
}

GROUP_TEST("results: a failure after the function has returned is reported with the time") {
    auto group =
        co_await cohort::spawn(cohort::function<fail_after_returning>(),
                               cohort::options(2).on_failure(cohort::on_failure::keep_going));
    const auto told = co_await group.wait();
    const auto& left = told.outcomes[0];
    CHECK(left.cause == cause::exited);
    CHECK(left.status.exit_code() == 3);
    CHECK(left.note() == "after returning");
    CHECK_FALSE(left.success());
    const auto& aborted = told.outcomes[1];
    CHECK(aborted.cause == cause::signaled);
    CHECK(aborted.status.signal() == SIGABRT);
    CHECK(aborted.note().starts_with("after returning"));
    try {
        co_await group.join();
        FAIL("join did not throw");
    } catch (const cohort::process_exited_exception& error) {
        CHECK(std::string(error.what()).find("\nafter returning") != std::string::npos);
    }
}

GROUP_TEST("results: an outcome has the worker's times and resource usage") {
    const auto before = std::chrono::steady_clock::now();
    auto group = co_await cohort::spawn(cohort::function<use_something>(), 2);
    const auto told = co_await group.wait();
    const auto after = std::chrono::steady_clock::now();
    for (const auto& worker : told.outcomes) {
        CHECK(worker.pid == group.pids()[worker.index]);
        CHECK(worker.started >= before);
        CHECK(worker.ended - worker.started >= 50ms);
        CHECK(worker.ended <= after);
        CHECK(worker.usage.user_time >= 50ms);
        CHECK(worker.usage.user_time < 60s);
        CHECK(worker.usage.max_rss >= (64 << 20));
        CHECK(worker.usage.minor_faults > 0);
        CHECK_FALSE(worker.error.has_value());
        CHECK(worker.note().empty());
    }
    CHECK(told.elapsed >= 50ms);
    CHECK(told.elapsed <= after - before);
}

GROUP_TEST(
    "results: when one of eight workers raises, its error is thrown and the others are stopped") {
    auto group = co_await cohort::spawn(cohort::function<raise_in_sixth>(), 8);
    const auto told = co_await group.wait();
    for (const auto& worker : told.outcomes)
        CHECK(worker.cause == (worker.index == 5 ? cause::raised : cause::stopped));
    CHECK(told.outcomes[5].first_failure);
    CHECK(told.outcomes[5].error->message == "while the others work");
}

GROUP_TEST("results: a pipe given to the workers ends with them, not with the group") {
    cohort::test::ready pipe(executor);
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "echo >&9"),
        cohort::options(2).fd(pipe.child_end(), cohort::test::ready::number));
    pipe.close_child_end();
    co_await pipe.wait(2);
    try {
        co_await pipe.wait();
        FAIL("there were two bytes");
    } catch (const std::runtime_error&) {
        // The pipe's end, though the group is still there.
    }
    const bool done = co_await group.join();
    CHECK(done);
}

}  // namespace results_test
