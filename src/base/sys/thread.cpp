// SPDX-License-Identifier: BSL-1.0
#include "base/sys/thread.hpp"

#include "base/sys/signals_blocked.hpp"

#include <memory>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace cohort::base {

namespace {

/// Makes a new thread run where and as the main thread does, because the threads of the library
/// outlive the thread that happens to start them, which may be bound to one processor or have a
/// real-time priority. What can't be asked or is refused stays as the starting thread's.
void run_as_main_thread(pthread_attr_t& attributes) noexcept {
    const pid_t main_thread = ::getpid();
    cpu_set_t processors;
    if (::sched_getaffinity(main_thread, sizeof processors, &processors) == 0)
        pthread_attr_setaffinity_np(&attributes, sizeof processors, &processors);
    int policy = ::sched_getscheduler(main_thread);
    sched_param priority{};
    if (policy < 0 || ::sched_getparam(main_thread, &priority) != 0)
        return;
    if ((policy & SCHED_RESET_ON_FORK) != 0) {  // the main thread's own threads have neither
        policy = SCHED_OTHER;
        priority = {};
    }
    if (pthread_attr_setschedpolicy(&attributes, policy) == 0 &&
        pthread_attr_setschedparam(&attributes, &priority) == 0)
        pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
}

void* run(void* body) noexcept {
    const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(body));
    (*own)();
    return nullptr;
}

/// @return an error number
int start_detached(std::function<void()>* body, bool as_main_thread) noexcept {
    pthread_attr_t attributes;
    if (const int error = pthread_attr_init(&attributes))
        return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (as_main_thread)
        run_as_main_thread(attributes);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, &run, body);
    pthread_attr_destroy(&attributes);
    return error;
}

}  // namespace

void start_thread(std::function<void()> body) {
    signals_blocked blocked;  // the new thread inherits this thread's mask
    auto own = std::make_unique<std::function<void()>>(std::move(body));
    // The kernel may refuse the main thread's policy, so a thread without it is better than none.
    if (const int error = start_detached(own.get(), true);
        error != 0 && start_detached(own.get(), false) != 0)
        throw std::system_error(error, std::generic_category(), "pthread_create");
    (void)own.release();  // the thread's
}

}  // namespace cohort::base
