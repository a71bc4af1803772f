// SPDX-License-Identifier: BSL-1.0
// The handles of one end, behind queue_reader and queue_writer.
#include "base/files/fork_held.hpp"
#include "loop/waits/watcher.hpp"
#include "share/channel/channel.hpp"
#include "share/channel/packet.hpp"
#include "share/queue/blocking.hpp"
#include "share/queue/passing.hpp"
#include "share/queue/received_message.hpp"

#include <cohort/detail/encoder.hpp>
#include <cohort/detail/queue_end.hpp>
#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cohort::share {

namespace {

constexpr std::size_t largest_batch = 32 << 10;
/// One call brings no more payloads into memory than this, because many of them may be in one file.
constexpr std::size_t most_loaded = std::size_t{64} << 20;

/// Locks under which handles are closed, and copied for a call. A handle has one of a few, so that
/// threads with handles of their own seldom wait for each other.
struct handle_locks {
    struct all {
        std::array<std::mutex, 16> each;
        void lock() {
            for (auto& one : each)
                one.lock();
        }
        void unlock() {
            for (auto& one : each)
                one.unlock();
        }
    } mutex;
};

std::mutex& lock_of(const detail::queue_end& handle) noexcept {
    auto& locks = base::fork_held<handle_locks>::get().mutex.each;
    return locks[reinterpret_cast<std::uintptr_t>(&handle) / sizeof handle % locks.size()];
}

detail::queue_end copy_of(const detail::queue_end& handle) {
    const std::lock_guard guard(lock_of(handle));
    return handle;
}

/// Lets those who wait at an end see what came back. The state is locked by `lock`.
void wake(const std::shared_ptr<end>& which, std::unique_lock<std::mutex>& lock) {
    end::state& state = which->here();
    wake_threads(state);
    const bool is_awaited = !state.waiting.empty();
    lock.unlock();
    if (is_awaited)
        loop::serve_soon(which);
}

void next_throws(const std::shared_ptr<end>& which, std::exception_ptr wrong) {
    end::state& state = which->here();
    std::unique_lock lock(state.mutex);
    if (!state.wrong)
        state.wrong = std::move(wrong);
    wake(which, lock);
}

}  // namespace
}  // namespace cohort::share

namespace cohort::detail::inline v0_1 {

using namespace share;

queue_end used(const queue_end& end) {
    auto held = copy_of(end).lock();
    if (!held)
        throw std::logic_error("cohort: this handle is of no queue, or was closed");
    return queue_end(std::move(held));
}

void queue_end::close() noexcept {
    lendable<share::end> closed;  // destroyed after the lock is released
    const std::lock_guard guard(lock_of(*this));
    std::swap(closed, end_);
}

std::size_t checked_capacity(std::size_t capacity) {
    if (capacity == 0)
        throw std::invalid_argument("cohort: a queue of capacity 0 takes no value");
    // What a negative number becomes.
    if (capacity > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()))
        throw std::invalid_argument(
            fmt::format("cohort: a queue of capacity {}: the capacity must be positive",
                        static_cast<std::ptrdiff_t>(capacity)));
    return capacity;
}

queue_answer queue_end::receive(std::vector<queue_message>& into, std::size_t at_most,
                                const patience& how_long) const {
    const auto answer = receive_some(*end_, into, at_most, how_long);
    std::size_t loaded = 0;
    for (auto at = into.begin(); at != into.end(); ++at) {
        if (!at->arrived)
            continue;
        const bool is_first = at == into.begin();
        loaded += at->arrived->spilled ? static_cast<std::size_t>(at->arrived->spilled_size) : 0;
        std::exception_ptr wrong;
        auto rest = at;
        try {
            if ((is_first || loaded <= most_loaded) && load(*at, end_->about().make))
                continue;
        } catch (...) {
            wrong = std::current_exception();
            ++rest;
        }
        give_back(std::span(rest, into.end()));
        if (is_first && wrong)
            std::rethrow_exception(wrong);
        if (is_first)
            refuse_for_now();
        if (wrong)
            next_throws(get(), std::move(wrong));
        into.erase(at, into.end());
        break;
    }
    return answer;
}

void queue_end::give_back(std::span<queue_message> messages) const {
    if (messages.empty())
        return;
    const auto until_stored = messages.front().underway;
    share::end::state& state = end_->here();
    std::unique_lock lock(state.mutex);
    for (auto& message : messages) {
        message.underway.reset();
        store(state, std::move(message));
    }
    wake(get(), lock);
}

queue_answer queue_end::send(queue_message message, const patience& how_long) const {
    outgoing packet(std::move(message), end_->open().borrow());
    return share::send(*end_, packet, how_long);
}

void queue_end::send_all(std::vector<queue_message> messages) const {
    const auto endless = patience::endless();
    const auto largest = std::min(largest_batch, end_->about().largest_inlined);
    batch_writer batch;
    std::uint64_t type = 0;
    const auto send_batch = [&] {
        if (batch.count() == 0)
            return;
        outgoing packet(std::exchange(batch, {}).take(), type);
        share::send(*end_, packet, endless);
    };
    for (auto& message : messages) {
        const bool fits = end_->about().capacity == 0 && message.attachments.empty() &&
                          message.bytes.size() < largest;
        if (batch.count() == most_in_batch || !fits ||
            batch.bytes().size() + message.bytes.size() > largest)
            send_batch();
        type = message.type;
        if (fits)
            batch.add(message.bytes);
        else
            send(std::move(message), endless);
    }
    send_batch();
}

void queue_end::write(encoder& to) const {
    const auto copy = copy_of(*this);
    const auto end = copy.lock();
    if (!end && copy.end_.is_gone())
        throw gone_end();
    if (!end)
        return to.null();
    note_sharing(*end);
    to.array(1 + 2 + 4);
    to.boolean(end->which() == queue_side::writer);
    write_end(to, end->open());
    write_description(to, end->about());
}

queue_end queue_end::read(decoder& from, queue_side side, const queue_description& expected) {
    if (from.take_null())
        return {};
    from.array(1 + 2 + 4);
    if (from.boolean() != (side == queue_side::writer))
        throw codec_error("the other end of a queue");
    // The description stands behind the descriptors.
    decoder descriptors = from;
    from.value();
    from.value();
    const auto about = read_description(from, expected);
    return queue_end(read_end(descriptors, side, about));
}

shared_item queue_end::item(const char* kind) const {
    const auto opened = end_->open();
    if (opened.slots)
        throw std::invalid_argument("cohort: share(): a queue with a capacity; a command does not "
                                    "know how to keep that");
    note_sharing(*end_);
    return {nullptr, fmt::format(R"(,"kind":"{}"}})", kind), opened.socket};
}

}  // namespace cohort::detail::inline v0_1
