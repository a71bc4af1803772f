// SPDX-License-Identifier: BSL-1.0
#include "share/queue/received_message.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "loop/waits/watcher.hpp"
#include "share/channel/channel.hpp"
#include "share/queue/only_waiter.hpp"
#include "share/queue/refused.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace cohort::share {

namespace {

step receive_now(end& from, end::state& state, std::unique_lock<std::mutex>& lock, incoming& into) {
    if (!from.is_given_away())
        return receive(from.channel_of(state), into, may_wait::no);
    const auto opened = from.opened(state);
    const only_waiter tries(from, state, lock, only_waiter::how::tries);
    return receive(opened.borrow(), into, may_wait::no);
}

}  // namespace

step take_one(end& from, end::state& state, std::unique_lock<std::mutex>& lock,
              detail::queue_message& into) {
    if (state.stored.empty()) {
        if (!state.socket)
            return step::over;
        incoming_of came(from);
        const auto result = receive_now(from, state, lock, came);
        for (auto& message : came.messages)
            store(state, std::move(message));
        if (result != step::done)
            return result;
        if (state.stored.empty())
            return step::must_wait;  // an empty batch
    }
    into = std::move(state.stored.front());
    state.stored.pop_front();
    return step::done;
}

void store(end::state& state, detail::queue_message&& message) {
    if (message.number == 0)
        message.number = ++state.received;
    const auto place =
        std::ranges::upper_bound(state.stored, message.number, {}, &detail::queue_message::number);
    state.stored.insert(place, std::move(message));
    wake_threads(state);
}

void wake_threads(end::state& state) noexcept {
    state.changed.notify_all();
    if (state.thread_waits() && state.stored_event)
        base::raise_event(state.stored_event.get());
}

underway::~underway() {
    if (generation_ != base::process_generation())
        return;
    end::state& state = of_->here();
    const std::lock_guard guard(state.mutex);
    --state.underway;
}

received_message::received_message(std::shared_ptr<end> from, end::state& state,
                                   detail::queue_message message)
    : from_(std::move(from)), generation_(state.generation), message_(std::move(message)),
      underway_(std::make_shared<const underway>(*from_, state)) {}

received_message::~received_message() {
    // In a forked copy the message is the parent's.
    if (from_ && generation_ == base::process_generation())
        give_back();
}

/// Stores the message again, unless something is wrong with it.
void received_message::give_back() noexcept {
    const auto from = std::exchange(from_, nullptr);
    end::state& state = from->here();
    const auto until_stored = std::move(underway_);  // ends after the lock
    std::unique_lock lock(state.mutex);
    if (wrong_)
        return;
    store(state, std::move(message_));
    const bool is_awaited = !state.waiting.empty();
    lock.unlock();
    if (is_awaited)
        loop::serve_soon(from);
}

detail::taken_message received_message::take() {
    if (!from_ || generation_ != base::process_generation())
        throw std::logic_error("cohort: this value of a queue belongs to another process, or was "
                               "taken before");
    load_early();
    try {
        if (!wrong_ && !load(message_, from_->about().make)) {
            give_back();
            refuse_for_now();
        }
    } catch (...) {
        if (!from_)  // it was given back
            throw;
        wrong_ = std::current_exception();
    }
    auto from = std::exchange(from_, nullptr);
    message_.underway = std::move(underway_);
    if (wrong_)
        std::rethrow_exception(std::exchange(wrong_, nullptr));
    return {std::move(message_), detail::queue_end(std::move(from))};
}

void received_message::load_early() noexcept {
    if (wrong_ || !from_)
        return;
    try {
        load_payload(message_, from_->about().make);
    } catch (...) {
        wrong_ = std::current_exception();
    }
}

bool received_message::is_quick() const noexcept {
    return !message_.arrived || !message_.arrived->spilled ||
           message_.arrived->spilled_size <= largest_quick_payload;
}

}  // namespace cohort::share
