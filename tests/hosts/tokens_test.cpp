// SPDX-License-Identifier: BSL-1.0
// Completion tokens of those who use no coroutines: each of them, on every host.
#include "life.hpp"

#include <asio/use_future.hpp>
#include <asio/version.hpp>

#if ASIO_VERSION >= 102800
#include <asio/any_completion_handler.hpp>
#endif
#if ASIO_VERSION >= 102600
#include <asio/deferred.hpp>
#else
#include <asio/experimental/deferred.hpp>
#endif

namespace tokens_test {

namespace {

using namespace cohort::test;

struct by_callback {
    template <class T, class Op>
    static T get(host& on, Op op) {
        return land<T>(on, op).get();
    }
};

TEST_CASE_TEMPLATE("tokens: every operation takes a callback that can only be moved", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_callback>);
}

struct by_future {
    template <class T, class Op>
    static T get(host&, Op op) {
        return op(asio::use_future).get();
    }
};

TEST_CASE_TEMPLATE("tokens: every operation takes use_future", Host, COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_future>);
}

struct by_deferred {
    template <class T, class Op>
    static T get(host& on, Op op) {
#if ASIO_VERSION >= 102600
        auto later = op(asio::deferred);
#else
        auto later = op(asio::experimental::deferred);
#endif
        return land<T>(on,
                       [&](auto&& handler) {
                           return std::move(later)(std::forward<decltype(handler)>(handler));
                       })
            .get();
    }
};

TEST_CASE_TEMPLATE("tokens: every operation takes deferred", Host, COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_deferred>);
}

#if ASIO_VERSION >= 102800
struct by_any_handler {
    template <class T, class Op>
    static T get(host& on, Op op) {
        const auto erase = [](auto handler) {
            return asio::any_completion_handler<void(std::exception_ptr, T)>(std::move(handler));
        };
        return land<T>([&on] { return on.here(); }, op, erase).get();
    }
};

TEST_CASE_TEMPLATE("tokens: every operation takes any_completion_handler", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_any_handler>);
}
#endif

}  // namespace

}  // namespace tokens_test
