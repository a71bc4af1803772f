// SPDX-License-Identifier: BSL-1.0
#include "base/files/dispose.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/fork_held.hpp"
#include "base/sys/fork_mark.hpp"
#include "base/sys/socket.hpp"
#include "base/sys/threads.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <sys/socket.h>

namespace cohort::base {
namespace {

using clock = std::chrono::steady_clock;

/// A close may hang for ever, then the next call starts one more thread. So many hanging closes end
/// the work of this queue.
constexpr int most_threads = 8;
constexpr auto longest_close = std::chrono::seconds(1);

struct disposed {
    std::mutex mutex;
    std::deque<base::unique_fd> descriptors;
    std::deque<std::shared_ptr<const void>> objects;
    int threads = 0;
    clock::time_point progress;  // when a thread last took something
    futex rests{0};              // how often nothing was left to do
    std::uint64_t generation = base::process_generation();
};
/// Whether this thread has given anything since it last waited.
thread_local constinit bool has_given = false;

disposed& all() { return fork_held<disposed>::get(); }

/// The numbers of a forked copy's parent may mean other files in the copy.
void forget_parents(disposed& of) {
    if (of.generation == base::process_generation())
        return;
    of.generation = base::process_generation();
    of.threads = 0;
    for (auto& descriptor : of.descriptors)
        (void)descriptor.release();
    of.descriptors.clear();
    (void)new auto(std::move(of.objects));  // they may own what is the parent's, too
    of.objects.clear();
}

/// @return whether there was something to take
bool take_one(base::unique_fd& descriptor, std::shared_ptr<const void>& object) {
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
        ++from.rests;
        wake(from.rests);
        return false;
    }
    return true;
}

bool may_hold_others(int descriptor) noexcept {
    int domain = 0;
    socklen_t length = sizeof domain;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
           domain == AF_UNIX;
}

void work_off() noexcept {
    for (;;) {
        base::unique_fd descriptor;
        std::shared_ptr<const void> object;
        if (!take_one(descriptor, object))
            return;
        if (descriptor)
            close_received(std::move(descriptor));
    }
}

void start_thread_if_needed(disposed& of) {
    const auto now = clock::now();
    const bool hangs = of.threads > 0 && now - of.progress > longest_close;
    if (of.threads > 0 && (!hangs || of.threads >= most_threads))
        return;
    base::start_thread(work_off);
    ++of.threads;
    of.progress = now;
}

/// @throws std::exception  there is no memory, then `given` is unchanged; or no thread can be
/// started, then it is in the list
template <class T>
void give(T& given, std::deque<T> disposed::*list) {
    auto& into = all();
    const std::lock_guard guard(into.mutex);
    forget_parents(into);
    (into.*list).emplace_back();
    (into.*list).back() = std::move(given);
    has_given = true;
    start_thread_if_needed(into);
}

}  // namespace

/// A lingering close of one socket would keep all others waiting.
void close_received(base::unique_fd descriptor) noexcept {
    std::optional<base::exiting_owner> closes;
    constexpr linger none{0, 0};
    if (may_hold_others(descriptor.get()))
        closes.emplace(descriptor.get());
    else
        (void)::setsockopt(descriptor.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    try {
        (void)own(std::move(descriptor));  // removes its name, too
    } catch (const std::exception&) {      // no memory: it is closed
    }
}

void dispose(base::unique_fd descriptor) noexcept {
    if (!descriptor)
        return;
    try {
        give(descriptor, &disposed::descriptors);
    } catch (const std::exception&) {
        (void)descriptor.release();  // if it is not yet in the list: closing it may wait
    }
}

void dispose(std::shared_ptr<const void> object) noexcept {
    if (!object)
        return;
    try {
        give(object, &disposed::objects);
    } catch (const std::exception&) {  // no thread: later; no memory: freed here
    }
}

void await_disposed(std::chrono::milliseconds longest) noexcept {
    if (!std::exchange(has_given, false))
        return;
    const auto deadline = deadline_in(longest);
    auto& of = all();
    for (;;) {
        const auto seen = of.rests.load();
        {
            const std::lock_guard guard(of.mutex);
            if (of.threads == 0 || of.generation != base::process_generation())
                return;
        }
        if (!wait_on(of.rests, seen, deadline))
            return;
    }
}

}  // namespace cohort::base
