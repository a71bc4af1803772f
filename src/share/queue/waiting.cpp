// SPDX-License-Identifier: BSL-1.0
// The awaited calls: tried at once on the caller's thread, completed later by the engine's.
#include "base/files/settings.hpp"
#include "loop/waits/watcher.hpp"
#include "share/queue/end.hpp"
#include "share/queue/received.hpp"

#include <cohort/detail/duration.hpp>
#include <cohort/errors.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace cohort::share {
namespace {

using namespace std::chrono_literals;
using detail::completion;
using detail::completion_of;
using detail::receiver;
using loop::complete;
using loop::serve_soon;
using loop::watcher;

/// How many operations of one end are completed in one go, so that other ends and groups do not
/// wait for it.
constexpr int most_at_once = 64;

std::exception_ptr nobody_reads() {
    return std::make_exception_ptr(
        broken_queue("cohort: put to a queue: no process reads from it any more"));
}

completion failed_with(std::exception_ptr why) {
    auto result = completion_of(completion::kind::failed);
    result.error = std::move(why);
    return result;
}

completion with_message(const std::shared_ptr<end>& from, end::state& state,
                        detail::queue_message message) {
    completion result;
    result.message = std::make_shared<received_message>(from, state, std::move(message));
    return result;
}

/// Completes a get, after a large payload was brought into memory. @return false: the operation is
/// gone, and its message stored again
void hand_over(const receiver& to, completion result) {
    if (result.message->is_quick())
        return complete(to, std::move(result));
    auto& here = watcher::own();
    here.runtime().loop().post([&here, to, result = std::move(result)] {
        const auto message = result.message;
        here.aside().run([message] { message->load_early(); },
                         [to, result] { complete(to, result); });
    });
}

std::exception_ptr was_closed() {
    return std::make_exception_ptr(
        std::system_error(std::make_error_code(std::errc::operation_canceled),
                          "cohort: this end of the queue was closed"));
}

/// Tries what the first in line wants. The state is locked by `lock`, see take_one().
/// @return empty: it has to wait on
std::optional<completion> try_first(const std::shared_ptr<end>& which, end::state& state,
                                    std::unique_lock<std::mutex>& lock, const waiter& first,
                                    step& came) {
    try {
        if (!state.socket)
            return failed_with(was_closed());
        if (which->which() == end::side::reader) {
            if (state.wrong)
                return failed_with(std::exchange(state.wrong, nullptr));
            if (state.thread_waits() && state.stored.empty())
                return std::nullopt;  // the thread has this served when it has a packet
            detail::queue_message message;
            came = take_one(*which, state, lock, message);
            if (came == step::done)
                return with_message(which, state, std::move(message));
            if (!state.socket)
                return failed_with(was_closed());
            return came == step::over ? std::optional<completion>(std::in_place) : std::nullopt;
        }
        if (!first.message) {
            came = step::done;  // nothing to wait for in the kernel
            return std::nullopt;
        }
        came = first.message->send(which->channel_of(state));
        if (came == step::over)
            return failed_with(nobody_reads());
        return came == step::done ? std::optional<completion>(std::in_place) : std::nullopt;
    } catch (...) {
        return failed_with(std::current_exception());
    }
}

void drop_timer(waiter& w) {
    if (w.timer)
        watcher::own().runtime().loop().timer().cancel(*std::exchange(w.timer, std::nullopt));
}

/// Completes what can be completed.
/// @param received  what a receive has come to just now
/// @return what the first in line waits for; done: none waits, or a receive is under way
step serve_line(const std::shared_ptr<end>& which, std::optional<step> received = {}) {
    end::state& state = which->here();
    for (int served = 0; served < most_at_once; ++served) {
        std::unique_lock lock(state.mutex);
        if (state.waiting.empty()) {
            disarm(which, state);
            return step::done;
        }
        if (state.stored.empty() && !state.wrong && state.socket && await_closes(state))
            return step::done;
        step came = step::must_wait;
        std::optional<completion> result;
        const bool receives = would_receive(*which, state);
        const auto tried = std::exchange(received, std::nullopt);
        if (!receives)
            result = try_first(which, state, lock, *state.waiting.first(), came);
        else if (tried == step::over)
            result.emplace();
        if (!result) {
            try {
                if (receives && !tried) {
                    receive_in_call(which, state, [which](step came) { serve_line(which, came); });
                    return step::done;
                }
                arm(which, state, came);
                return came;
            } catch (...) {
                result = failed_with(std::current_exception());
            }
        }
        const auto first = state.waiting.take_first();
        if (state.waiting.empty())
            state.changed.notify_all();
        lock.unlock();
        drop_timer(*first);
        if (result->message)
            hand_over(first->to, std::move(*result));
        else
            complete(first->to, std::move(*result));
    }
    serve_soon(which);
    return step::done;
}

/// Serves the end again and again, as long as a put waits at it. On the engine's thread; the state
/// is locked.
void keep_trying(const std::shared_ptr<end>& which, end::state& locked,
                 std::chrono::milliseconds after) {
    auto& timer = watcher::own().runtime().loop().timer();
    if (locked.by_engine.retry)
        timer.cancel(*locked.by_engine.retry);
    const auto retry = [weak = std::weak_ptr(which), after] {
        const auto still = weak.lock();
        if (!still)
            return;
        end::state& state = still->here();
        std::unique_lock lock(state.mutex);
        state.by_engine.retry.reset();
        lock.unlock();
        const auto came = serve_line(still);
        lock.lock();
        if (state.waiting.empty()) {
            disarm(still, state);
            state.by_engine.retries = false;
        } else if (!state.by_engine.retry) {
            const bool for_slot = came == step::without_slot;
            keep_trying(still, state,
                        for_slot ? std::min(2 * after, look_again_after) : look_again_after);
        }
    };
    locked.by_engine.retry = timer.at(std::chrono::steady_clock::now() + after, retry);
}

/// Takes an operation out of its line before it could complete. The next one may want something
/// else.
std::shared_ptr<waiter> leave(const std::shared_ptr<end>& which, detail::operation_id id) {
    end::state& state = which->here();
    const std::lock_guard guard(state.mutex);
    const bool is_first = !state.waiting.empty() && state.waiting.first()->to.id == id;
    auto gone = state.waiting.take(id);
    if (gone && is_first && !state.waiting.empty())
        serve_soon(which);
    if (state.waiting.empty())
        state.changed.notify_all();
    return gone;
}

/// On the engine's thread.
void set_timer(const std::shared_ptr<end>& which, const std::shared_ptr<waiter>& w) {
    end::state& state = which->here();
    const std::lock_guard guard(state.mutex);
    if (!state.waiting.has(w->to.id))
        return;
    w->timer = watcher::own().runtime().loop().timer().at(
        *w->until, [weak = std::weak_ptr(which), id = w->to.id] {
            const auto still = weak.lock();
            const auto late = still ? leave(still, id) : nullptr;
            if (late)
                complete(late->to, completion_of(completion::kind::time_up));
        });
}

/// Lets an operation wait. The state is locked.
void wait(const std::shared_ptr<end>& which, end::state& state, const std::shared_ptr<waiter>& w,
          step wanted) {
    auto& loop = watcher::own().runtime().loop();
    if (state.waiting.empty())
        arm(which, state, wanted);
    state.waiting.join(w);
    if (which->which() == end::side::writer && !std::exchange(state.by_engine.retries, true))
        loop.post([which] {
            end::state& mine = which->here();
            const std::lock_guard guard(mine.mutex);
            keep_trying(which, mine, look_again_after);
        });
    if (w->until)
        loop.post([which, w] { set_timer(which, w); });
}

/// Completes an operation at once, or lets it wait.
void begin(const std::shared_ptr<end>& which, const std::shared_ptr<waiter>& w) {
    end::state& state = which->here();
    std::unique_lock lock(state.mutex);
    step came = step::must_wait;
    std::optional<completion> result;
    // A handler may run on the engine's thread.
    if (state.waiting.empty() && !await_closes(state) &&
        !(loop::engine::is_this_thread() && would_receive(*which, state)))
        result = try_first(which, state, lock, *w, came);
    if (!result && w->until && *w->until <= std::chrono::steady_clock::now())
        result = completion_of(completion::kind::time_up);
    if (!result)
        return wait(which, state, w, came);
    lock.unlock();
    if (result->message)
        hand_over(w->to, std::move(*result));
    else
        complete(w->to, std::move(*result));
}

/// Goes on with a put whose value was written aside. On the engine's thread.
void written(const std::shared_ptr<end>& which, const std::shared_ptr<waiter>& w,
             std::shared_ptr<outgoing> made, std::exception_ptr wrong) {
    if (!made) {
        if (!wrong)
            wrong = std::make_exception_ptr(std::system_error(
                std::make_error_code(std::errc::resource_unavailable_try_again),
                "cohort: a value in a queue: no thread can be started to write it"));
        if (const auto failed = leave(which, w->to.id)) {
            drop_timer(*failed);
            complete(failed->to, failed_with(std::move(wrong)));
        }
        return;
    }
    {
        end::state& state = which->here();
        const std::lock_guard guard(state.mutex);
        w->message = std::move(made);
        if (w->patience)
            w->until = detail::saturating_add(std::chrono::steady_clock::now(), *w->patience);
    }
    which->serve();
    if (w->until)
        set_timer(which, w);
}

}  // namespace

