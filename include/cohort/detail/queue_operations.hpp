// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/queue_end.hpp>
#include <cohort/detail/queue_value.hpp>
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
        return received_access::none<received<T>>(answer);
    return received<T>(value_in<T>(messages.front()));
}

// --- awaited ---

inline void cancel_call_of_queue(const std::weak_ptr<void>& end, operation_id id,
                                 cancellation_type) noexcept {
    cancel_queue_wait(std::static_pointer_cast<share::end>(end.lock()), id);
}

inline call getting(queue_end end, std::optional<steady_duration> timeout) {
    auto at = end.get();
    return call(std::move(at), cancel_call_of_queue,
                [end = std::move(end), timeout](const receiver& to) {
                    await_message(end, deadline_of(timeout), to);
                })
        .keeps_place();
}

inline call putting(queue_end end, std::optional<steady_duration> timeout, queue_message message) {
    auto at = end.get();
    return call(std::move(at), cancel_call_of_queue,
                [end = std::move(end), timeout,
                 message = std::make_shared<const queue_message>(std::move(message))](
                    const receiver& to) { await_room(end, *message, deadline_of(timeout), to); })
        .keeps_place();
}

/// The result of put with a timeout.
struct put_in_time_result : no_result {
    using type = bool;
    bool value(const completion& done) { return done.what == completion::kind::done; }
};

/// The result of get.
template <class T>
class get_result {
public:
    using type = received<T>;

    std::exception_ptr error(const completion& done) {
        if (auto error = error_of(done))
            return error;
        if (done.what == completion::kind::time_up)
            value_ = received_access::none<type>(queue_answer::timed_out);
        else if (!done.message)
            value_ = received_access::none<type>(queue_answer::ended);
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

    type value_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
