// SPDX-License-Identifier: BSL-1.0
// start_method::fork: workers that are copies of this process. What they have in common with all
// others is tested by the whole suite, run with COHORT_FORCE=fork.
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

namespace fork_test {

using namespace cohort::test;

namespace {

cohort::options forked(int count = 1) {
    return cohort::options(count).start_method(cohort::start_method::fork);
}

/// Can be an argument only where nothing is encoded.
struct unencodable {
    int value = 0;
};
void to_json(nlohmann::json&, const unencodable&) { throw std::logic_error("encoded"); }
void from_json(const nlohmann::json&, unencodable&) { throw std::logic_error("decoded"); }

int value_of(int index, const unencodable& argument) { return argument.value + index; }

/// Registered once in this process: ends a worker that runs its parent's hooks by SIGABRT.
void abort_in_workers() {
    if (cohort::this_worker::active())
        std::abort();
}

void say_gone() { (void)!::write(STDOUT_FILENO, "gone\n", 5); }

/// Allocates and frees in other threads for the length of a scope, so that some thread holds a lock
/// of the allocator's nearly always.
class allocating_threads {
public:
    allocating_threads() {
        for (int i = 0; i < 2; ++i)
            threads_.emplace_back([this] {
                for (std::size_t size = 1; !done_; size = size * 7 % 65'521)
                    std::make_unique<char[]>(size)[size / 2] = 'x';
            });
    }
    ~allocating_threads() {
        done_ = true;
        for (auto& thread : threads_)
            thread.join();
    }

private:
    std::atomic<bool> done_{false};
    std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("fork: a closure runs on a copy of the memory, and what it returns comes back") {
    const leak_guard guard;
    std::vector<int> numbers{1, 2, 3};
    const auto add = [&numbers](int index) {
        for (auto& number : numbers)
            number += index;
        return numbers;
    };
    const auto report = ended(cohort::closure(add), forked(3));
    REQUIRE(report.success());
    for (const auto& worker : report.outcomes) {
        const int i = worker.index;
        CHECK(worker.result<std::vector<int>>() == std::vector<int>{1 + i, 2 + i, 3 + i});
        CHECK(worker.cause == cohort::cause::returned);
    }
    CHECK(numbers == std::vector<int>{1, 2, 3});
    CHECK_FALSE(ended(cohort::closure([](int) {}), forked()).outcomes.at(0).has_result());
}

TEST_CASE("fork: an exception of a closure is the worker's error") {
    const leak_guard guard;
    const auto fail = [](int index) {
        if (index == 1)
            throw std::out_of_range("beyond the end");
        sleep(1000);
    };
    const auto error =
        thrown_by<cohort::process_raised_exception>(cohort::closure(fail), forked(2));
    CHECK(error.error_index() == 1);
    CHECK(error.error().type == "std::out_of_range");
    CHECK(error.error().message == "beyond the end");
}

TEST_CASE("fork: the arguments of a function are not encoded") {
    const leak_guard guard;
    const auto report = ended(cohort::function<value_of>(unencodable{40}), forked(3));
    REQUIRE(report.success());
    CHECK(report.outcomes[2].result<int>() == 42);
}

TEST_CASE("fork: a callable of any kind is accepted, and destroyed when the group has ended") {
    const leak_guard guard;
    const auto counted = std::make_shared<int>(7);
    {
        auto holds = [counted, n = 0](int) mutable { return *counted + ++n; };
        const auto report = ended(cohort::closure(holds), forked(2));
        CHECK(report.outcomes.at(1).result<int>() == 8);
    }
    CHECK(counted.use_count() == 1);
}

TEST_CASE("fork: buffered output of the parent is written once, and so is a worker's") {
    const leak_guard guard;
    const scratch_directory directory;
    std::fflush(stdout);
    std::printf("  ");  // invisible where it belongs
    const auto print = [](int) {
        std::printf("by stdio\n");
        std::cout << "by iostream\n";
    };
    CHECK(ended(cohort::closure(print), forked().stdout_to(directory.file("out"))).success());
    CHECK(read_file(directory.file("out")) == "by stdio\nby iostream\n");
}

TEST_CASE("fork: a worker runs its own exit hooks, never those of its parent") {
    const leak_guard guard;
    static const bool once [[maybe_unused]] = std::atexit(abort_in_workers) == 0;
    const scratch_directory directory;
    const auto by_return = [](int) { std::atexit(say_gone); };
    const auto by_exit = [](int) {
        std::atexit(say_gone);
        std::exit(0);
    };
    const auto how = forked().stdout_to(directory.file("out"));
    const auto returned = ended(cohort::closure(by_return), how);
    CHECK_MESSAGE(returned.success(), fmt::format("{}", returned));
    CHECK(read_file(directory.file("out")) == "gone\n");
    const auto exited = ended(cohort::closure(by_exit), how);
    CHECK_MESSAGE(exited.success(), fmt::format("{}", exited));
    CHECK(read_file(directory.file("out")) == "gone\n");
}

TEST_CASE("fork: the allocator works in a worker, whatever other threads did during the fork") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return skip(allocator_is_locked);
#endif
    const leak_guard guard;
    const allocating_threads busy;
    const auto allocate = [](int index) {
        return std::vector<std::string>(100, std::string(1000, static_cast<char>('a' + index)));
    };
    const auto report = ended(cohort::closure(allocate), forked(20));
    REQUIRE(report.success());
    CHECK(report.outcomes[19].result<std::vector<std::string>>()[99] == std::string(1000, 't'));
}

TEST_CASE("fork: a step that fails before the callable is an error of the start") {
    const leak_guard guard;
    const auto nothing = cohort::closure([](int) {});
    const auto chdir =
        thrown_by<cohort::spawn_error>(nothing, forked(2).working_directory("/no/such"));
    CHECK(std::string(chdir.what()) == "chdir(\"/no/such\"): No such file or directory (worker 0)");
    const auto output =
        thrown_by<cohort::spawn_error>(nothing, forked(2).stdout_to("/proc/none/file"));
    CHECK(output.stage() == "stdout");
    CHECK(output.error_index() == 0);
}

TEST_CASE("fork: a worker can run workers of its own, which are copies of it") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const leak_guard guard;
    const int seed = 20;
    const auto outer = [seed](int index) {
        const auto inner = [total = seed + index](int own) { return total + own; };
        const auto report = ended(cohort::closure(inner), forked(2));
        return report.outcomes.at(1).result<int>() + cohort::this_worker::size();
    };
    const auto report = ended(cohort::closure(outer), forked(2));
    REQUIRE(report.success());
    CHECK(report.outcomes[1].result<int>() == 24);
}

}  // namespace fork_test
