// SPDX-License-Identifier: BSL-1.0
// Gets of queues while an allocation of the calling thread fails: the first, then the second, ...
// until none is left to fail. Prints what a get has lost, and fails then.
#include "failing_allocations.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

constinit int next_to_fail = 1;
thread_local constinit int left = -1;  // until an allocation fails; negative: none fails
thread_local constinit bool has_failed = false;

}  // namespace

bool cohort::test::allocation_fails() noexcept {
    if (left <= 0 || --left != 0)
        return false;
    has_failed = true;
    return true;
}

namespace {

int lost = 0;

void begin_to_fail() noexcept { left = next_to_fail; }

void report(const char* what, const char* how) {
    std::printf("%s, allocation %d: %s\n", what, next_to_fail, how);
    ++lost;
}

/// @param get  calls begin_to_fail() and gets one value. @return whether it has
template <class T, class Get>
void try_each(const char* what, const T& value, Get get) {
    for (next_to_fail = 1;; ++next_to_fail) {
        cohort::queue<T> queue;
        queue.keep_both_ends();
        auto reader = queue.reader();
        queue.writer().put(value);
        bool got = false;
        has_failed = false;
        try {
            got = get(reader);
        } catch (const std::bad_alloc&) {
        } catch (const std::exception& wrong) {
            report(what, wrong.what());
        }
        left = -1;
        if (!has_failed)
            return;
        if (!got && !reader.get(10s))
            report(what, "the value is gone");
    }
}

template <class T>
void try_ways(const char* what, const T& value) {
    try_each(what, value, [](auto& from) {
        begin_to_fail();
        return bool(from.get(10s));
    });
    try_each(what, value, [](auto& from) {
        begin_to_fail();
        return from.get_some(3).size() == 1;
    });
    try_each(what, value, [](auto& from) {
        asio::io_context context;
        std::exception_ptr wrong;
        bool got = false;
        from.async_get(asio::bind_executor(context, [&](std::exception_ptr error, auto value_got) {
            wrong = std::move(error);
            got = bool(value_got);
        }));
        begin_to_fail();  // not before: Asio's strand can't bear it
        context.run();
        if (wrong)
            std::rethrow_exception(wrong);
        return got;
    });
}

/// A value that never has memory enough.
struct insatiable {};
void from_json(const auto&, insatiable&) { throw std::bad_alloc(); }
void to_json(auto& json, const insatiable&) { json = 1; }

void try_insatiable() {
    cohort::queue<insatiable> queue;
    queue.keep_both_ends();
    auto reader = queue.reader();
    queue.writer().put(insatiable());
    int failed = 0;
    for (int i = 0; i < 2; ++i) {
        try {
            (void)reader.get(10s);
        } catch (const std::bad_alloc&) {
            ++failed;
        }
    }
    if (failed != 2 || !reader.get(0s).timed_out())
        report("a value that always needs too much", "is not lost by the second get");
}

}  // namespace

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    try_ways("int", 7);
    try_ways("text inside the packet", std::string(100'000, 'x'));
    try_ways("text beside the packet", std::string(1'000'000, 'x'));
    try_ways("map", std::map<std::string, int>{{"a key that is too long for its string", 1}});
    const cohort::shared_array<int> array(10);
    try_ways("arrays", std::vector<cohort::shared_array<int>>{array, array});
    try_insatiable();
    return lost > 0;
}
