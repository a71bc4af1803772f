// SPDX-License-Identifier: BSL-1.0
#include "share/dispose.hpp"

#include "share/descriptor.hpp"
#include "share/fork_held.hpp"
#include "sys/fork_mark.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <csignal>
#include <sys/socket.h>

namespace cohort::share {
namespace {

using clock = std::chrono::steady_clock;

/// A close may hang for ever, then the next call starts one more thread. So many hanging closes end
/// the work of this queue.
constexpr int most_threads = 8;
constexpr auto longest_close = std::chrono::seconds(1);

struct disposed {
    std::mutex mutex;
    std::deque<sys::unique_fd> descriptors;
    std::deque<std::shared_ptr<const void>> objects;
    int threads = 0;
    clock::time_point progress;  // when a thread last took something
    std::uint64_t generation = sys::process_generation();
};
disposed& all() { return fork_held<disposed>::get(); }

/// The numbers of a forked copy's parent may mean other files in the copy.
void forget_parents(disposed& of) {
    if (of.generation == sys::process_generation())
        return;
    of.generation = sys::process_generation();
    of.threads = 0;
    for (auto& descriptor : of.descriptors)
        (void)descriptor.release();
    of.descriptors.clear();
    (void)new auto(std::move(of.objects));  // they may own what is the parent's, too
    of.objects.clear();
}

/// @return whether there was something to take
bool take_one(sys::unique_fd& descriptor, std::shared_ptr<const void>& object) {
    auto& from = all();
    const std::lock_guard guard(from.mutex);
    from.progress = clock::now();
    if (!from.descriptors.empty()) {
        descriptor = std::move(from.descriptors.front());
        from.descriptors.pop_front();
    } else if (!from.objects.empty()) {
        object = std::move(from.objects.front());
        from.objects.pop_front();
    } else {
        --from.threads;
        return false;
    }
    return true;
}

void work_off() noexcept {
    for (;;) {
        sys::unique_fd descriptor;
        std::shared_ptr<const void> object;
        if (!take_one(descriptor, object))
            return;
        // A lingering close of one socket would keep all others waiting.
        constexpr linger none{0, 0};
        if (descriptor)
            (void)::setsockopt(descriptor.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
        try {
            if (descriptor)
                (void)own(std::move(descriptor));  // removes its name, too
        } catch (const std::exception&) {          // no memory: it is closed
        }
    }
}

/// With all signals blocked, because they are for the threads of the user.
void start_thread() {
    sigset_t before;
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    try {
        std::thread(work_off).detach();
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void start_thread_if_needed(disposed& of) {
    const auto now = clock::now();
    const bool hangs = of.threads > 0 && now - of.progress > longest_close;
    if (of.threads > 0 && (!hangs || of.threads >= most_threads))
        return;
    start_thread();
    ++of.threads;
    of.progress = now;
}

}  // namespace

void dispose(sys::unique_fd descriptor) noexcept {
    if (!descriptor)
        return;
    try {
        auto& into = all();
        const std::lock_guard guard(into.mutex);
        forget_parents(into);
        into.descriptors.emplace_back();
        into.descriptors.back() = std::move(descriptor);
        start_thread_if_needed(into);
    } catch (const std::exception&) {
        (void)descriptor.release();  // if it is not yet in the list: closing it may wait
    }
}

void dispose(std::shared_ptr<const void> object) noexcept {
    if (!object)
        return;
    try {
        auto& into = all();
        const std::lock_guard guard(into.mutex);
        forget_parents(into);
        into.objects.emplace_back();
        into.objects.back() = std::move(object);
        start_thread_if_needed(into);
    } catch (const std::exception&) {  // no thread: later; no memory: freed here
    }
}

}  // namespace cohort::share
