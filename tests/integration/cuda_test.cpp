// SPDX-License-Identifier: BSL-1.0
// Arrays on devices that cross between processes, on the stand-in for the driver or on a real one.
#include "cuda_support.hpp"
#include "methods.hpp"
#include "procfs.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace cuda_test {

using namespace cohort::test;
using cohort::start_method;
using cohort::cuda::shared_array;

struct layer {
    std::string name;
    shared_array<float> weights;
    std::map<std::string, shared_array<float>> parts;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(layer, name, weights, parts)

namespace {

using array_queue = cohort::queue<shared_array<int>>;

/// Workers in which the driver works. Those that are forked copies of this process have it not.
constexpr start_method methods[] = {start_method::spawn, start_method::forkserver};

int sum_of(const shared_array<const int>& array) {
    const auto values = values_of(array);
    return std::accumulate(values.begin(), values.end(), 0);
}

// --- what workers do ---

bool is_one_memory(int, const std::vector<shared_array<int>>& arrays) {
    for (const auto& array : arrays)
        if (!array.shares_memory_with(arrays[0]))
            return false;
    return arrays[1].data() == arrays[0].data() + 2 && arrays[2].strides()[0] == 1;
}
int sum_all(int, const std::vector<shared_array<int>>& arrays) {
    int total = 0;
    for (const auto& array : arrays)
        total += sum_of(array);
    return total;
}
float name_size(int, const layer& given) {
    given.parts.at("first").copy_from(std::vector<float>(4, 2.5F));
    return static_cast<float>(given.name.size());
}
shared_array<int> make_one(int index) {
    auto made = counted(100 + index);
    return made;
}
void pass_on(int, cohort::queue_reader<shared_array<int>> from,
             cohort::queue_writer<shared_array<int>> to) {
    for (const auto& array : from)
        to.put(array.narrow(0, 1, 2));
}
void put_and_die(int, cohort::queue_writer<shared_array<int>> to) {
    to.put(counted(10));
    to.put(counted(20));
    std::raise(SIGKILL);
}
int take_one(int, cohort::queue_reader<shared_array<int>> from) {
    const auto received = from.get();
    return received ? sum_of(*received) : -1;
}
void count_all(int, cohort::queue_reader<std::vector<shared_array<int>>> from,
               cohort::queue_writer<int> to) {
    for (const auto& arrays : from) {
        int total = 0;
        for (const auto& array : arrays)
            total += static_cast<int>(array.size());
        to.put(total);
    }
}
/// What /proc/self/maps says of the file that is mapped at an address: its device and inode.
std::string file_at(const void* address) {
    std::istringstream maps(read_proc(::getpid(), "maps"));
    const auto wanted = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(address));
    for (std::string line; std::getline(maps, line);)
        if (line.starts_with(wanted))
            return line.substr(line.find(" 00:"), line.find("/memfd:") - line.find(" 00:"));
    return "none";
}
/// The processes that map a file.
std::vector<pid_t> users_of(const std::string& file) {
    std::vector<pid_t> users;
    for (const auto& [pid, process] : all_processes())
        if (read_proc(pid, "maps").find(file) != std::string::npos)
            users.push_back(pid);
    return users;
}

}  // namespace

CUDA_TEST("cuda: a worker writes through an array, alone and inside the user's own type") {
    for (const auto method : methods) {
        const auto array = counted(5);
        co_await cohort::run(cohort::function<add_three>(array), by(method));
        CHECK(values_of(array) == std::vector{3, 4, 5, 6, 7});
        co_await cohort::run(cohort::function<add_three>(array.narrow(0, 1, 2)), by(method));
        CHECK(values_of(array) == std::vector{3, 7, 8, 6, 7});

        layer given;
        given.name = "four";
        given.weights = shared_array<float>(0, 2, 4);
        given.parts["first"] = given.weights.select(0, 1);
        const auto report = co_await cohort::run(cohort::function<name_size>(given), by(method));
        CHECK(report.outcomes[0].result<float>() == 4);
        std::vector<float> values(8);
        given.weights.copy_to(values);
        CHECK(values == std::vector<float>{0, 0, 0, 0, 2.5F, 2.5F, 2.5F, 2.5F});
    }
}

