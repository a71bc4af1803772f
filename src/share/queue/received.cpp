// SPDX-License-Identifier: BSL-1.0
#include "share/queue/received.hpp"

#include "base/files/dispose.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "loop/waits/watcher.hpp"
#include "share/channel/channel.hpp"
#include "share/queue/end.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

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

namespace {

/// Four packets, or a quarter of what this process may have.
constexpr std::uint64_t most_unclosed = 1012;

/// Closes descriptors when it is destroyed, which is in the background.
struct to_be_closed {
    to_be_closed(std::shared_ptr<end> by, std::vector<base::unique_fd> came)
        : of(std::move(by)), descriptors(std::move(came)) {
        of.lock()->here().refused.unclosed += descriptors.size();
    }
    to_be_closed(const to_be_closed&) = delete;
    to_be_closed& operator=(const to_be_closed&) = delete;
    ~to_be_closed() {
        for (auto& descriptor : descriptors)
            base::close_received(std::move(descriptor));
        const auto still = of.lock();
        if (!still)
            return;
        auto& state = still->here();
        state.refused.unclosed -= descriptors.size();
        state.changed.notify_all();
        try {
            if (state.refused.are_awaited.exchange(false))
                loop::serve_soon(still);
        } catch (const std::exception&) {  // no engine: nobody is in line
        }
    }
    std::weak_ptr<end> of;
    std::vector<base::unique_fd> descriptors;
};

}  // namespace

incoming_of::~incoming_of() {
    if (refused.empty())
        return;
    try {
        base::dispose(
            std::make_shared<const to_be_closed>(of.shared_from_this(), std::move(refused)));
    } catch (const std::exception&) {  // no memory
        for (auto& descriptor : refused)
            base::dispose(std::move(descriptor));
    }
}

bool has_many_unclosed(const end::state& state) noexcept {
    const auto unclosed = state.refused.unclosed.load();
    return unclosed > 0 && unclosed >= std::min(most_unclosed, base::descriptor_limit() / 4);
}

bool await_closes(end::state& state) noexcept {
    if (!has_many_unclosed(state))
        return false;
    state.refused.are_awaited = true;
    return has_many_unclosed(state);
}

namespace {

/// What the receive has come to.
struct received {
    explicit received(end& by, const end::state& state) : from(by.opened(state)), came(by) {}
    end::open_descriptors from;
    incoming_of came;
    step result = step::must_wait;
    std::exception_ptr wrong;

    void receive_now() noexcept {
        try {
            result = receive(from.borrow(), came, may_wait::no);
        } catch (...) {
            wrong = std::current_exception();
        }
    }
};

void take(end& into, received& from) {
    end::state& state = into.here();
    const std::lock_guard guard(state.mutex);
    state.at_socket = end::state::thread::none;
    for (auto& message : from.came.messages)
        store(state, std::move(message));
    if (from.wrong)
        state.wrong = std::move(from.wrong);
    state.changed.notify_all();
}

}  // namespace

bool would_receive(const end& which, const end::state& state) noexcept {
    return which.which() == end::side::reader && which.is_given_away() && state.socket &&
           state.stored.empty() && !state.wrong && !state.thread_waits();
}

void receive_in_call(const std::shared_ptr<end>& which, end::state& state,
                     base::callback<void(step)> then) {
    auto& runtime = loop::watcher::own().runtime();
    runtime.start_output();
    const auto answer = std::make_shared<received>(*which, state);
    const auto taken = [which, answer, then = std::move(then)] {
        take(*which, *answer);
        then(answer->result);
    };
    runtime.output().post([&runtime, answer, taken] {
        runtime.output().call(
            [answer] {
                answer->receive_now();
                return 0;
            },
            [&runtime, taken](int) { runtime.loop().post(taken); });
    });
    state.at_socket = end::state::thread::tries;
}

}  // namespace cohort::share
