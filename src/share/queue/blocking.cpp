// SPDX-License-Identifier: BSL-1.0
#include "share/queue/blocking.hpp"

#include "base/files/dispose.hpp"
#include "base/sys/descriptors.hpp"
#include "loop/waits/waiters.hpp"
#include "loop/waits/watcher.hpp"
#include "share/queue/end.hpp"
#include "share/queue/received.hpp"

#include <cohort/errors.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

#include <poll.h>

namespace cohort::share {
namespace {

using loop::poll_until;
using loop::stop_event;
using clock = std::chrono::steady_clock;

/// How many messages one call takes.
constexpr std::size_t most_of_a_call = 64;
/// How long a reader waits for the end of a close that hangs.
constexpr std::chrono::milliseconds longest_disposal{20};

/// The end of a wait, if it has come; done: it has not.
queue_answer end_of(const detail::patience& how_long) {
    if (how_long.stop.stop_requested())
        return queue_answer::stopped;
    if (how_long.deadline && clock::now() >= *how_long.deadline)
        return queue_answer::timed_out;
    return queue_answer::done;
}

std::optional<clock::time_point> earlier(std::optional<clock::time_point> deadline,
                                         clock::time_point other) {
    return deadline ? std::min(*deadline, other) : other;
}

/// Moves messages that are stored.
void take_stored(end::state& state, std::vector<detail::queue_message>& into, std::size_t at_most) {
    for (; into.size() < at_most && !state.stored.empty(); state.stored.pop_front())
        into.push_back(std::move(state.stored.front()));
}

/// Takes what is there, without waiting. For what is wrong with a packet behind others the next
/// call throws.
step take_some(end& from, end::state& state, std::unique_lock<std::mutex>& lock,
               std::vector<detail::queue_message>& into, std::size_t at_most) {
    step came = step::done;
    while (came == step::done && into.size() < at_most) {
        detail::queue_message one;
        try {
            came = take_one(from, state, lock, one);
        } catch (...) {
            if (into.empty())
                throw;
            state.wrong = std::current_exception();
            break;
        }
        if (came == step::done)
            into.push_back(std::move(one));
    }
    return into.empty() ? came : step::done;
}

/// Whether nothing but a packet can end the wait. Then the call blocks in recvmsg(2): the kernel
/// wakes only one of many waiting processes, and no system call is spent on a first try.
bool may_block(const end::state& state, const detail::patience& how_long) {
    return !how_long.deadline && !how_long.stop.stop_possible() && state.underway == 0;
}

/// An eventfd without a count that is written to when a message is stored. The state is locked.
/// @return -1: there is no room for one
int event_of_stored(end::state& state) noexcept {
    std::error_code error;
    if (!state.stored_event)
        state.stored_event = base::make_eventfd(error);
    if (!state.stored_event)
        return -1;
    base::drain_event(state.stored_event.get());
    return state.stored_event.get();
}

/// Waits for a packet and stores what it holds.
step await_packet(end& from, end::state& state, std::unique_lock<std::mutex>& lock,
                  const detail::patience& how_long, const channel& on) {
    const bool simple = may_block(state, how_long);
    // A handler that is destroyed gives its message back, and the socket shows no event then.
    const int stored = simple ? -1 : event_of_stored(state);
    incoming_of came(from);
    step result = step::must_wait;
    {
        const only_waiter waits(from, state, lock, only_waiter::how::waits);
        if (!simple) {
            const stop_event stop(how_long.stop);
            std::array events{pollfd{on.socket, POLLIN, 0}, pollfd{stored, POLLIN, 0},
                              pollfd{stop.descriptor(), POLLIN, 0}};
            (void)poll_until(
                events, stored >= 0 ? how_long.deadline
                                    : earlier(how_long.deadline, clock::now() + look_again_after));
        }
        result = receive(on, came, simple ? may_wait::yes : may_wait::no);
    }
    for (auto& message : came.messages)
        store(state, std::move(message));
    return result;
}

/// Notes that messages which were taken may come back.
void note_underway(end& from, end::state& state, std::vector<detail::queue_message>& taken) {
    const auto all = std::make_shared<const underway>(from, state);
    for (auto& message : taken)
        message.underway = all;
}

/// Whether a thread may receive now.
bool has_turn_at(const end::state& state) {
    return !state.thread_waits() && state.waiting.empty() && !has_many_unclosed(state);
}

/// Waits until another thread, or the engine, has stopped waiting for the socket, and until enough
/// of refused packets is closed.
void await_turn(end::state& state, std::unique_lock<std::mutex>& lock,
                const detail::patience& how_long) {
    const auto may_go_on = [&] {
        return has_turn_at(state) || !state.stored.empty() || state.wrong || !state.socket;
    };
    // Closes in the background notify without the lock, so perhaps before this thread waits: it
    // looks again after a while.
    const auto until = has_many_unclosed(state)
                           ? earlier(how_long.deadline, clock::now() + look_again_after)
                           : how_long.deadline;
    if (until)
        state.changed.wait_until(lock, how_long.stop, *until, may_go_on);
    else
        state.changed.wait(lock, how_long.stop, may_go_on);
}

}  // namespace

queue_answer receive_some(end& from, std::vector<detail::queue_message>& into, std::size_t at_most,
                          const detail::patience& how_long) {
    at_most = std::min(at_most, most_of_a_call);
    if (at_most == 0)
        return queue_answer::done;
    // Without this wait a fast reader would fill the table of descriptors with what comes along and
    // is not yet closed.
    if (!how_long.deadline || *how_long.deadline > clock::now())
        base::await_disposed(longest_disposal);
    const auto opened = from.open();
    const auto on = opened.borrow();
    end::state& state = from.here();
    into.reserve(at_most);  // so that no message is lost by bad_alloc
    std::unique_lock lock(state.mutex);
    for (;;) {
        // Who only tries takes no time, unless another process holds the socket.
        const auto is_tried = [&] { return state.at_socket == end::state::thread::tries; };
        if (is_tried())
            state.changed.wait_for(lock, look_again_after, [&] { return !is_tried(); });
        if (state.wrong)
            std::rethrow_exception(std::exchange(state.wrong, nullptr));
        const bool has_turn = has_turn_at(state);
        step came = step::must_wait;
        const bool waits_at_once =
            into.empty() && state.stored.empty() && may_block(state, how_long);
        if (has_turn && state.socket && !waits_at_once)
            came = take_some(from, state, lock, into, at_most);
        else
            take_stored(state, into, at_most);
        if (!into.empty()) {
            note_underway(from, state, into);
            return queue_answer::done;
        }
        if (came == step::over || !state.socket)
            return queue_answer::ended;
        if (const auto over = end_of(how_long); over != queue_answer::done)
            return over;
        if (!has_turn)
            await_turn(state, lock, how_long);
        else if (await_packet(from, state, lock, how_long, on) == step::over &&
                 state.stored.empty())
            return queue_answer::ended;
    }
}

queue_answer send(end& to, outgoing& message, const detail::patience& how_long) {
    const auto opened = to.open();
    const auto on = opened.borrow();
    std::optional<stop_event> stop;
    std::optional<receive_edge> received;
    auto look_after = look_again_after;
    for (;;) {
        const auto went = message.send(on);
        if (went == step::done)
            return queue_answer::done;
        if (went == step::over)
            throw broken_queue("cohort: put to a queue: no process reads from it any more");
        if (const auto over = end_of(how_long); over != queue_answer::done)
            return over;
        if (!stop)
            stop.emplace(how_long.stop);
        const bool for_slot = went == step::without_slot;
        if (for_slot && !received) {
            received.emplace(on.socket);
            continue;  // what was received before is no event
        }
        std::array events{
            pollfd{on.socket, static_cast<short>(went == step::must_wait ? POLLOUT : 0), 0},
            pollfd{for_slot ? received->descriptor() : -1, POLLIN, 0},
            pollfd{stop->descriptor(), POLLIN, 0}};
        (void)poll_until(events, earlier(how_long.deadline, clock::now() + look_after));
        const bool was_received = for_slot && events[1].revents != 0;
        if (was_received)
            received->clear();
        look_after = was_received ? soonest_look : std::min(2 * look_after, look_again_after);
    }
}

}  // namespace cohort::share
