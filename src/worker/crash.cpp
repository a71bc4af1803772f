// SPDX-License-Identifier: BSL-1.0
#include "trace/raw_json.hpp"
#include "trace/stack.hpp"
#include "worker/last_words.hpp"

#include <array>
#include <cstddef>

#include <csignal>
#include <unistd.h>

namespace cohort::worker {
namespace {

constexpr std::array signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr unsigned patience = 5;  // seconds, for a stack that the unwinder does not get through

// Not on the handler's stack, which may be small.
constinit trace::raw_json::memory memory{};
constinit trace::raw_stack stack{};

constinit first_thread crashing;
constinit report* current = nullptr;
alignas(16) constinit std::array<std::byte, 64 * 1024> handler_stack{};

void set_default(int signo) noexcept {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signo, &action, nullptr);
}

/// Ends the worker by the signal that is being handled, whichever thread gets it.
void end_by(int signo) noexcept {
    set_default(signo);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, signo);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(signo);
}

constinit int ending_signal = 0;

/// The unwinder hangs, as it may in a broken process: what is written must do.
extern "C" void cohort_crash_took_too_long(int) { end_by(ending_signal); }

void set_patience(int signo) noexcept {
    ending_signal = signo;
    struct sigaction action {};
    action.sa_handler = &cohort_crash_took_too_long;
    ::sigaction(SIGALRM, &action, nullptr);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGALRM);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::alarm(patience);
}

void tell(int signo, const siginfo_t& info, const void* context) noexcept {
    const int file = current->crash_file();
    if (file < 0)
        return;
    const bool has_address = signo != SIGABRT && info.si_code > 0;
    trace::raw_json json(memory, file, static_cast<off_t>(record::payload_offset));
    json.text("{\"signal\":").number(signo).text(",\"code\":").number(info.si_code);
    json.text(",\"address\":")
        .number(has_address ? reinterpret_cast<std::uintptr_t>(info.si_addr) : 0);
    json.text(",\"frames\":").flush();
    current->crashed(json.length());
    trace::capture_interrupted(stack, context);
    json.frames(stack.calls()).text("}").flush();
    current->crashed(json.length());
}

extern "C" void cohort_worker_crashed(int signo, siginfo_t* info, void* context) {
    if (crashing.is_this() && may_tell(*current)) {
        set_patience(signo);
        tell(signo, *info, context);
    }
    // An instruction that faults does so again when the handler returns, so that a core file shows
    // it; what was sent is sent once more.
    set_default(signo);
    if (info->si_code <= 0 || signo == SIGABRT)
        end_by(signo);
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
    current = &to;
    give_stack();
    for (const int signo : signals) {
        struct sigaction action {};
        if (::sigaction(signo, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
            action.sa_handler != SIG_DFL)
            continue;
        action = {};
        action.sa_sigaction = &cohort_worker_crashed;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        ::sigaddset(&action.sa_mask, SIGXFSZ);  // of a write beyond RLIMIT_FSIZE: an error will do
        ::sigaction(signo, &action, nullptr);
    }
}

}  // namespace cohort::worker
