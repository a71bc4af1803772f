// SPDX-License-Identifier: BSL-1.0
#include "bare_worker.hpp"
#include "reporter.hpp"

#include <csignal>

namespace stop_signal_test {

using namespace cohort;
using namespace bare_worker;

TEST_CASE("stop signal: the stop token fires on the stop signal, and the worker ends by itself") {
    const end e = run_worker("until_stopped");
    CHECK(e.exited_with(0));
    CHECK(e.result<std::string>() == "stopped");
}

TEST_CASE("stop signal: the stop signal ends the worker unless it has asked for its token") {
    const end e = run_worker("die_of_signal");
    CHECK(e.ended_by(SIGTERM));
    CHECK(e.contents().kind == protocol::payload_kind::none);
}

TEST_CASE("stop signal: the program's own handler is left alone") {
    CHECK(run_worker("own_handler").result<std::string>() == "left alone");
}

TEST_CASE("stop signal: a forked copy of the worker still dies of the signal") {
#ifdef __SANITIZE_THREAD__
    return cohort::test::skip("ThreadSanitizer ends a forked copy of a process with threads");
#endif
    CHECK(run_worker("forked_copy").result<int>() == SIGTERM);
}

TEST_CASE("stop signal: the library's hook runs, then the worker ends by the signal") {
    const end e = run_worker("hook_then_signal");
    CHECK(e.output == "hook ran\n");
    CHECK(e.ended_by(SIGTERM));
}

TEST_CASE("stop signal: with a token the hook runs and the worker lives on") {
    const end e = run_worker("hook_and_token");
    CHECK(e.exited_with(0));
    CHECK(e.result<std::string>() == "both");
}

}  // namespace stop_signal_test
