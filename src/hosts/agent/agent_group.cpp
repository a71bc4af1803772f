// SPDX-License-Identifier: BSL-1.0
#include "hosts/agent/agent_group.hpp"

#include "group/border/create_group.hpp"
#include "group/state/group_state.hpp"
#include "hosts/values/end_bytes.hpp"
#include "hosts/values/messages.hpp"
#include "hosts/values/plan_bytes.hpp"

#include <cohort/errors.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::multihost {
namespace {

/// When to try again where there is no thread, or no memory, to write what a worker has left.
constexpr auto pause_of_writing = std::chrono::milliseconds(100);

/// An engine that ends a job sends SIGTERM to workers and agent, in any order. The origin must hear
/// of the agent's first.
constexpr auto time_of_own_signal = std::chrono::milliseconds(100);

/// Bytes of messages for streams that may come while the group is being made.
constexpr std::size_t most_early = std::size_t{64} << 20;

detail::start_failure failure_of(const std::exception& why) {
    const auto* const failed = dynamic_cast<const spawn_error*>(&why);
    if (failed == nullptr)
        return {std::make_error_code(std::errc::invalid_argument), why.what(), -1, "plan"};
    std::string text = failed->what();
    text.resize(std::min(text.size(), text.rfind(": " + failed->code().message())));
    return {failed->code(), std::move(text), failed->error_index(), failed->stage()};
}

/// The value of errno in a std::system_error.
int number_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& e) {
        return e.code().value();
    }
}

/// Of what a worker may make large.
std::size_t size_of(const detail::ended_worker& end) {
    const auto& result = detail::outcome_access::result(*end.left);
    return (result ? result->cbor.size() : 0) + end.out.head.size() + end.out.tail.size() +
           end.err.head.size() + end.err.tail.size();
}

}  // namespace

/// A group on its way through the thread that reads its plan.
struct agent_group::making {
    bool is_over = false;
    detail::group_ref group;  // null: `failure` says why
    detail::start_failure failure;

    void run(const std::vector<std::byte>& bytes) {
        try {
            auto plan = read_plan(bytes);
            if (plan)
                group = detail::create_group_at_host(std::move(*plan));
            else
                failure = {std::make_error_code(std::errc::invalid_argument), plan.problem, -1,
                           "plan"};
        } catch (const std::exception& e) {
            failure = failure_of(e);
        }
        is_over = true;
    }
};

void agent_group::begin(std::vector<std::byte> plan) {
    auto result = std::make_shared<making>();
    const auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(plan));
    runtime_.parsing(bytes->size())
        .run([result, bytes] { result->run(*bytes); },
             [self = shared_from_this(), result] { self->made(*result); });
}

void agent_group::made(making& result) {
    if (!result.is_over)
        return fail({std::make_error_code(std::errc::resource_unavailable_try_again),
                     "a thread that reads the group's plan", -1, "threads"});
    if (!result.group)
        return fail(result.failure);
    if (stopped_)
        return fail({std::make_error_code(std::errc::operation_canceled), "the start was stopped",
                     -1, "plan"});
    group_ = std::move(result.group);
    group_->tell({[weak = weak_from_this()](int index) {
                      if (const auto self = weak.lock())
                          self->has_failed(index);
                  },
                  [weak = weak_from_this()](int index, pid_t pid) {
                      if (const auto self = weak.lock())
                          self->say(frame_kind::begun, write_message(begun_worker{index, pid}));
                  }});
    auto streams = std::make_shared<agent_streams>(
        detail::streams_of(group_),
        [link = link_, number = number_](frame_kind kind, std::vector<std::byte> body) {
            link->send({kind, number}, std::move(body));
        });
    streams->begin();
    runtime_.output().post(
        [self = shared_from_this(), streams = std::move(streams)] { self->open_streams(streams); });
    try {
        detail::start_group(group_, {weak_from_this(), start_operation, true});
    } catch (const std::exception& e) {  // this process ends
        fail(failure_of(e));
    }
}

void agent_group::fail(const detail::start_failure& why) {
    runtime_.output().post([self = shared_from_this(), body = write_message(why)] {
        self->tell_last(frame_kind::not_started, body);
    });
}

void agent_group::stop_by_origin(const ladder_spans& spans) {
    if (group_ && !is_open_)
        group_->forget_logs();
    stop(spans);
}

void agent_group::stop(const ladder_spans& spans) {
    if (!stopped_at_)
        stopped_at_ = std::chrono::steady_clock::now();
    if (group_)
        group_->stop({.grace_period = spans.grace_period, .kill_timeout = spans.kill_timeout});
    else
        stopped_ = spans;
}

void agent_group::hold() {
    if (group_)
        group_->failed_elsewhere();
}

void agent_group::signal(std::optional<int> index, int signo) {
    if (!group_ || (index && *index >= group_->snapshot().size()))
        return;
    if (index)
        group_->signal(*index, signo);
    else
        group_->signal(signo);
}

