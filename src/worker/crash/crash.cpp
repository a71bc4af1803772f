// SPDX-License-Identifier: BSL-1.0
#include "worker/crash/crash.hpp"

#include "protocol/registry/exception.hpp"
#include "protocol/registry/registry.hpp"
#include "protocol/trace/names.hpp"
#include "protocol/trace/stack.hpp"
#include "protocol/trace/throws.hpp"
#include "worker/signals/signals.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <exception>

#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::worker {

void first_thread::begin() noexcept {
    owner_ = ::getpid();
    first_.store(0);
}

bool first_thread::is_this() noexcept {
    if (::getpid() != owner_)
        return false;
    const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
    pid_t nobody = 0;
    if (first_.compare_exchange_strong(nobody, self))
        return true;
    if (nobody != self)
        wait_for_the_end();
    return false;  // the same thread has failed again while it dealt with its first failure
}

bool may_report(report& of) noexcept {
    const auto who = of.claim();
    if (who == report::reporter::other)
        of.await_reported();
    return who == report::reporter::me;
}

void wait_for_the_end() noexcept {
    for (;;)
        ::pause();
}

namespace {

constexpr std::array signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr std::chrono::seconds unwinding_timeout(
    5);  // for a broken stack, which the unwinder may never get through

// Not on the handler's stack, which may be small.
constinit protocol::raw_json::memory crash_memory{};
constinit protocol::raw_stack stack{};

constinit first_thread crashing;
constinit report* crash_report = nullptr;
alignas(16) constinit std::array<std::byte, 64 * 1024> handler_stack{};

constinit int ending_signal = 0;
constinit protocol::raw_json* unfinished = nullptr;
constinit std::atomic<pid_t> walker = 0;  // the thread that is capturing its own stack; 0: none
constinit std::chrono::steady_clock::time_point unwinding_ends{};

/// If the unwinder hangs, as it may in a broken process, the worker ends with what is written so
/// far. The time is checked because timers of the program may send this signal too.
extern "C" void cohort_crash_took_too_long(int) {
    if (std::chrono::steady_clock::now() >= unwinding_ends)
        worker::end_by(ending_signal);
}

pid_t this_thread() noexcept { return static_cast<pid_t>(::syscall(SYS_gettid)); }

void limit_unwinding(int signo) noexcept {
    ending_signal = signo;
    unwinding_ends = std::chrono::steady_clock::now() + unwinding_timeout;
    struct sigaction action {};
    action.sa_handler = &cohort_crash_took_too_long;
    ::sigaction(SIGALRM, &action, nullptr);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGALRM);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::alarm(static_cast<unsigned>(unwinding_timeout.count()));
}

void write_frames(protocol::raw_json& json) noexcept {
    json.frames(stack.calls()).text("}").flush();
    crash_report->crashed(json.length());
}

void report_crash(int signo, const siginfo_t& info, const void* context) noexcept {
    const int file = crash_report->crash_file();
    if (file < 0)
        return;
    crash_report->failed(protocol::payload_kind::crashed, std::chrono::steady_clock::now());
    const bool has_address = signo != SIGABRT && info.si_code > 0;
    protocol::raw_json json(crash_memory, file, static_cast<off_t>(protocol::payload_offset));
    json.text("{\"signal\":").number(signo).text(",\"code\":").number(info.si_code);
    json.text(",\"address\":")
        .number(has_address ? reinterpret_cast<std::uintptr_t>(info.si_addr) : 0);
    json.text(",\"frames\":").flush();
    crash_report->crashed(json.length());
    unfinished = &json;
    walker = this_thread();
    protocol::capture_interrupted(stack, context);
    walker = 0;
    write_frames(json);
}

extern "C" void cohort_worker_crashed(int signo, siginfo_t* info, void* context) {
    if (walker == this_thread()) {
        // The unwinder has faulted on a broken stack: report the frames that it has found so far.
        walker = 0;
        write_frames(*unfinished);
        worker::end_by(ending_signal);
    }
    if (crashing.is_this() && may_report(*crash_report)) {
        limit_unwinding(signo);
        worker::forgo_stop_signal();
        report_crash(signo, *info, context);
    }
    worker::take_back(SIGXFSZ);
    // A faulting instruction faults again when the handler returns, so that a core file shows it. A
    // signal that was sent, by another process or by abort(), is raised again.
    worker::set_default(signo);
    if (info->si_code <= 0 || signo == SIGABRT)
        worker::end_by(signo);
}

void give_stack() noexcept {
    stack_t now{};
    if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0)
        return;
    stack_t ours{};
    ours.ss_sp = handler_stack.data();
    ours.ss_size = handler_stack.size();
    ::sigaltstack(&ours, nullptr);
}

}  // namespace

void report_crashes(report& to) noexcept {
    crashing.begin();
    crash_report = &to;
    give_stack();
    for (const int signo : signals) {
        struct sigaction action {};
        if (signo == protocol::current_order()->stop_signal)
            continue;  // it asks the worker to stop, or triggers its stop token
        if (::sigaction(signo, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
            action.sa_handler != SIG_DFL)
            continue;
        action = {};
        action.sa_sigaction = &cohort_worker_crashed;
        // SA_NODEFER: the unwinding may fault, see cohort_worker_crashed().
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        ::sigaddset(&action.sa_mask, SIGXFSZ);  // a write beyond RLIMIT_FSIZE shall only fail
        ::sigaction(signo, &action, nullptr);
    }
}

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