CUDA_TEST("cuda: views of one memory arrive as views of one mapping, and 100 arrays at once") {
    for (const auto method : methods) {
        const auto a = counted(12).reshape(3, 4);
        const std::vector views{a, a.select(1, 2), a.transpose(0, 1)};
        const auto seen = co_await cohort::run(cohort::function<is_one_memory>(views), by(method));
        CHECK(seen.outcomes[0].result<bool>());
        std::vector<shared_array<int>> many;
        for (int i = 0; i < 100; ++i)
            many.push_back(counted(3));
        const auto sums = co_await cohort::run(cohort::function<sum_all>(many), by(method, 2));
        for (const auto& outcome : sums.outcomes)
            CHECK(outcome.result<int>() == 300);
    }
}

CUDA_TEST("cuda: an array in a result outlives the worker that made it") {
    for (const auto method : methods) {
        const auto report = co_await cohort::run(cohort::function<make_one>(), by(method, 2));
        for (const auto& outcome : report.outcomes) {
            const auto array = outcome.result<shared_array<int>>();
            CHECK(array.size() == 100 + static_cast<std::size_t>(outcome.index));
            CHECK(sum_of(array.narrow(0, 0, 100)) == 4950);
        }
    }
}

CUDA_TEST("cuda: a receiver sends an array on, and it is the same memory where it was made") {
    for (const auto method : methods) {
        array_queue there;
        array_queue back;
        auto group = co_await cohort::spawn(cohort::function<pass_on>(there, back), by(method));
        const auto array = counted(4);
        co_await there.put(array);
        there.close();
        const auto returned = co_await back.get();
        REQUIRE(returned);
        CHECK(returned->data() == array.data() + 1);
        CHECK(values_of(*returned) == std::vector{1, 2});
        co_await group.join();
    }
}

CUDA_TEST("cuda: a sender is killed before anybody has mapped its arrays, and both are read") {
    array_queue arrays;
    const auto how = by(start_method::spawn).on_failure(cohort::on_failure::keep_going);
    {
        auto group = co_await cohort::spawn(cohort::function<put_and_die>(arrays), how);
        co_await group.wait();
    }
    const auto report =
        co_await cohort::run(cohort::function<take_one>(arrays), by(start_method::spawn, 2));
    const int one = report.outcomes[0].result<int>();
    const int other = report.outcomes[1].result<int>();
    CHECK(std::min(one, other) == 45);
    CHECK(std::max(one, other) == 190);
}

CUDA_TEST("cuda: a receiver that is killed keeps nothing, and what it wrote is there") {
    auto array = counted(4);
    const auto file = file_at(array.data());  // of the stand-in's memory
    auto group =
        co_await cohort::spawn(cohort::function<use_and_die>(array), by(start_method::spawn));
    co_await group.wait();
    CHECK(group.outcomes()[0].status.signal() == SIGKILL);
    CHECK(values_of(array) == std::vector{8, 8, 8, 8});
    if (uses_standin) {
        CHECK(users_of(file) == std::vector{::getpid()});
        array = {};
        CHECK(users_of(file).empty());
    }
}

CUDA_TEST("cuda: 100,000 small arrays of an arena go through a queue to three workers") {
    constexpr int messages = 100;
    constexpr int arrays = 1000;
    const cohort::cuda::shared_arena arena(0, std::size_t{messages} * arrays * 256);
    cohort::queue<std::vector<shared_array<int>>> jobs(8);
    cohort::queue<int> totals;
    auto group = co_await cohort::spawn(cohort::function<count_all>(jobs, totals),
                                        by(start_method::spawn, 3));
    for (int i = 0; i < messages; ++i) {
        std::vector<shared_array<int>> some;
        for (int k = 0; k < arrays; ++k)
            some.push_back(arena.array<int>(3));
        co_await jobs.put(some);
    }
    jobs.close();
    int total = 0;
    for (auto each = co_await totals.get(); each; each = co_await totals.get())
        total += *each;
    CHECK(total == messages * arrays * 3);
    co_await group.join();
}

}  // namespace cuda_test
