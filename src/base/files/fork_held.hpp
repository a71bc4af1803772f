// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <pthread.h>

namespace cohort::base {

/// The only T of this process, never destroyed, because static arrays, events and queues end after
/// it. T has a member `mutex`. A fork holds it, because a copy that was made while another thread
/// changed the T would find it torn, and locked for ever. If T has a member becomes_copy(), the
/// copy calls it under the mutex.
///
/// Registered before the handlers that the engine registers at the first spawn, so a fork takes the
/// engine's locks first: nothing that takes those may be called under the mutex.
template <class T>
class fork_held {
public:
    static T& get() {
        static T& made = *new T;
        (void)&registered_;  // else it would not be initialised
        return made;
    }

private:
    static void lock() { get().mutex.lock(); }
    static void unlock() { get().mutex.unlock(); }
    static void unlock_in_copy() {
        if constexpr (requires { get().becomes_copy(); })
            get().becomes_copy();
        if constexpr (requires { get().mutex.unlock_in_copy(); })
            get().mutex.unlock_in_copy();
        else
            unlock();
    }

    static inline const int registered_ =
        (get(), ::pthread_atfork(&lock, &unlock, &unlock_in_copy));
};

}  // namespace cohort::base
