// SPDX-License-Identifier: BSL-1.0
// What can be bound to a handler, on every host: an executor, a cancellation slot, an allocator.
#include "counted_executor.hpp"
#include "counting_allocator.hpp"
#include "life.hpp"

#include <asio/bind_allocator.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>

namespace bound_test {

namespace {

using namespace cohort::test;

struct by_other_pool {
    template <class T, class Op>
    static T get(host&, Op op) {
        asio::thread_pool pool(2);
        const auto here = [executor = pool.get_executor()] {
            return executor.running_in_this_thread();
        };
        const auto bind = [&](auto handler) {
            return asio::bind_executor(pool, std::move(handler));
        };
        auto result = land<T>(here, op, bind);
        pool.join();  // the operation is its work
        REQUIRE(result.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
        return result.get();
    }
};

TEST_CASE_TEMPLATE("bound: a handler bound to another pool runs there", Host, COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_other_pool>);
}

struct by_strand {
    template <class T, class Op>
    static T get(host& on, Op op) {
        const auto strand = asio::make_strand(on.executor());
        const auto bind = [&](auto handler) {
            return asio::bind_executor(strand, std::move(handler));
        };
        return land<T>([strand] { return strand.running_in_this_thread(); }, op, bind).get();
    }
};

TEST_CASE_TEMPLATE("bound: a handler bound to a strand runs in it", Host, COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_strand>);
}

TEST_CASE_TEMPLATE("bound: a handler may be bound to an executor of the context's own type", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>([](host& each) {
        auto& bound = static_cast<Host&>(each);
        asio::thread_pool elsewhere(1);
        const auto here = [&] { return bound.here(); };
        const auto bind = [&](auto handler) {
            return asio::bind_executor(bound.get_executor(), std::move(handler));
        };
        const auto spawn = [&](auto&& token) {
            return cohort::async_spawn(elsewhere, cohort::command("true"), 2,
                                       std::forward<decltype(token)>(token));
        };
        auto group = land<cohort::group>(here, spawn, bind).get();
        const auto join = [&](auto&& token) {
            return group.async_join(std::forward<decltype(token)>(token));
        };
        CHECK(land<bool>(here, join, bind).get());
    });
}

/// As little of an executor as can be: it has no properties, so it hides its context.
class bare_executor {
public:
    explicit bare_executor(asio::thread_pool& pool) noexcept : pool_(&pool) {}
    template <class F>
    void execute(F f) const {
        asio::post(*pool_, std::move(f));
    }
    [[maybe_unused]] friend bool operator==(const bare_executor&,
                                            const bare_executor&) noexcept = default;

private:
    asio::thread_pool* pool_;
};

struct by_bare_executor {
    template <class T, class Op>
    static T get(host&, Op op) {
        static asio::thread_pool pool(1);  // nothing tells when the host has left its post()
        asio::cancellation_signal signal;
        const auto here = [&, executor = pool.get_executor()] {
            return executor.running_in_this_thread() && !signal.slot().has_handler();
        };
        const auto bind = [&](auto handler) {
            return asio::bind_executor(bare_executor(pool), asio::bind_cancellation_slot(
                                                                signal.slot(), std::move(handler)));
        };
        return land<T>(here, op, bind).get();
    }
};

TEST_CASE_TEMPLATE("bound: a handler may be bound to an executor that hides its context", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_bare_executor>);
}

struct by_slot {
    template <class T, class Op>
    static T get(host& on, Op op) {
        asio::cancellation_signal signal;
        const auto here = [&] { return on.here() && !signal.slot().has_handler(); };
        const auto bind = [&](auto handler) {
            return asio::bind_cancellation_slot(signal.slot(), std::move(handler));
        };
        return land<T>(here, op, bind).get();
    }
};

TEST_CASE_TEMPLATE("bound: a cancellation slot is empty again when the handler is called", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_slot>);
}

struct by_allocator {
    template <class T, class Op>
    static T get(host& on, Op op) {
        allocations counts;
        const auto here = [&] { return on.here() && counts.given > 0 && counts.out == 0; };
        const auto bind = [&](auto handler) {
            return asio::bind_allocator(counting_allocator<int>(counts), std::move(handler));
        };
        return land<T>(here, op, bind).get();
    }
};

TEST_CASE_TEMPLATE("bound: a bound allocator has all its memory back when the handler is called",
                   Host, COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_allocator>);
}

TEST_CASE("bound: a handler on another context may destroy the host of a start that failed") {
    const leak_guard guard;
    const watchdog bounded;
    asio::thread_pool host(1);
    asio::thread_pool elsewhere(1);
    const auto counted = std::make_shared<int>();
    std::promise<void> initiated;
    std::promise<long> owners;
    cohort::async_spawn(
        asio::any_io_executor(counted_executor(host, counted)), cohort::command("/no/such/program"),
        cohort::options(1),
        asio::bind_executor(elsewhere, [&](const std::exception_ptr& error, const cohort::group&) {
            CHECK(error);
            initiated.get_future().wait();
            owners.set_value(counted.use_count());
        }));
    initiated.set_value();
    CHECK(owners.get_future().get() == 1);
}

}  // namespace

}  // namespace bound_test
