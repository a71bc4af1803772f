// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/lendable.hpp>
#include <cohort/detail/patience.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/detail/queue_message.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cohort::share {
class end;
class both_ends;
class received_message;
}  // namespace cohort::share

// The border between the queues, which are templates, and the compiled library. The bodies stand in
// src/share/queue.
namespace cohort::detail::inline v0_1 {

class encoder;
class decoder;

enum class queue_side { reader, writer };

/// What is known of a queue wherever one of its ends is.
struct queue_description {
    std::uint64_t type = 0;      // of its values, see type_hash()
    std::uint64_t capacity = 0;  // 0: unbounded
    std::size_t largest_inlined = 0;
    bool carries = false;        // packets may come with descriptors
    make_target make = nullptr;  // for values that are received here; does not travel
};

/// How many values put_all() sends in one packet, where the queue is unbounded.
inline constexpr std::size_t most_in_packet = 64;

enum class queue_answer { done, ended, timed_out, stopped };

/// A handle of one end of a queue. All but write(), lock() and close() want a firm one, see used().
class COHORT_API queue_end {
public:
    queue_end() noexcept = default;
    explicit queue_end(std::shared_ptr<share::end> end) noexcept : end_(std::move(end)) {}

    const std::shared_ptr<share::end>& get() const noexcept { return end_.firm(); }
    std::shared_ptr<share::end> lock() const noexcept { return end_.lock(); }

    /// Takes at most `at_most` messages, and waits until there is one.
    /// @throws codec_error, sharing_error, std::logic_error
    queue_answer receive(std::vector<queue_message>& into, std::size_t at_most,
                         const patience& how_long) const;
    /// Gives messages back that were received, for the next calls.
    void give_back(std::span<queue_message> messages) const;
    /// @throws broken_queue, sharing_error, std::logic_error
    queue_answer send(queue_message message, const patience& how_long) const;
    /// Sends many values without descriptors, several in each packet where the queue is unbounded.
    void send_all(std::vector<queue_message> messages) const;
    /// May be called while another thread is in used() or write().
    void close() noexcept;

    /// @throws sharing_error  the end is gone
    void write(encoder& to) const;
    /// @throws codec_error  it is the other side of a queue, or of a queue of another type
    static queue_end read(decoder& from, queue_side side, const queue_description& expected);
    shared_item item(const char* kind) const;

private:
    lendable<share::end> end_;
};

/// Both ends of a queue. Copies share the ends, and what this process uses of them.
class COHORT_API queue_ends {
public:
    explicit queue_ends(const queue_description& about);

    /// The end for a call, after which the other one may not be needed any more.
    /// @throws std::logic_error  this process uses the other end
    queue_end for_reading() const;
    queue_end for_writing() const;
    /// Handles of their own. @throws std::logic_error  the end was given up
    queue_end reader() const;
    queue_end writer() const;
    void keep_both() const;
    /// Closes all writing handles of the queue in this process.
    void close() const;
    std::size_t waiting() const;

    void write(encoder& to) const;
    static queue_ends read(decoder& from, const queue_description& expected);

private:
    explicit queue_ends(std::shared_ptr<share::both_ends> both) noexcept : both_(std::move(both)) {}
    /// @throws sharing_error  they are gone
    std::shared_ptr<share::both_ends> held() const;
    lendable<share::both_ends> both_;
};

struct taken_message {
    queue_message message;
    queue_end from;
};

/// A handle for one call, which keeps the end while another thread closes the caller's handle.
/// @throws std::logic_error  the handle is of no queue, or was closed
COHORT_API queue_end used(const queue_end& end);
/// @throws std::invalid_argument  0
COHORT_API std::size_t checked_capacity(std::size_t capacity);

/// Completes with done and a message, with done and none when the stream has ended, with time_up,
/// aborted or failed.
COHORT_API void await_message(const queue_end& end, std::optional<steady_time_point> until,
                              const receiver& to);
/// Completes with done, time_up, aborted or failed.
COHORT_API void await_room(const queue_end& end, queue_message message,
                           std::optional<steady_time_point> until, const receiver& to);
/// Has no effect on an operation that has completed.
COHORT_API void cancel_queue_wait(const std::weak_ptr<share::end>& end, operation_id id) noexcept;
/// Takes the message out of a completion. One that nobody takes is there for the next call.
COHORT_API taken_message take_message(share::received_message& from);

}  // namespace cohort::detail::inline v0_1
