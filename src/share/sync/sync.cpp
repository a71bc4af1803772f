// SPDX-License-Identifier: BSL-1.0
#include "base/sys/descriptors.hpp"

#include "base/sys/threads.hpp"
#include "loop/waits/waiters.hpp"
#include "share/sync/wakeup.hpp"

#include <cohort/detail/encoder.hpp>
#include <cohort/detail/sync_handles.hpp>
#include <cohort/errors.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

namespace cohort::detail::inline v0_1 {

// Events: the state of an eventfd.

event_handle::event_handle() : wakeup_(share::wakeup::make(share::wakeup::kind::state)) {}

void event_handle::set() const { wakeup_->set(); }
void event_handle::clear() const { wakeup_->clear(); }

bool event_handle::is_set() const { return base::is_readable(*wakeup_->descriptor()); }

bool event_handle::wait(const patience& how_long) const {
    const auto descriptor = wakeup_->descriptor();
    const loop::stop_event stop(how_long.stop);
    for (;;) {
        std::array events{pollfd{*descriptor, POLLIN, 0}, pollfd{stop.descriptor(), POLLIN, 0}};
        (void)loop::poll_until(events, how_long.deadline);
        if ((events[0].revents & POLLIN) != 0)
            return true;
        if (how_long.stop.stop_requested())
            return false;
        if (how_long.deadline && std::chrono::steady_clock::now() >= *how_long.deadline)
            return false;
    }
}

shared_item event_handle::item() const {
    return {wakeup_->descriptor(), R"(,"kind":"event"})", {}};
}

void event_handle::write(encoder& to) const {
    to.array(2);
    to.unsigned_integer(to.attach(wakeup_->descriptor()));
    to.unsigned_integer(wakeup_->number());
}

event_handle event_handle::read(decoder& from) {
    from.array(2);
    const auto descriptor = from.descriptor(from.integer_as<std::uint64_t>());
    const auto number = from.integer_as<std::uint64_t>();
    return event_handle(share::wakeup::arrived(share::wakeup::kind::state, number, descriptor));
}

void await_event(const event_handle& event, const receiver& to) {
    const auto& at = event.waits_at();
    // Looked at while the wakeup is locked, which keeps its descriptor open.
    const int fd = *at->descriptor();
    at->wait({to,
              [fd] {
                  return base::is_readable(fd) ? std::optional<completion>(std::in_place)
                                               : std::nullopt;
              },
              {}});
}

void cancel_wait(const std::weak_ptr<void>& at, operation_id id) noexcept {
    if (const auto still = std::static_pointer_cast<share::wakeup>(at.lock()))
        still->cancel(id);
}

// Mutexes: robust ones of pthread, in shared memory.
namespace {

void check(int error, const char* call) {
    if (error != 0)
        throw std::system_error(error, std::system_category(), call);
}

pthread_mutex_t& mutex_in(const shared_memory& memory) noexcept {
    return *reinterpret_cast<pthread_mutex_t*>(memory.data());
}

/// @return whether the mutex is held now
mutex_answer answer_to(pthread_mutex_t& mutex, int error) {
    if (error == EBUSY || error == ETIMEDOUT)
        return mutex_answer::not_locked;
    if (error != EOWNERDEAD) {
        check(error, "cohort: mutex");
        return mutex_answer::locked;
    }
    check(::pthread_mutex_consistent(&mutex), "pthread_mutex_consistent");
    return mutex_answer::owner_died;
}

/// @param deadline  on CLOCK_MONOTONIC
int lock_until(pthread_mutex_t& mutex, const timespec& deadline) {
#if defined(__SANITIZE_THREAD__)
    // The ThreadSanitizer of GCC 12 does not see pthread_mutex_clocklock, and takes the unlock for
    // that of a mutex that nobody holds.
    timespec now{};
    for (;;) {
        if (const int error = ::pthread_mutex_trylock(&mutex); error != EBUSY)
            return error;
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        if (std::pair(now.tv_sec, now.tv_nsec) >= std::pair(deadline.tv_sec, deadline.tv_nsec))
            return ETIMEDOUT;
        ::sched_yield();
    }
#else
    return ::pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &deadline);
#endif
}

}  // namespace

mutex_handle::mutex_handle()
    : memory_(shared_memory::make(sizeof(pthread_mutex_t),
                                  share_options().strategy(sharing_strategy::file_descriptor))) {
    pthread_mutexattr_t how;
    check(::pthread_mutexattr_init(&how), "pthread_mutexattr_init");
    ::pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ERRORCHECK);
    const int error = ::pthread_mutex_init(&mutex_in(memory_), &how);
    ::pthread_mutexattr_destroy(&how);
    check(error, "pthread_mutex_init");
}

mutex_answer mutex_handle::lock() const {
    auto& mutex = mutex_in(memory_);
    return answer_to(mutex, ::pthread_mutex_lock(&mutex));
}

mutex_answer mutex_handle::try_lock() const {
    auto& mutex = mutex_in(memory_);
    const int error = ::pthread_mutex_trylock(&mutex);
    return answer_to(mutex, error == EDEADLK ? EBUSY : error);  // this thread, too, is somebody
}

mutex_answer mutex_handle::try_lock(steady_duration timeout) const {
    auto& mutex = mutex_in(memory_);
    return answer_to(mutex, lock_until(mutex, base::deadline_in(timeout)));
}

void mutex_handle::unlock() const noexcept { (void)::pthread_mutex_unlock(&mutex_in(memory_)); }

void mutex_handle::write(encoder& to) const {
    to.unsigned_integer(to.attach(memory_.descriptor()));
}

mutex_handle mutex_handle::read(decoder& from) {
    const auto descriptor = from.descriptor(from.integer_as<std::uint64_t>());
    if (!descriptor)
        throw codec_error("a mutex: its memory is missing");
    auto memory = shared_memory::arrived(descriptor);
    if (memory.access() != memory_access::read_write || memory.size() != sizeof(pthread_mutex_t))
        throw codec_error("a mutex: this is another piece of memory");
    return mutex_handle(std::move(memory));
}

}  // namespace cohort::detail::inline v0_1
