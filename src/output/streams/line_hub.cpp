// SPDX-License-Identifier: BSL-1.0
#include "output/streams/line_hub.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cohort::output {

namespace {

/// What one call of output_batch() gets at most, in bytes of text.
constexpr std::size_t most_at_once = std::size_t{256} << 10;

/// Of so many lines one is not given at once.
constexpr unsigned lines_in_a_row = 16;

/// After so long the next stream has its turn, too.
constexpr auto longest_turn = std::chrono::milliseconds(250);

}  // namespace

// --- what the calls share with the output thread ---

detail::run_part line_hub::shared::take_line() {
    if (returned.empty())
        return queue.take_line();
    detail::run_part& first = returned.front();
    detail::run_part line = first;
    line.count = 1;
    first.offset += first.run->lines[first.first].size;
    first.lost = {};
    ++first.first;
    if (--first.count == 0)
        returned.erase(returned.begin());
    return line;
}

detail::line_batch line_hub::shared::take(detail::amount wanted) {
    if (wanted == detail::amount::all)
        return returned.empty() ? queue.take(most_at_once) : std::exchange(returned, {});
    detail::line_batch line;
    line.reserve(1);
    line.push_back(take_line());
    return line;
}

/// Null: it does not wait here.
line_hub::call* line_hub::shared::find(detail::operation_id id) {
    const auto found = std::ranges::find(calls, id, [](const call& c) { return c.to.id; });
    return found == calls.end() ? nullptr : &*found;
}

std::optional<line_hub::call> line_hub::shared::remove(detail::operation_id id) {
    const auto found = std::ranges::find(calls, id, [](const call& c) { return c.to.id; });
    if (found == calls.end())
        return std::nullopt;
    auto removed = std::move(*found);
    calls.erase(found);
    return removed;
}

line_hub::line_hub(loop::runtime& runtime, std::size_t bound, std::size_t while_read, int streams)
    : runtime_(runtime), shared_(std::make_unique<shared>(bound, while_read, streams)) {}

line_hub::~line_hub() {
    // Another thread of a forked copy's parent may have been changing it at the fork.
    if (!runtime_.is_own())
        (void)shared_.release();
}

// --- for the streams ---

void line_hub::add(std::shared_ptr<const detail::line_run> run, when_full full) {
    lock_type lock(shared_->mutex);
    if (shared_->is_forgotten) {
        lock.unlock();
        return report_room();
    }
    shared_->queue.add(std::move(run), full);
    deliver(lock);
}

void line_hub::leave_out(const detail::line_run& run) {
    const lock_type lock(shared_->mutex);
    shared_->queue.leave_out(run);
}

void line_hub::lose(int index, int attempt, stream from, const detail::loss& lost) {
    const lock_type lock(shared_->mutex);
    if (!shared_->is_forgotten)
        shared_->queue.lose(index, attempt, from, lost);
}

bool line_hub::has_room() const {
    const lock_type lock(shared_->mutex);
    return shared_->has_room();
}

void line_hub::when_room(base::callback<bool()> then) {
    waiting_streams_.push_back(std::move(then));
    watch_room();
}

/// Streams wait. If a call has made room since they saw none, they are called soon.
void line_hub::watch_room() {
    lock_type lock(shared_->mutex);
    shared_->wakes_streams = true;
    wake_streams(lock);
}

/// After lines were taken.
void line_hub::wake_streams(lock_type& lock) {
    if (!shared_->wakes_streams || !shared_->has_room())
        return;
    shared_->wakes_streams = false;
    lock.unlock();
    runtime_.output().post([self = shared_from_this()] { self->report_room(); });
    lock.lock();
}

void line_hub::report_room() {
    while (!waiting_streams_.empty() && has_room()) {
        const auto then = std::move(waiting_streams_.front());
        waiting_streams_.pop_front();
        {
            const lock_type lock(shared_->mutex);
            shared_->wakes_streams = !waiting_streams_.empty();
        }
        if (then())
            return watch_turn();
    }
    if (!waiting_streams_.empty())
        watch_room();
}

/// The next stream is called when the one that has its turn has read, or when a call has taken
/// lines. Its worker may keep it from reading by its pipe's lock, and no line may be there to take.
void line_hub::watch_turn() {
    if (waiting_streams_.empty() || std::exchange(watches_turn_, true))
        return;
    runtime_.output().timer().at(runtime_.output().now() + longest_turn,
                                 [weak = weak_from_this()] {
                                     const auto self = weak.lock();
                                     if (!self)
                                         return;
                                     self->watches_turn_ = false;
                                     self->report_room();
                                 });
}

void line_hub::end_stream(int index, int attempt, stream from,
                          const std::shared_ptr<const std::string>& host) {
    lock_type lock(shared_->mutex);
    if (!shared_->is_forgotten)
        shared_->queue.end_stream(index, attempt, from, runtime_.output().now(), {}, host);
    if (shared_->open_streams > 0)
        --shared_->open_streams;
    deliver(lock);
}

std::uint64_t line_hub::lost_bytes(int index, int attempt, stream from) const {
    const lock_type lock(shared_->mutex);
    return shared_->queue.lost_bytes(index, attempt, from);
}

