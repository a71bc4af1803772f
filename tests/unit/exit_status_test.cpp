// SPDX-License-Identifier: BSL-1.0
#include <cohort/exit_status.hpp>

#include <doctest/doctest.h>

#include <csignal>

namespace exit_status_test {

using cohort::exit_status;

TEST_CASE("exit status: a default one is unknown") {
    const exit_status status;
    CHECK_FALSE(status.known());
    CHECK_FALSE(status.success());
    CHECK_FALSE(status.exited());
    CHECK_FALSE(status.signaled());
    CHECK(status.exit_code() == -1);
    CHECK(status.signal() == 0);
    CHECK(status.signal_name().empty());
    CHECK(to_string(status) == "unknown");
}

TEST_CASE("exit status: a code stays a code even if it looks like a signal") {
    const auto status = exit_status::from_code(9);
    CHECK(status.known());
    CHECK(status.exited());
    CHECK_FALSE(status.success());
    CHECK_FALSE(status.signaled());
    CHECK(status.exit_code() == 9);
    CHECK(status.signal() == 0);
    CHECK(status.signal_name().empty());
    CHECK(to_string(status) == "exit code 9");
    CHECK(exit_status::from_code(0).success());
    CHECK(status != exit_status::from_signal(9, false));
}

TEST_CASE("exit status: a signal has a negative exit code and a name") {
    const auto status = exit_status::from_signal(SIGSEGV, true);
    CHECK(status.known());
    CHECK(status.signaled());
    CHECK_FALSE(status.exited());
    CHECK(status.exit_code() == -SIGSEGV);
    CHECK(status.core_dumped());
    CHECK(to_string(status) == "signal SIGSEGV (core dumped)");
    CHECK(to_string(exit_status::from_signal(SIGKILL, false)) == "signal SIGKILL");
}

TEST_CASE("exit status: signal names are those of Python's signal.Signals") {
    const auto name = [](int signo) {
        return exit_status::from_signal(signo, false).signal_name();
    };
    CHECK(name(SIGABRT) == "SIGABRT");
    CHECK(name(SIGCHLD) == "SIGCHLD");
    CHECK(name(SIGIO) == "SIGIO");
    CHECK(name(SIGSYS) == "SIGSYS");
    CHECK(name(SIGSTKFLT) == "SIGSTKFLT");
    CHECK(name(32) == "<Unknown signal 32>");
    CHECK(name(34) == "SIGRTMIN");
    CHECK(name(35) == "<Unknown signal 35>");
    CHECK(name(63) == "<Unknown signal 63>");
    CHECK(name(64) == "SIGRTMAX");
    CHECK(name(65) == "<Unknown signal 65>");
    for (int signo = 1; signo < 32; ++signo)
        CHECK(name(signo).starts_with("SIG"));
}

}  // namespace exit_status_test
