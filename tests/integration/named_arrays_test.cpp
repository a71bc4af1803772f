// SPDX-License-Identifier: BSL-1.0
// Arrays with names beside arrays by descriptor: what is the same, what /dev/shm shows of them, and
// what a fork of the program and its environment do to them.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "names_support.hpp"
#include "sanitizers.hpp"
#include "with_variable.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace named_arrays_test {

using namespace cohort::test;
using cohort::shared_array;
using cohort::sharing_strategy;

namespace {

bool exists(const std::string& name) { return std::filesystem::exists("/dev/shm/" + name); }

void write_four(int, const std::vector<shared_array<int>>& arrays) { arrays[0].at(2, 1) = 4; }
void add_one(int, const shared_array<int>& array) { array(0) += 1; }
/// How much of its memory a worker shares, in KiB. Without the array the worker has no such memory
/// but its record.
int shared_kib(int, const shared_array<char>& array) {
    if (array.size() == 0)
        return -1;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (int kib = 0; word == "RssShmem:" && status >> kib)
            return kib;
    return -1;
}

}  // namespace

METHODS_TEST(
    "named arrays: views of one array are one memory, by either strategy, again and again") {
    if (names_are_denied())
        co_return;
    for (const auto strategy : cohort::get_all_sharing_strategies()) {
        const with_strategy scope(strategy);
        for (const auto method : all_methods)
            for (int round = 0; round < 10; ++round) {
                shared_array<int> x(5, 5);
                const std::vector arrays{x, x.select(1, 1)};
                co_await cohort::run(cohort::function<write_four>(arrays), by(method));
                CHECK(x(2, 1) == 4);
                CHECK(arrays[1](2) == 4);
            }
    }
}

METHODS_TEST("named arrays: arrays by descriptor have no name, with workers or without") {
    if (names_are_denied())
        co_return;
    const auto before = names();
    for (const auto method : all_methods) {
        const shared_array<int> array(1000);
        CHECK(array.name().empty());
        CHECK(names() == before);
        co_await cohort::run(cohort::function<add_one>(array), by(method));
        CHECK(array(0) == 1);
        CHECK(names() == before);
    }
}

GROUP_TEST("named arrays: a forked copy of the program that lets go of an array leaves its name") {
    if (names_are_denied())
        co_return;
    if (under_tsan) {
        skip(no_threads_in_copies);
        co_return;
    }
    const with_strategy scope(sharing_strategy::file_system);
    shared_array<int> dropped(1);
    shared_array<int> held(1);
    const pid_t copy = ::fork();
    if (copy == 0) {
        dropped(0) = 1;
        dropped = {};
        ::_exit(held.name().empty() ? 1 : 0);  // with a handle
    }
    int status = -1;
    REQUIRE(::waitpid(copy, &status, 0) == copy);
    CHECK(status == 0);
    for (const auto& array : {dropped, held})
        CHECK(exists(array.name()));
    CHECK(shared_array<int>::attach(dropped.name())(0) == 1);
}

METHODS_TEST("named arrays: it does not matter what TMPDIR is") {
    if (names_are_denied())
        co_return;
    const std::optional<std::string> values[] = {std::nullopt, "", "/" + std::string(130, 'x'),
                                                 "/proc"};
    for (const auto& value : values)
        for (const auto strategy : cohort::get_all_sharing_strategies()) {
            const with_variable variable("TMPDIR", value);
            const with_strategy scope(strategy);
            for (const auto method : all_methods) {
                const shared_array<int> array(1);
                co_await cohort::run(cohort::function<add_one>(array), by(method));
                CHECK(array(0) == 1);
            }
        }
}

METHODS_TEST("named arrays: a worker has no page of a large array before it touches it") {
    constexpr std::size_t size = std::size_t{1} << 30;
    if (std::ifstream("/proc/sys/vm/overcommit_memory").get() == '2') {
        skip("each page of an array is reserved here");
        co_return;
    }
    const shared_array<char> array(size);  // by descriptor: its pages come when they are touched
    array(size - 1) = 1;
    for (const auto method : all_methods) {
        const auto report =
            co_await cohort::run(cohort::function<shared_kib>(array), by(method, 8));
        for (const auto& outcome : report.outcomes) {
            CHECK(outcome.result<int>() >= 0);
            CHECK(outcome.result<int>() < 32 << 10);
        }
    }
}

}  // namespace named_arrays_test
