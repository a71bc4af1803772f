// SPDX-License-Identifier: BSL-1.0
#include "worker/main/run.hpp"

#include "protocol/registry/exception.hpp"
#include "protocol/registry/registry.hpp"
#include "protocol/trace/stack.hpp"
#include "protocol/trace/throws.hpp"
#include "worker/crash/crash.hpp"
#include "worker/crash/crash_claim.hpp"
#include "worker/crash/terminate.hpp"
#include "worker/report/attachments.hpp"
#include "worker/report/exits.hpp"
#include "worker/report/report.hpp"
#include "worker/signals/stacks.hpp"
#include "worker/signals/stop_signal.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <system_error>

#include <cxxabi.h>
#include <unistd.h>

namespace cohort::worker {
namespace {

constinit report* running = nullptr;

/// @return whether this thread reports the end. Does not return if another thread, which crashed or
/// called std::terminate at the same time, came first: that thread ends the process.
bool reports_end(report& progress) noexcept {
    const auto who = progress.claim();
    if (who == report::reporter::other)
        wait_for_the_end();
    return who == report::reporter::me;
}

/// Calls exit(). noexcept, because run() must not catch what a static destructor throws. The call
/// goes by way of a variable, because the compiler assumes that exit() does not throw.
[[noreturn, gnu::noinline]] void leave(int status) noexcept {
    void (*volatile const leave_by)(int) = &std::exit;
    leave_by(status);
    ::_exit(status);
}

}  // namespace

void run(const protocol::mark& control, const std::function<detail::function_result()>& body) {
    auto& progress = *new report(control);  // handlers and other threads use it to the very end
    running = &progress;
    protocol::notify_when_own_code_begins([]() noexcept { running->called(); });
    protocol::begin_to_note_throws();
    report_terminate(progress);
    report_exit(progress);
    if (protocol::current_order()->crash_record != 0)
        report_crashes(progress);
    if (const int pipe = protocol::current_order()->stacks_fd; pipe >= 0)
        worker::report_stacks(pipe, protocol::current_order()->stacks_signal,
                              std::chrono::nanoseconds(protocol::current_order()->grace_period_ns));
    progress.entered();
    bool good = false;
    try {
        const auto result = body();
        // Sent before the result is noted, and in flight they need no worker: it may end at once.
        if (!result.attachments.empty())
            if (const auto error = send_attachments(*protocol::current_order(), result.attachments))
                throw std::system_error(error, "sending the descriptors that the result holds");
        good = !reports_end(progress) ||
               progress.returned(result, protocol::current_order()->result_limit);
    } catch (abi::__forced_unwind&) {
        throw;  // pthread_exit in the function: the process lives on as long as its other threads
    } catch (...) {
        if (reports_end(progress)) {
            const worker::stop_signal_hold later;
            progress.failed(protocol::payload_kind::raised,
                            protocol::time_of(std::current_exception()));
            progress.raised(protocol::describe_current_exception());
        }
    }
    leave(good ? 0 : 1);
}

}  // namespace cohort::worker
