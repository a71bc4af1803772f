// SPDX-License-Identifier: BSL-1.0
#include "behave.hpp"

#include "host.hpp"

#include <cohort/worker.hpp>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>

#include <unistd.h>

namespace chaos {

namespace {

void ignore_signals() {
    for (const int signo : {SIGINT, SIGTERM, SIGHUP})
        std::signal(signo, SIG_IGN);
}

}  // namespace

void report_role(const char* role) { ::dprintf(role_pipe_number, "%d %s\n", ::getpid(), role); }

/// The forked child makes async-signal-safe calls only.
void start_extra_process(extra_process extra) {
    if (extra == extra_process::none || ::fork() != 0)
        return;
    if (extra == extra_process::daemon && ::setsid() > 0 && ::fork() != 0)
        ::_exit(0);
    if (extra != extra_process::obeys)
        ignore_signals();
    if (extra == extra_process::is_stopped)
        ::raise(SIGSTOP);
    const char* then = extra == extra_process::is_busy ? "echo $$ child >&9; while :; do :; done"
                                                       : "echo $$ child >&9; exec sleep 1000";
    ::execl("/bin/sh", "sh", "-c", then, nullptr);
    ::_exit(127);
}

void behave(behaviour does) {
    switch (does) {
    case behaviour::obeys: {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any never;
        never.wait(lock, cohort::this_worker::stop_token(), [] { return false; });
        return;
    }
    case behaviour::ignores:
        ignore_signals();
        for (;;)
            ::pause();
    case behaviour::is_stopped:
        for (;;)
            ::raise(SIGSTOP);
    case behaviour::is_busy: {
        const char* const floods = std::getenv(flood_variable);
        for (volatile int turns = 0;;)
            if (turns = turns + 1; floods != nullptr && *floods == '1')
                ::dprintf(STDOUT_FILENO, "line %d\n", turns);
    }
    case behaviour::returns:
        return;
    case behaviour::fails:
        throw std::runtime_error("as planned");
    }
}

}  // namespace chaos
