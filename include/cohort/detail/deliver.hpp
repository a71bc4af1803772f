// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/outcome.hpp>

#include <asio/error.hpp>

#include <exception>
#include <optional>
#include <system_error>
#include <utility>

// How each operation's completion becomes the arguments of its handler. Runs on the handler's
// executor.
namespace cohort::detail::inline v0_1 {

/// The exception of a completion that carries no result: aborted or failed. Null for done and
/// time_up.
inline std::exception_ptr error_of(const completion& result) {
    if (result.what == completion::kind::failed)
        return result.not_started ? failure_of(*result.not_started) : result.error;
    if (result.what == completion::kind::aborted)
        return std::make_exception_ptr(std::system_error(asio::error::operation_aborted));
    return nullptr;
}

/// As error_of, with the group's own failure when it has ended with one.
inline std::exception_ptr error_or_failure_of(const completion& result) {
    if (auto error = error_of(result))
        return error;
    return result.end ? failure_of(result.end) : nullptr;
}

struct deliver_join {
    template <class Handler>
    void operator()(Handler&& handler, completion result) && {
        auto error = error_or_failure_of(result);
        const bool all_ended = !error && result.what == completion::kind::done;
        std::forward<Handler>(handler)(std::move(error), all_ended);
    }
};

struct deliver_report {
    template <class Handler>
    void operator()(Handler&& handler, completion result) && {
        auto error = error_of(result);
        std::forward<Handler>(handler)(std::move(error),
                                       result.end ? result.end->report : report());
    }
};

/// The report of run(): throws as join does.
struct deliver_success {
    template <class Handler>
    void operator()(Handler&& handler, completion result) && {
        auto error = error_or_failure_of(result);
        const bool failed = error != nullptr;
        std::forward<Handler>(handler)(std::move(error),
                                       result.end && !failed ? result.end->report : report());
    }
};

struct deliver_next {
    template <class Handler>
    void operator()(Handler&& handler, completion result) && {
        auto error = error_of(result);
        std::forward<Handler>(handler)(std::move(error), std::move(result.next));
    }
};

}  // namespace cohort::detail::inline v0_1
