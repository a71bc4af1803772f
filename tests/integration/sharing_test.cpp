// SPDX-License-Identifier: BSL-1.0
// Shared arrays that cross to workers: as arguments, inside the user's own types, to commands.
#include "descriptor_limit.hpp"
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sharing_test {

using namespace cohort::test;
using cohort::shared_array;
using cohort::start_method;

struct batch {
    std::string name;
    shared_array<float> whole;
    std::map<std::string, shared_array<float>> parts;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(batch, name, whole, parts)

namespace {

int descriptors_here() {
    int count = 0;
    for (int fd = 0; fd < 4096; ++fd)
        count += ::fcntl(fd, F_GETFD) >= 0;
    return count;
}

// --- what workers do ---

void write_four(int, const std::vector<shared_array<int>>& arrays) { arrays[0].at(2, 1) = 4; }
void add_three(int, shared_array<int> array) {
    for (int& element : array)
        element += 3;
}
/// Turns each value over; its result is the values as they were.
shared_array<bool> turn_over(int, const shared_array<bool>& flags) {
    const auto before = flags.clone();
    for (bool& flag : flags)
        flag = !flag;
    return before;
}
bool is_one_memory(int, const std::vector<shared_array<float>>& arrays) {
    for (const auto& array : arrays)
        if (!array.shares_memory_with(arrays[0]))
            return false;
    return arrays[1].data() == &arrays[0](0, 2) && arrays[3].strides()[1] == arrays[0].strides()[0];
}
std::string shapes(int, shared_array<int> empty, shared_array<int> deep, shared_array<int> none) {
    return fmt::format("{} {} {} {} {}", empty.valid(), empty.rank(), deep.size(), deep.shape()[2],
                       none.valid());
}
float sum(int, const batch& work) {
    float total = 0;
    for (const auto& [name, part] : work.parts)
        for (const float value : part)
            total += value;
    work.whole(0) = total;
    return total;
}
std::vector<bool> look_at(int, const shared_array<int>& array) {
    static int local = 0;
    const std::vector<int> private_memory(1000);
    return {cohort::is_shared(array.data()), cohort::is_shared(&array(array.size() - 1)),
            cohort::is_shared(&local), cohort::is_shared(private_memory.data()),
            cohort::is_shared(array.end() + 1)};
}
void count_up(int, cohort::shared_value<std::atomic<int>> counter) {
    for (int i = 0; i < 1000; ++i)
        ++*counter;
}
void write_read_only(int, shared_array<const int> array) { const_cast<int&>(array(0)) = 1; }
int add_all(int, const std::vector<shared_array<int>>& arrays) {
    int total = 0;
    for (const auto& array : arrays)
        total += array(0);
    return total;
}
int descriptors_in_worker(int, const std::vector<shared_array<int>>&) { return descriptors_here(); }
void want_to_write(int, shared_array<int>) {}
int pass_on(int, const shared_array<int>& array) {
    asio::io_context io;
    const auto work = cohort::function<add_three>(array);
    run_coroutine(
        io, [](auto given) -> asio::awaitable<void> { co_await cohort::run(given, 1); }(work));
    return array(0);
}

}  // namespace

METHODS_TEST("sharing: a worker writes through an array, and views of it see that") {
    for (const auto method : all_methods) {
        shared_array<int> x(5, 5);
        const std::vector arrays{x, x.select(1, 1)};
        co_await cohort::run(cohort::function<write_four>(arrays), by(method));
        CHECK(x(2, 1) == 4);
        CHECK(arrays[1](2) == 4);
    }
}

METHODS_TEST("sharing: the caller's array may be gone before the worker runs") {
    for (const auto method : all_methods) {
        auto kept = cohort::share_memory(std::vector{1, 2, 3});
        auto view = kept.narrow(0, 1, 2);
        {
            auto passed = kept;
            auto group = co_await cohort::spawn(cohort::function<add_three>(view), by(method));
            passed = {};
            view = {};
            co_await group.join();
        }
        CHECK(kept(0) == 1);
        CHECK(kept(1) == 5);
        CHECK(kept(2) == 6);
    }
}

METHODS_TEST("sharing: views of one memory arrive as views of one mapping") {
    for (const auto method : all_methods) {
        shared_array<float> a(3, 4);
        const std::vector views{a, a.select(1, 2), a.narrow(0, 1, 2), a.transpose(0, 1)};
        const auto work = cohort::function<is_one_memory>(views);
        const auto report = co_await cohort::run(work, by(method));
        CHECK(report.outcomes[0].result<bool>());
    }
}

METHODS_TEST("sharing: arrays without elements cross with their shape, and use no descriptor") {
    for (const auto method : all_methods) {
        shared_array<int> empty(0);
        shared_array<int> deep(3, 0, 5);
        CHECK(empty.descriptor() == -1);
        CHECK(deep.descriptor() == -1);
        const auto work = cohort::function<shapes>(empty, deep, shared_array<int>());
        const auto report = co_await cohort::run(work, by(method));
        CHECK(report.outcomes[0].result<std::string>() == "true 1 0 5 false");
    }
}

METHODS_TEST("sharing: arrays cross inside the user's own types and containers") {
    for (const auto method : all_methods) {
        batch work;
        work.name = "one";
        work.whole = shared_array<float>(1);
        for (const auto* const name : {"a", "b", "c"})
            work.parts[name] = cohort::share_memory(std::vector<float>(10, 0.5F));
        const auto call = cohort::function<sum>(work);
        const auto report = co_await cohort::run(call, by(method));
        CHECK(report.outcomes[0].result<float>() == 15);
        CHECK(work.whole(0) == 15);
    }
}

METHODS_TEST("sharing: an array of bool has an element for each value, as any other array") {
    constexpr std::array values{true, false, true};
    for (const auto method : all_methods) {
        const auto flags = cohort::share_memory(values);
        static_assert(std::is_same_v<decltype(flags), const shared_array<bool>>);
        CHECK(flags.size_bytes() == values.size());
        const auto report = co_await cohort::run(cohort::function<turn_over>(flags), by(method));
        const auto before = report.outcomes[0].result<shared_array<bool>>();
        for (std::size_t i = 0; i < values.size(); ++i) {
            CHECK(flags(i) != values[i]);
            CHECK(before.at(i) == values[i]);
        }
        cohort::queue<shared_array<bool>> passed;
        passed.keep_both_ends();
        passed.writer().put(flags);
        CHECK(passed.try_get()->shares_memory_with(flags));
    }
    const shared_array<bool> zeros(2, 3);
    CHECK_FALSE(zeros(1, 2));
}

METHODS_TEST("sharing: is_shared is true in the memory of an array, and there alone") {
    for (const auto method : all_methods) {
        const shared_array<int> array(1000);
        const auto report = co_await cohort::run(cohort::function<look_at>(array), by(method));
        CHECK(report.outcomes[0].result<std::vector<bool>>() ==
              std::vector<bool>{true, true, false, false, false});
    }
}

METHODS_TEST("sharing: atomic values are counted up by several workers") {
    for (const auto method : all_methods) {
        cohort::shared_value<std::atomic<int>> counter(7);
        co_await cohort::run(cohort::function<count_up>(counter), by(method, 4));
        CHECK(*counter == 4007);
    }
}

METHODS_TEST("sharing: a write to a read-only array is a SIGSEGV of the worker") {
    for (const auto method : all_methods) {
        shared_array<int> array(10);
        const auto work = cohort::function<write_read_only>(array.read_only());
        std::optional<cohort::process_exited_exception> failure;
        try {
            co_await cohort::run(work, by(method));
        } catch (const cohort::process_exited_exception& e) {
            failure = e;
        }
        REQUIRE(failure);
        if (!under_asan && !under_tsan) {  // these end the worker in their own way
            CHECK(failure->status().signal() == SIGSEGV);
            REQUIRE(failure->outcomes()[0].crash);
            CHECK(failure->outcomes()[0].crash->signal == SIGSEGV);
            CHECK(failure->outcomes()[0].crash->address % 4096 == 0);  // where the array begins
        }
        CHECK(array(0) == 0);
    }
}

GROUP_TEST("sharing: an array that can only be read is refused where it would be written") {
    shared_array<int> array(10);
    std::string text;
    const shared_array<const int> frozen = array.clone().freeze();
    try {
        co_await cohort::run(cohort::function<want_to_write>(array), by(start_method::spawn));
        shared_array<int> from_file =
            shared_array<int>::from_descriptor(frozen.descriptor(), 0, frozen.shape());
    } catch (const cohort::sharing_error& e) {
        text = e.what();
    }
    CHECK(text.find("it can only be read: use shared_array<const T>") != text.npos);
}

METHODS_TEST("sharing: 300 arrays go with one call") {
    for (const auto method : all_methods) {
        std::vector<shared_array<int>> arrays;
        for (int i = 0; i < 300; ++i) {
            arrays.emplace_back(1);
            arrays.back()(0) = i;
        }
        const auto work = cohort::function<add_all>(arrays);
        const auto report = co_await cohort::run(work, by(method, 3));
        for (const auto& outcome : report.outcomes)
            CHECK(outcome.result<int>() == 299 * 300 / 2);
    }
}

METHODS_TEST("sharing: one memory is one descriptor in the worker, however many arrays are in it") {
    for (const auto method : {start_method::spawn, start_method::forkserver}) {
        const auto open = [&](std::vector<shared_array<int>> arrays) -> asio::awaitable<int> {
            const auto work = cohort::function<descriptors_in_worker>(arrays);
            const auto report = co_await cohort::run(work, by(method));
            co_return report.outcomes[0].result<int>();
        };
        cohort::shared_arena arena(1 << 20);
        std::vector<shared_array<int>> small;
        for (int i = 0; i < 100; ++i)
            small.push_back(arena.array<int>(10));
        const int none = co_await open({});
        const int all = co_await open(small);
        CHECK(all == none + 1);
    }
}

METHODS_TEST("sharing: a received array can be sent on") {
    for (const auto method : all_methods) {
        if (method == start_method::fork && !groups_in_copies)
            continue;
        shared_array<int> array(3);
        const auto report = co_await cohort::run(cohort::function<pass_on>(array), by(method));
        CHECK(report.outcomes[0].result<int>() == 3);
        CHECK(array(0) == 3);
    }
}

GROUP_TEST("sharing: a fork of the program itself leaves arrays as they are") {
    shared_array<int> array(3);
    const int descriptor = array.descriptor();
    const pid_t child = ::fork();
    if (child == 0) {
        array(0) = 1;
        const bool is_open = array.descriptor() == descriptor;
        array = {};
        ::_exit(is_open ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(array(0) == 1);
    CHECK(array.descriptor() == descriptor);
    CHECK(::fcntl(descriptor, F_GETFD) >= 0);
    co_return;
}

GROUP_TEST("sharing: too many arrays for a worker's descriptors fail the start with the limit") {
    std::vector<shared_array<int>> arrays;
    for (int i = 0; i < 80; ++i)
        arrays.emplace_back(1);
    const auto work = cohort::function<add_all>(arrays);
    const descriptor_limit few(100);
    std::string text;
    try {
        co_await cohort::run(work, by(start_method::spawn));
    } catch (const cohort::spawn_error& e) {
        text = e.what();
    }
    CHECK(text.find("80 of them for shared memory") != text.npos);
    CHECK(text.find("shared_arena") != text.npos);
}

}  // namespace sharing_test
