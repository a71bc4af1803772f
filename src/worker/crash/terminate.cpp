// SPDX-License-Identifier: BSL-1.0
#include "worker/crash/terminate.hpp"

#include "protocol/registry/exception.hpp"
#include "protocol/trace/stack.hpp"
#include "protocol/trace/throws.hpp"
#include "worker/crash/crash_claim.hpp"
#include "worker/signals/stop_signal.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>

namespace cohort::worker {
namespace {

constinit first_thread terminating;
constinit report* terminate_report = nullptr;
constinit std::terminate_handler previous = nullptr;

/// The exception that led to std::terminate; null: none did.
std::exception_ptr cause() noexcept {
    if (auto handled = std::current_exception())
        return handled;
    return std::uncaught_exceptions() > 0 ? protocol::last_thrown_here() : nullptr;
}

error_record describe(const std::exception_ptr& exception, const void* from) noexcept {
    if (exception) {
        try {
            std::rethrow_exception(exception);
        } catch (...) {
            return protocol::describe_current_exception();
        }
    }
    error_record error;
    try {
        error.type = "std::terminate";
        error.message = "called without an exception: a joinable std::thread was destroyed, a pure "
                        "virtual function was called, or the like";
        error.trace = error.type + ": " + error.message;
        protocol::raw_stack stack;
        protocol::capture_throw(stack, from);
        error.frames = protocol::locate(stack);
    } catch (...) {
        // No memory for all of it.
    }
    return error;
}

[[noreturn]] void on_terminate() {
    if (terminating.is_this() && may_report(*terminate_report)) {
        const worker::stop_signal_hold later;
        // Without an exception the kind is `raised`: the record itself says std::terminate.
        const auto exception = cause();
        // The time is now, not the throw's: a handled exception has affected no other worker.
        terminate_report->failed(exception ? protocol::payload_kind::terminated
                                           : protocol::payload_kind::raised,
                                 std::chrono::steady_clock::now());
        terminate_report->raised(describe(exception, __builtin_return_address(0)));
    }
    if (previous != nullptr)
        previous();
    std::abort();
}

}  // namespace

void report_terminate(report& to) noexcept {
    terminating.begin();
    terminate_report = &to;
    const auto before = std::set_terminate(&on_terminate);
    if (before != &on_terminate)
        previous = before;
}

}  // namespace cohort::worker
