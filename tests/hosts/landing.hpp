// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts.hpp"

#include <exception>
#include <future>
#include <utility>

// Handlers that a case waits for, and that look where they are called.
namespace cohort::test {

/// How deep this thread is in calls that initiate operations.
inline thread_local int initiating = 0;

/// Calls `op(token)` as an initiation: no handler may be called inside.
template <class Op, class Token>
auto initiate(Op& op, Token&& token) {
    struct depth {
        depth() { ++initiating; }
        ~depth() { --initiating; }
    } const inside;
    return op(std::forward<Token>(token));
}

/// A handler that can only be moved: checks that it is called where `here()` is true, and not
/// inside an initiation; keeps what it is given for the future.
template <class T, class Here>
class landing {
public:
    landing(std::promise<T> promise, Here here)
        : promise_(std::move(promise)), here_(std::move(here)) {}

    void operator()(std::exception_ptr error, T value) {
        CHECK(here_());
        CHECK(initiating == 0);
        if (error)
            promise_.set_exception(std::move(error));
        else
            promise_.set_value(std::move(value));
    }

private:
    std::promise<T> promise_;
    Here here_;
};

/// Initiates `op` with a landing handler, to which `bind` may add something.
template <class T, class Here, class Op, class Bind>
std::future<T> land(Here here, Op op, Bind bind) {
    std::promise<T> promise;
    auto future = promise.get_future();
    initiate(op, bind(landing<T, Here>(std::move(promise), std::move(here))));
    return future;
}

/// A landing handler as it is, on the host.
template <class T, class Op>
std::future<T> land(host& on, Op op) {
    return land<T>([&on] { return on.here(); }, std::move(op),
                   [](auto handler) { return handler; });
}

inline std::future<cohort::group> start(host& on, const cohort::command& work, int count) {
    return land<cohort::group>(on, [&](auto&& token) {
        return cohort::async_spawn(on.executor(), work, cohort::options(count),
                                   std::forward<decltype(token)>(token));
    });
}

}  // namespace cohort::test
