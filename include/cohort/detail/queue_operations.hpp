// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/queue_end.hpp>
#include <cohort/detail/queue_value.hpp>
#include <cohort/detail/wait_place.hpp>
#include <cohort/received.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// The calls of queues: what they give, and how they are awaited.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The values in messages. If one can't be decoded, the next call throws. Lost is at most that one.
template <class T>
std::vector<T> values_in(const queue_end& from, std::span<queue_message> messages) {
    std::vector<T> values;
    std::size_t i = 0;
    try {
        values.reserve(messages.size());
        for (; i < messages.size(); ++i)
            values.push_back(value_in<T>(messages[i]));
    } catch (...) {
        from.give_back(messages.subspan(values.empty() ? i + 1 : i));
        if (values.empty())
            throw;
    }
    return values;
}

/// A blocking get.
template <class T>
received<T> receive_one(const queue_end& from, const patience& how_long) {
    std::vector<queue_message> messages;
    const auto answer = from.receive(messages, 1, how_long);
    if (messages.empty())
        return received<T>(answer);
    return received<T>(value_in<T>(messages.front()));
}

// --- awaited ---

using queue_place = wait_place<share::end, &cancel_queue_wait>;

/// A get or a put, as a job of an operation.
class queue_job {
public:
    queue_job(queue_end end, std::optional<steady_duration> timeout)
        : end_(std::move(end)), timeout_(timeout),
          place_(std::make_shared<queue_place>(end_.get())) {}
    queue_job(queue_end end, std::optional<steady_duration> timeout, queue_message message)
        : end_(std::move(end)), timeout_(timeout),
          message_(std::make_shared<queue_message>(std::move(message))),
          place_(std::make_shared<queue_place>(end_.get())) {}

    void send(const receiver& to) const {
        place_->set(to.id);
        std::optional<steady_time_point> until;
        if (timeout_)  // counted from the initiation, which is when the operation is awaited
            until = saturating_add(std::chrono::steady_clock::now(), *timeout_);
        if (message_)
            await_room(end_, *message_, until, to);  // a copy of this job may be sent again
        else
            await_message(end_, until, to);
    }
    queue_place::canceller cancelled_by(operation_id id) const noexcept { return {end_.get(), id}; }
    queue_place::guard guard() const { return queue_place::guard(place_); }

private:
    queue_end end_;
    std::optional<steady_duration> timeout_;
    std::shared_ptr<queue_message> message_;
    std::shared_ptr<queue_place> place_;
};

/// The result of put.
class put_result {
public:
    explicit put_result(queue_place::guard guard) noexcept : guard_(std::move(guard)) {}
    std::exception_ptr error(const completion& done) {
        guard_.completed();
        return error_of(done);
    }

private:
    queue_place::guard guard_;
};

/// The result of put with a timeout.
class put_in_time_result : public put_result {
public:
    using type = bool;
    using put_result::put_result;
    bool value(const completion& done) { return done.what == completion::kind::done; }
};

/// The result of get.
template <class T>
class get_result {
public:
    using type = received<T>;
    explicit get_result(queue_place::guard guard) noexcept : guard_(std::move(guard)) {}

    std::exception_ptr error(const completion& done) {
        guard_.completed();
        if (auto error = error_of(done))
            return error;
        if (done.what == completion::kind::time_up)
            value_ = type(queue_answer::timed_out);
        else if (!done.message)
            value_ = type(queue_answer::ended);
        else
            return take(*done.message);
        return nullptr;
    }
    type value(const completion&) { return std::move(value_); }

private:
    std::exception_ptr take(share::received_message& from) {
        try {
            auto taken = take_message(from);
            value_ = type(value_in<T>(taken.message));
            return nullptr;
        } catch (...) {
            return std::current_exception();
        }
    }

    queue_place::guard guard_;
    type value_;
};

/// Calls a handler of the signature void(std::exception_ptr).
class deliver_put {
public:
    explicit deliver_put(put_result result) noexcept : result_(std::move(result)) {}
    template <class Handler>
    void operator()(Handler&& handler, const completion& done) && {
        std::forward<Handler>(handler)(result_.error(done));
    }

private:
    put_result result_;
};

template <class T, class Token>
auto async_get(const queue_end& end, std::optional<steady_duration> timeout, Token&& token) {
    queue_job job(end, timeout);
    get_result<T> result(job.guard());
    return async_result_of(job_on<queue_job>(std::move(job)), std::forward<Token>(token),
                           std::move(result));
}

template <class Token>
auto async_put(const queue_end& end, queue_message message, Token&& token) {
    queue_job job(end, std::nullopt, std::move(message));
    deliver_put deliver{put_result(job.guard())};
    return initiate<void(std::exception_ptr)>(
        std::forward<Token>(token), job_on<queue_job>(std::move(job)), std::move(deliver));
}

template <class Token>
auto async_put(const queue_end& end, queue_message message, steady_duration timeout,
               Token&& token) {
    queue_job job(end, timeout, std::move(message));
    put_in_time_result result(job.guard());
    return async_result_of(job_on<queue_job>(std::move(job)), std::forward<Token>(token),
                           std::move(result));
}

template <class T>
asio::awaitable<received<T>> await_get(queue_end end, std::optional<steady_duration> timeout) {
    queue_job job(std::move(end), timeout);
    get_result<T> result(job.guard());
    return await_result(job_on<queue_job>(std::move(job)), std::move(result));
}

template <class Job>
asio::awaitable<void> await_put(Job job) {
    put_result result(job.guard());
    completion done = co_await await_completion(job_on<Job>(std::move(job)));
    if (auto error = result.error(done))
        std::rethrow_exception(std::move(error));
}

template <class Job>
asio::awaitable<bool> await_put_in_time(Job job) {
    put_in_time_result result(job.guard());
    return await_result(job_on<Job>(std::move(job)), std::move(result));
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
