// SPDX-License-Identifier: BSL-1.0
#include "base/sys/thread.hpp"

#include "base/sys/signals_blocked.hpp"
#include "base/sys/small_file.hpp"
#include "base/sys/thread_traits.hpp"

#include <array>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sched.h>
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

}  // namespace cohort::base
