// SPDX-License-Identifier: BSL-1.0
#include "protocol/trace/throws.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace throws_test {

using namespace cohort;

namespace {

/// Runs it in a process of its own, where throws are noted from then on.
bool holds_where_noted(const std::function<bool()>& fact) {
    const pid_t copy = ::fork();
    if (copy == 0) {
        protocol::begin_to_note_throws();
        ::_exit(fact() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(copy, &status, 0);
    return status == 0;
}

std::exception_ptr thrown(int value = 1) {
    try {
        throw value;
    } catch (...) {
        return std::current_exception();
    }
}

std::size_t calls_of(const std::exception_ptr& exception) {
    const auto* noted = protocol::throw_of(exception);
    return noted == nullptr ? 0 : noted->stack.calls().size();
}

/// Asks, while an exception unwinds its stack, for the last one.
struct last_asker {
    std::exception_ptr& last;
    ~last_asker() { last = protocol::last_thrown_here(); }
};

std::exception_ptr last_while_unwound(int value) {
    std::exception_ptr last;
    try {
        const last_asker asks{last};
        throw value;
    } catch (int) {
    }
    return last;
}

int value_of(const std::exception_ptr& exception) {
    try {
        if (exception)
            std::rethrow_exception(exception);
    } catch (int value) {
        return value;
    }
    return 0;
}

}  // namespace

TEST_CASE("throws: nothing is noted unless it is asked for") {
    CHECK(protocol::throw_of(thrown()) == nullptr);
    CHECK(protocol::last_thrown_here() == nullptr);
    CHECK(protocol::throw_of(nullptr) == nullptr);
}

TEST_CASE("throws: a throw is noted until its exception is destroyed") {
    CHECK(holds_where_noted([] {
        auto exception = thrown();
        const bool noted = calls_of(exception) > 0;
        exception = nullptr;
        return noted && protocol::last_thrown_here() == nullptr;
    }));
}

TEST_CASE("throws: each exception has a stack of its own") {
    CHECK(holds_where_noted([] {
        const auto one = thrown(), other = thrown();
        return calls_of(one) > 0 && calls_of(other) > 0 &&
               protocol::throw_of(one) != protocol::throw_of(other);
    }));
}

TEST_CASE("throws: an exception that was made without a throw is not noted") {
    CHECK(holds_where_noted([] { return calls_of(std::make_exception_ptr(1)) == 0; }));
}

TEST_CASE("throws: exceptions beyond the limit have no stack, and later ones have one again") {
    CHECK(holds_where_noted([] {
        std::vector<std::exception_ptr> kept;
        for (int i = 0; i < 200; ++i)
            kept.push_back(thrown(i));
        const bool full = calls_of(kept.front()) > 0 && calls_of(kept.back()) == 0;
        for (int i = 0; i < 200; ++i)
            if (value_of(kept[static_cast<std::size_t>(i)]) != i)
                return false;
        kept.clear();
        return full && calls_of(thrown()) > 0;
    }));
}

TEST_CASE("throws: the last exception of a thread is known while the stack is unwound") {
    CHECK(holds_where_noted([] {
        const auto before = thrown(1);
        return value_of(last_while_unwound(2)) == 2;
    }));
}

TEST_CASE("throws: what another thread has thrown is not the last one here") {
    if (cohort::test::under_tsan)
        return cohort::test::skip(cohort::test::no_threads_in_copies);
    CHECK(holds_where_noted([] {
        std::exception_ptr of_other;
        std::thread([&of_other] { of_other = thrown(); }).join();
        return calls_of(of_other) > 0 && protocol::last_thrown_here() == nullptr;
    }));
}

TEST_CASE("throws: threads that throw at once each get their own") {
    if (cohort::test::under_tsan)
        return cohort::test::skip(cohort::test::no_threads_in_copies);
    CHECK(holds_where_noted([] {
        std::vector<std::thread> threads;
        std::atomic<int> wrong{0};
        for (int n = 0; n < 4; ++n)
            threads.emplace_back([&wrong, n] {
                for (int i = 0; i < 1000; ++i)
                    if (value_of(last_while_unwound(4 * i + n + 1)) != 4 * i + n + 1)
                        ++wrong;
            });
        for (auto& thread : threads)
            thread.join();
        return wrong == 0;
    }));
}

}  // namespace throws_test
