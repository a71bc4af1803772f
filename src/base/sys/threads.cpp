// SPDX-License-Identifier: BSL-1.0
#include "base/sys/threads.hpp"

#include "base/sys/processes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <memory>
#include <system_error>
#include <utility>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace cohort::base {

namespace {

/// Makes this new thread run where and as the main thread does, because the threads of the library
/// outlive the thread that happens to start them, which may be bound to one processor, have a
/// real-time priority or a low one. What can't be asked or is refused stays as the starting
/// thread's.
void run_as_main_thread() noexcept {
    constexpr long usual_slack = 50'000;  // the kernel's
    const pid_t main_thread = ::getpid();
    cpu_set_t processors;
    if (::sched_getaffinity(main_thread, sizeof processors, &processors) == 0)
        ::sched_setaffinity(0, sizeof processors, &processors);
    auto traits = thread_traits::of(main_thread);
    if (thread_traits::of(0).timer_slack != usual_slack) {
        std::array<char, 32> room;
        const auto text = read_start("/proc/self/timerslack_ns", room);
        traits.timer_slack = usual_slack;  // only a privileged thread may read that of another one
        std::from_chars(text.data(), text.data() + text.size(), traits.timer_slack);
    }
    traits.take();
}

void* run(void* body) noexcept {
    const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(body));
    run_as_main_thread();
    (*own)();
    return nullptr;
}

/// @return an error number
int start_detached(std::function<void()>* body) noexcept {
    pthread_attr_t attributes;
    if (const int error = pthread_attr_init(&attributes))
        return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, &run, body);
    pthread_attr_destroy(&attributes);
    return error;
}

}  // namespace

void start_thread(std::function<void()> body) {
    signals_blocked blocked;  // the new thread inherits this thread's mask
    auto own = std::make_unique<std::function<void()>>(std::move(body));
    if (const int error = start_detached(own.get()))
        throw std::system_error(error, std::generic_category(), "pthread_create");
    (void)own.release();  // the thread's
}

namespace {

constexpr int who_process = 1;  // of ioprio_get(2)
constexpr int class_shift = 13;
constexpr std::uint64_t reset_on_fork = 1;
constexpr std::uint32_t sched_deadline = 6;

bool is_realtime(std::uint32_t policy) noexcept {
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == sched_deadline;
}

thread_traits::scheduling_attributes scheduling_of(pid_t thread) noexcept {
    thread_traits::scheduling_attributes found;
    if (::syscall(SYS_sched_getattr, thread, &found, sizeof found, 0) != 0)
        return {};
    thread_traits::scheduling_attributes handed_on;
    handed_on.size = sizeof handed_on;
    const bool is_reset = (found.flags & reset_on_fork) != 0;
    if (!is_reset || !is_realtime(found.policy)) {
        handed_on.policy = found.policy;
        handed_on.nice = is_reset ? std::max(found.nice, 0) : found.nice;
        handed_on.priority = found.priority;
    }
    return handed_on;
}

}  // namespace

thread_traits thread_traits::of(pid_t thread) noexcept {
    thread_traits found;
    found.scheduling = scheduling_of(thread);
    // Without a class the level means nothing, and not all kernels take it back.
    found.io_priority = ::syscall(SYS_ioprio_get, who_process, thread);
    if (found.io_priority >> class_shift == 0)
        found.io_priority = 0;
    if (thread == 0)
        found.timer_slack = std::max(::syscall(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0), 0L);
    return found;
}

void thread_traits::take() const noexcept {
    const auto own = of(0);
    if (scheduling.size != 0 && scheduling != own.scheduling)
        ::syscall(SYS_sched_setattr, 0, &scheduling, 0);
    if (io_priority >= 0 && io_priority != own.io_priority)
        ::syscall(SYS_ioprio_set, who_process, 0, io_priority);
    if (timer_slack > 0 && timer_slack != own.timer_slack)
        ::syscall(SYS_prctl, PR_SET_TIMERSLACK, timer_slack, 0, 0, 0);
}

namespace {

sigset_t the_signal() noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

}  // namespace

no_file_size_signal::no_file_size_signal() noexcept {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    const auto blocked = the_signal();
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

no_file_size_signal::~no_file_size_signal() {
    const int error = errno;
    const auto awaited = the_signal();
    const timespec at_once{};
    if (!was_pending_)
        (void)sigtimedwait(&awaited, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
}

void wait_on(const futex& word, std::uint32_t seen) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

bool wait_on(const futex& word, std::uint32_t seen, const timespec& deadline) noexcept {
    // Unlike FUTEX_WAIT this takes a point in time, so that a signal does not prolong the wait.
    return ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen, &deadline, nullptr,
                     FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}

void wake(const futex& word) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

timespec deadline_in(std::chrono::nanoseconds timeout) noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    timeout = std::max(timeout, std::chrono::nanoseconds(0));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
    now.tv_sec += seconds.count();
    now.tv_nsec += (timeout - seconds).count();
    if (now.tv_nsec >= std::nano::den) {
        now.tv_nsec -= std::nano::den;
        ++now.tv_sec;
    }
    return now;
}

}  // namespace cohort::base