void agent_group::usage() {
    if (group_)
        group_->await_usage({weak_from_this(), usage_operation, true});
}

void agent_group::tell_usage(const detail::completion& result) {
    used_resources said;
    if (result.what == detail::completion::kind::failed)
        said.error = number_of(result.error);
    else if (result.usage)
        said.workers = *result.usage;
    say(frame_kind::used, write_message(said));
}

detail::delivery agent_group::complete(detail::operation_id id,
                                       const detail::completion& result) noexcept {
    using kind = detail::completion::kind;
    if (id == next_operation)
        tell_end(result.next);
    else if (id == usage_operation)
        tell_usage(result);
    else if (result.what == kind::done)
        tell_start();
    else if (result.not_started)
        fail(*result.not_started);
    else
        fail({std::make_error_code(std::errc::operation_canceled), "the start was stopped", -1,
              "exec"});
    return detail::delivery::posted;
}

void agent_group::tell_start() {
    has_started_ = true;
    say(frame_kind::started, write_message(started_workers{group_->snapshot().pids()}));
    for (const auto& each : std::exchange(failed_in_start_, {}))
        tell_failure(each);
    ask_next();
}

/// A start that goes on hears of it later: until then the others are none to be stopped.
void agent_group::has_failed(int index) {
    const failed_worker told{index, std::chrono::steady_clock::now().time_since_epoch()};
    if (has_started_)
        tell_failure(told);
    else
        failed_in_start_.push_back(told);
}

void agent_group::tell_failure(const failed_worker& which) {
    say(frame_kind::failed, write_message(which));
}

void agent_group::ask_next() {
    group_->await_next({weak_from_this(), next_operation, true}, std::nullopt);
}

/// The worker decides how long this takes, so it is done elsewhere.
void agent_group::tell_end(std::shared_ptr<const detail::ended_worker> end) {
    if (!end)
        return tell_all_sent();
    if (const auto& status = end->left->status;
        status.signaled() && status.signal() == SIGTERM && !end->victim) {
        // From its end on: all that end together wait together.
        runtime_.loop().timer().at(end->left->ended + time_of_own_signal,
                                   [self = shared_from_this(), end] { self->write_end_of(end); });
        return;
    }
    write_end_of(std::move(end));
}

void agent_group::write_end_of(std::shared_ptr<const detail::ended_worker> end) {
    auto bytes = std::make_shared<std::optional<std::vector<std::byte>>>();
    const auto work = [bytes, end, stopped = stopped_at_] {
        const auto now = std::chrono::steady_clock::now();
        auto told = *end;
        // Also a success, because the origin's clock can't tell which of the two came first.
        told.victim =
            told.victim || (stopped && told.left->success() && told.left->ended > *stopped);
        try {
            *bytes = write_end(told, now);
        } catch (const std::bad_alloc&) {
            *bytes = write_bare_end(told, now);
        }
    };
    const auto then = [self = shared_from_this(), bytes, end] {
        if (*bytes) {
            self->say(frame_kind::ended, std::move(**bytes));
            return self->ask_next();
        }
        self->runtime_.loop().timer().at(std::chrono::steady_clock::now() + pause_of_writing,
                                         [self, end] { self->write_end_of(end); });
    };
    runtime_.parsing(size_of(*end)).run(work, then);
}

/// The last report, when all that the workers printed is on its way.
void agent_group::tell_all_sent() {
    runtime_.output().post([self = shared_from_this()] {
        if (const auto& streams = self->output_.streams)
            streams->when_sent([self] { self->tell_last(frame_kind::reported); });
    });
}

void agent_group::tell_last(frame_kind kind, std::vector<std::byte> body) {
    link_->send({kind, number_}, body);
    output_.is_told = true;
    told_();
}

// --- on the output thread ---

void agent_group::open_streams(std::shared_ptr<agent_streams> streams) {
    if (output_.is_closed)
        return streams->close();
    output_.streams = std::move(streams);
    for (auto& each : std::exchange(output_.early, {}))
        heard(std::move(each));
}

void agent_group::heard(message what) {
    if (output_.is_closed)
        return;
    if (output_.streams) {
        if (const auto broken = output_.streams->heard(what))
            link_->refuse(*broken);
        return;
    }
    output_.early_bytes += what.body.size() + sizeof(message);
    if (output_.early_bytes > most_early)
        return link_->refuse(breach::credit);
    output_.early.push_back(std::move(what));
}

void agent_group::close() {
    output_.is_closed = true;
    output_.early.clear();
    if (const auto streams = std::exchange(output_.streams, nullptr))
        streams->close();
}

void agent_group::say(frame_kind kind, std::vector<std::byte> body) {
    runtime_.output().post([self = shared_from_this(), kind, body = std::move(body)]() mutable {
        self->link_->send({kind, self->number_}, std::move(body));
    });
}

}  // namespace cohort::multihost