void line_hub::forget_worker(int index) {
    const lock_type lock(shared_->mutex);
    shared_->queue.forget_worker(index);
}

// --- for the calls of output() ---

bool line_hub::take_line(detail::run_part& into) {
    lock_type lock(shared_->mutex);
    // A call that waits is older, also while another thread is about to complete it.
    if (shared_->is_delivering || !shared_->calls.empty() || !shared_->has_lines() ||
        ++shared_->taken_at_once % lines_in_a_row == 0)
        return false;
    into = shared_->take_line();
    wake_streams(lock);
    return true;
}

void line_hub::await(detail::receiver to, detail::amount wanted,
                     std::optional<detail::time_point> until) {
    const auto id = to.id;
    lock_type lock(shared_->mutex);
    shared_->calls.push_back({std::move(to), wanted, false});
    deliver(lock);
    call* const waiting = until ? shared_->find(id) : nullptr;
    if (waiting == nullptr)
        return;
    waiting->has_timer = true;
    lock.unlock();
    runtime_.output().post(
        [self = shared_from_this(), id, until] { self->begin_timer(id, *until); });
}

void line_hub::deliver(lock_type& lock) {
    if (!complete_calls(lock))
        return;
    lock.unlock();
    runtime_.output().post([self = shared_from_this()] {
        lock_type again(self->shared_->mutex);
        self->deliver(again);
    });
    lock.lock();
}

/// Completes the calls that wait, if there is something for them. Without the lock, because an
/// executor is the user's; meanwhile other threads only add to the calls and the lines.
/// @return whether more is to be done, for calls that have come meanwhile: they must not keep this
/// thread, which may be that of another call
bool line_hub::complete_calls(lock_type& lock) {
    if (std::exchange(shared_->is_delivering, true))
        return false;
    struct end_of_delivery {
        lock_type& lock;
        bool& flag;
        ~end_of_delivery() {
            if (!lock.owns_lock())
                lock.lock();
            flag = false;
        }
    } const end{lock, shared_->is_delivering};
    const auto is_due = [&] {
        return !shared_->calls.empty() && (shared_->has_lines() || shared_->is_over());
    };
    for (auto turns = shared_->calls.size(); turns > 0 && is_due(); --turns) {
        detail::completion done;
        std::shared_ptr<detail::line_batch> taken;
        if (shared_->has_lines()) {
            taken = std::make_shared<detail::line_batch>();
            *taken = shared_->take(shared_->calls.front().wanted);
            done.lines = taken;
        }
        const auto next = std::move(shared_->calls.front());
        shared_->calls.pop_front();
        lock.unlock();
        const bool is_told = complete(next, done);
        lock.lock();
        // Lines whose reader is gone are kept, because each is delivered once to one who lives.
        if (taken && !is_told)
            shared_->returned.insert(shared_->returned.begin(), taken->begin(), taken->end());
        wake_streams(lock);
    }
    return is_due();
}

/// @return false: the context of the call is gone
bool line_hub::complete(const call& which, const detail::completion& result) {
    if (which.has_timer)
        runtime_.output().post(
            [self = shared_from_this(), id = which.to.id] { self->drop_timer(id); });
    const auto sink = runtime_.exiting() ? nullptr : which.to.sink.lock();
    const auto how = sink ? sink->complete(which.to.id, result) : detail::delivery::gone;
    if (how == detail::delivery::refused)
        runtime_.output().post([&runtime = runtime_, to = which.to, result] {
            runtime.deliver(runtime.output(), to, result);
        });
    return how != detail::delivery::gone;
}

// --- their ends ---

bool line_hub::cancel(detail::operation_id id) {
    lock_type lock(shared_->mutex);
    const auto cancelled = shared_->remove(id);
    lock.unlock();
    if (cancelled)
        complete(*cancelled, detail::completion_of(detail::completion::kind::aborted));
    return cancelled.has_value();
}

void line_hub::begin_timer(detail::operation_id id, detail::time_point until) {
    lock_type lock(shared_->mutex);
    const bool waits = shared_->find(id) != nullptr;
    lock.unlock();
    if (waits)
        timers_[id] = runtime_.output().timer().at(until, [self = shared_from_this(), id] {
            self->timers_.erase(id);
            lock_type again(self->shared_->mutex);
            auto late = self->shared_->remove(id);
            again.unlock();
            if (!late)
                return;
            late->has_timer = false;
            self->complete(*late, detail::completion_of(detail::completion::kind::time_up));
        });
}

void line_hub::drop_timer(detail::operation_id id) {
    if (const auto found = timers_.find(id); found != timers_.end()) {
        runtime_.output().timer().cancel(found->second);
        timers_.erase(found);
    }
}

void line_hub::end() {
    lock_type lock(shared_->mutex);
    shared_->open_streams = 0;
    deliver(lock);
}

void line_hub::forget() {
    lock_type lock(shared_->mutex);
    shared_->is_forgotten = true;
    shared_->queue.clear();
    shared_->returned.clear();
    shared_->open_streams = 0;
    deliver(lock);
    lock.unlock();
    report_room();
}

}  // namespace cohort::output
