// SPDX-License-Identifier: BSL-1.0
#include <cohort/exit_status.hpp>

#include <csignal>

namespace cohort {
namespace {

/// The name that Python's signal.Signals gives, null for a number without one. A table of our own:
/// glibc's sigabbrev_np is missing elsewhere, and numbers differ between architectures.
const char* name_of(int signo) noexcept {
    struct entry {
        int signo;
        const char* name;
    };
#define COHORT_SIGNAL(s)                                                                           \
    { s, #s }
    static constexpr entry names[] = {
        COHORT_SIGNAL(SIGHUP),    COHORT_SIGNAL(SIGINT),  COHORT_SIGNAL(SIGQUIT),
        COHORT_SIGNAL(SIGILL),    COHORT_SIGNAL(SIGTRAP), COHORT_SIGNAL(SIGABRT),
        COHORT_SIGNAL(SIGBUS),    COHORT_SIGNAL(SIGFPE),  COHORT_SIGNAL(SIGKILL),
        COHORT_SIGNAL(SIGUSR1),   COHORT_SIGNAL(SIGSEGV), COHORT_SIGNAL(SIGUSR2),
        COHORT_SIGNAL(SIGPIPE),   COHORT_SIGNAL(SIGALRM), COHORT_SIGNAL(SIGTERM),
        COHORT_SIGNAL(SIGCHLD),   COHORT_SIGNAL(SIGCONT), COHORT_SIGNAL(SIGSTOP),
        COHORT_SIGNAL(SIGTSTP),   COHORT_SIGNAL(SIGTTIN), COHORT_SIGNAL(SIGTTOU),
        COHORT_SIGNAL(SIGURG),    COHORT_SIGNAL(SIGXCPU), COHORT_SIGNAL(SIGXFSZ),
        COHORT_SIGNAL(SIGVTALRM), COHORT_SIGNAL(SIGPROF), COHORT_SIGNAL(SIGWINCH),
        COHORT_SIGNAL(SIGIO),     COHORT_SIGNAL(SIGPWR),  COHORT_SIGNAL(SIGSYS),
#ifdef SIGSTKFLT
        COHORT_SIGNAL(SIGSTKFLT),
#endif
    };
#undef COHORT_SIGNAL
    for (const entry& known : names)
        if (known.signo == signo)
            return known.name;
    // These two are no constants, because glibc keeps the first real-time signals for itself.
    if (signo == SIGRTMIN)
        return "SIGRTMIN";
    return signo == SIGRTMAX ? "SIGRTMAX" : nullptr;
}

}  // namespace

exit_status exit_status::from_code(int code) noexcept {
    return exit_status(kind::exited, code, false);
}

exit_status exit_status::from_signal(int signo, bool core_dumped) noexcept {
    return exit_status(kind::signaled, signo, core_dumped);
}

int exit_status::exit_code() const noexcept {
    switch (kind_) {
    case kind::exited:
        return value_;
    case kind::signaled:
        return -value_;
    case kind::unknown:
        break;
    }
    return -1;
}

std::string exit_status::signal_name() const {
    if (!signaled())
        return {};
    if (const char* name = name_of(value_))
        return name;
    return "<Unknown signal " + std::to_string(value_) + ">";
}

std::string to_string(const exit_status& status) {
    if (!status.known())
        return "unknown";
    if (status.exited())
        return "exit code " + std::to_string(status.exit_code());
    return "signal " + status.signal_name() + (status.core_dumped() ? " (core dumped)" : "");
}

}  // namespace cohort
