// SPDX-License-Identifier: BSL-1.0
#include "base/sys/threads.hpp"

#include <doctest/doctest.h>

#include <future>
#include <thread>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace thread_test {

namespace {

/// How a thread is scheduled.
struct place {
    cpu_set_t processors;
    int policy = -1;
};

/// @param thread  0: this one
place place_of(pid_t thread) {
    place found;
    REQUIRE(::sched_getaffinity(thread, sizeof found.processors, &found.processors) == 0);
    found.policy = ::sched_getscheduler(thread);
    return found;
}

/// Starts a thread of the library, and looks how it is scheduled.
place place_of_new_thread() {
    std::promise<place> found;
    auto result = found.get_future();
    cohort::base::start_thread([&] { found.set_value(place_of(0)); });
    return result.get();
}

}  // namespace

TEST_CASE("thread: one that a bound thread starts has the processors of the main thread") {
    const auto main_thread = place_of(::getpid());
    place found{};
    std::thread([&] {
        int first = 0;
        while (!CPU_ISSET(first, &main_thread.processors))
            ++first;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
        found = place_of_new_thread();
    }).join();
    CHECK(CPU_EQUAL(&found.processors, &main_thread.processors));
}

TEST_CASE("thread: one has the scheduling policy of the main thread, not that of its starter") {
    const auto main_thread = place_of(::getpid());
    place found{};
    std::thread([&] {
        const sched_param none{};
        const int other = main_thread.policy == SCHED_BATCH ? SCHED_OTHER : SCHED_BATCH;
        REQUIRE(::sched_setscheduler(0, other, &none) == 0);
        found = place_of_new_thread();
    }).join();
    CHECK(found.policy == main_thread.policy);
}

TEST_CASE("thread: one has the priorities and the timer slack of the main thread") {
    const auto main_thread = cohort::base::thread_traits::of(::getpid());
    std::promise<cohort::base::thread_traits> found;
    auto result = found.get_future();
    std::thread([&] {
        // Only root may go back to a better nice value.
        if (::geteuid() == 0)
            REQUIRE(::setpriority(PRIO_PROCESS, 0, 19) == 0);
        REQUIRE(::syscall(SYS_ioprio_set, 1, 0, 3 << 13) == 0);  // idle
        REQUIRE(::prctl(PR_SET_TIMERSLACK, 1'000'000'000, 0, 0, 0) == 0);
        cohort::base::start_thread([&] { found.set_value(cohort::base::thread_traits::of(0)); });
        result.wait();
    }).join();
    const auto traits = result.get();
    CHECK(traits.scheduling == main_thread.scheduling);
    CHECK(traits.io_priority == main_thread.io_priority);
    CHECK(traits.timer_slack < 1'000'000'000);
}

}  // namespace thread_test
