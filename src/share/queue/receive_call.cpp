// SPDX-License-Identifier: BSL-1.0
#include "share/queue/receive_call.hpp"

#include "loop/waits/watcher.hpp"
#include "share/queue/received_message.hpp"
#include "share/queue/refused.hpp"

#include <exception>
#include <mutex>
#include <utility>

namespace cohort::share {
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
