// SPDX-License-Identifier: BSL-1.0
#include "share/dispose.hpp"

#include "share/fork_held.hpp"
#include "sys/fork_mark.hpp"

#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <csignal>
#include <sys/socket.h>

namespace cohort::share {
namespace {

struct disposed {
    std::mutex mutex;
    std::vector<sys::unique_fd> waiting;
    bool has_thread = false;
    std::uint64_t generation = sys::process_generation();
};
disposed& all() { return fork_held<disposed>::get(); }

/// The numbers of a forked copy's parent may mean other files in the copy.
void forget_parents(disposed& of) {
    if (of.generation == sys::process_generation())
        return;
    of.generation = sys::process_generation();
    of.has_thread = false;
    for (auto& descriptor : std::exchange(of.waiting, {}))
        (void)descriptor.release();
}

void close_all() noexcept {
    for (;;) {
        std::vector<sys::unique_fd> now;
        {
            auto& from = all();
            const std::lock_guard guard(from.mutex);
            now.swap(from.waiting);
            if (now.empty()) {
                from.has_thread = false;
                return;
            }
        }
        // A lingering close of one socket would keep all others waiting.
        constexpr linger none{0, 0};
        for (const auto& descriptor : now)
            (void)::setsockopt(descriptor.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    }
}

/// With all signals blocked, because they are for the threads of the user.
void start_thread() {
    sigset_t before;
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    try {
        std::thread(close_all).detach();
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void dispose(sys::unique_fd descriptor) noexcept {
    if (!descriptor)
        return;
    try {
        auto& into = all();
        const std::lock_guard guard(into.mutex);
        forget_parents(into);
        into.waiting.push_back(std::move(descriptor));
        if (into.has_thread)
            return;
        start_thread();
        into.has_thread = true;
    } catch (const std::exception&) {  // no memory for the list: closed here; no thread: later
    }
}

}  // namespace cohort::share