void end::serve() {
    const auto which = shared_from_this();
    if (serve_line(which) != step::without_slot)
        return;
    end::state& mine = here();
    const std::lock_guard guard(mine.mutex);
    if (!mine.waiting.empty())
        keep_trying(which, mine, soonest_look);
}

}  // namespace cohort::share

namespace cohort::detail::inline v0_1 {

using namespace share;

void await_message(const queue_end& end, std::optional<steady_time_point> until,
                   const receiver& to) {
    (void)end.get()->open();
    begin(end.get(), std::make_shared<waiter>(to, until));
}

void await_room(const queue_end& end, queue_message message, std::optional<steady_time_point> until,
                const receiver& to) {
    const auto& which = end.get();
    const auto opened = which->open();
    if (message.bytes.size() <= std::max(largest_quick_payload, opened.about.largest_inlined))
        return begin(
            which, std::make_shared<waiter>(
                       to, until, std::make_shared<outgoing>(std::move(message), opened.borrow())));
    // Copying this much would block the caller's loop and the engine for too long. The put has its
    // place in the line from now on, and its time begins when the value is written: a queue that
    // has room is not full, however long that takes.
    auto w = std::make_shared<waiter>(to, std::nullopt, std::shared_ptr<outgoing>());
    if (const auto now = std::chrono::steady_clock::now(); until)
        w->patience = *until > now ? *until - now : detail::steady_duration::zero();
    begin(which, w);
    auto& here = watcher::own();
    auto value = std::make_shared<queue_message>(std::move(message));
    here.runtime().loop().post([&here, which, value, w] {
        auto made = std::make_shared<std::shared_ptr<outgoing>>();
        auto wrong = std::make_shared<std::exception_ptr>();
        here.aside().run(
            [which, value, made, wrong] {
                try {
                    *made = std::make_shared<outgoing>(std::move(*value), which->open().borrow());
                } catch (...) {
                    *wrong = std::current_exception();
                }
            },
            [which, made, wrong, w] { written(which, w, *made, *wrong); });
    });
}

void cancel_queue_wait(const std::weak_ptr<share::end>& end, operation_id id) noexcept {
    const auto which = end.lock();
    const auto gone = which ? leave(which, id) : nullptr;
    if (!gone)
        return;
    if (gone->until)  // its timer belongs to the engine's thread
        watcher::own().runtime().loop().post([gone] { drop_timer(*gone); });
    complete(gone->to, completion_of(completion::kind::aborted));
}

taken_message take_message(share::received_message& from) { return from.take(); }

}  // namespace cohort::detail::inline v0_1
