// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/queue_codec.hpp>
#include <cohort/detail/queue_end.hpp>
#include <cohort/detail/queue_iterator.hpp>
#include <cohort/detail/queue_operations.hpp>
#include <cohort/detail/queue_value.hpp>
#include <cohort/received.hpp>

#include <chrono>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <stop_token>
#include <utility>
#include <vector>

namespace cohort COHORT_ASIO_NAMESPACE {

/// The writing end of a queue, for plain functions of workers: a put blocks while the queue is
/// full. A handle: copies put into the same queue; the last one of a process closes its end.
///
/// Every put throws broken_queue if no process reads any more, codec_error or what the value's own
/// to_json throws (the queue is unharmed), sharing_error if descriptors or memory run short, and
/// std::logic_error after a close(). Of the asynchronous ones, what is wrong with the handle, the
/// value or the timeout leaves the call itself; the rest arrives as std::exception_ptr.
/// @thread_safety all calls from any thread; assignment as of std::shared_ptr.
template <class T>
class queue_writer {
public:
    /// A handle of no queue: every call but assignment and close() throws std::logic_error.
    queue_writer() noexcept = default;

    /// Waits while the queue is full.
    void put(T value) { send(std::move(value), detail::patience::endless()); }
    /// Waits while the queue is full, at most for `timeout` on steady_clock.
    /// @return false: it was still full when the time was up; nothing was put
    /// @throws std::invalid_argument  `timeout` is not a number
    template <class Rep, class Period>
    bool put(T value, std::chrono::duration<Rep, Period> timeout) {
        return send(std::move(value), detail::patience::until(timeout));
    }
    /// Waits while the queue is full, until a stop is requested.
    /// @return false: it was still full when the stop was requested; nothing was put
    bool put(T value, std::stop_token stop) {
        return send(std::move(value), detail::patience::until(std::move(stop)));
    }
    /// Never waits. @return false: the queue is full, and `value` is as it was
    bool try_put(T& value) { return send(std::as_const(value), detail::patience::none()); }
    /// Puts all values of a range, in their order, 64 at a time. Without a capacity these travel in
    /// packets, each of which goes to one reader.
    template <std::ranges::input_range Range>
    void put_all(Range&& values) {
        const auto end = detail::used(end_);
        std::vector<detail::queue_message> messages;
        for (auto&& value : values) {
            messages.push_back(detail::message_of<const T&>(static_cast<const T&>(value)));
            if (messages.size() == detail::most_in_packet)
                end.send_all(std::exchange(messages, {}));
        }
        end.send_all(std::move(messages));
    }
    /// Closes this handle: a later put throws std::logic_error; one in another thread goes on.
    void close() noexcept { end_.close(); }

    /// put() with a completion token: void(std::exception_ptr).
    /// @cancellation every type: stops waiting; nothing was put.
    template <class Token>
    auto async_put(T value, Token&& token) {
        return detail::begin_call<detail::no_result>(
            detail::putting(detail::used(end_), std::nullopt, detail::message_of(std::move(value))),
            std::forward<Token>(token));
    }
    /// put(value, timeout) with a completion token: void(std::exception_ptr, bool).
    /// @cancellation every type: stops waiting; nothing was put.
    template <class Rep, class Period, class Token>
    auto async_put(T value, std::chrono::duration<Rep, Period> timeout, Token&& token) {
        return detail::begin_call<detail::put_in_time_result>(
            detail::putting(detail::used(end_), detail::to_steady(timeout),
                            detail::message_of(std::move(value))),
            std::forward<Token>(token));
    }

private:
    friend struct detail::queue_access;
    explicit queue_writer(detail::queue_end end) noexcept : end_(std::move(end)) {}
    template <class Value>
    bool send(Value&& value, const detail::patience& how_long) {
        return detail::used(end_).send(detail::message_of(std::forward<Value>(value)), how_long) ==
               detail::queue_answer::done;
    }

    detail::queue_end end_;
};

/// The reading end of a queue, for plain functions of workers: a get blocks until there is a value.
/// A handle, as queue_writer. Each value goes to one reader. Every get throws codec_error if what
/// came is no T, also where nlohmann-json has thrown; what the value's own from_json throws, as it
/// is; sharing_error if there is no room for descriptors; and std::logic_error after a close().
/// What is no T, was refused by its from_json or found no memory (std::bad_alloc) is lost, else
/// the value waits in the queue.
/// Of an asynchronous get, what is wrong with the handle or the timeout leaves the call itself.
/// @thread_safety all calls from any thread; assignment as of std::shared_ptr.
template <class T>
class queue_reader {
public:
    /// A handle of no queue: every call but assignment and close() throws std::logic_error.
    queue_reader() noexcept = default;

    /// Waits for a value. ended(): every writer has closed or is dead, and nothing is left.
    received<T> get() { return one(detail::patience::endless()); }
    /// Waits for a value, at most for `timeout` on steady_clock. timed_out(): none came in time.
    /// @throws std::invalid_argument  `timeout` is not a number
    template <class Rep, class Period>
    received<T> get(std::chrono::duration<Rep, Period> timeout) {
        return one(detail::patience::until(timeout));
    }
    /// Waits for a value, until a stop is requested. stopped(): the stop came before a value.
    received<T> get(std::stop_token stop) { return one(detail::patience::until(std::move(stop))); }
    /// Never waits. timed_out(): there is no value now.
    received<T> try_get() { return one(detail::patience::none()); }
    /// Waits for one value, then takes what is queued: at most `at_most` and at most 64. Takes
    /// none that follows one that can't be read, for which the next call throws.
    /// @return at least one; empty: the stream has ended
    std::vector<T> get_some(std::size_t at_most) {
        const auto end = detail::used(end_);
        std::vector<detail::queue_message> messages;
        end.receive(messages, at_most, detail::patience::endless());
        return detail::values_in<T>(end, messages);
    }
    /// Closes this handle: a later get throws std::logic_error; one in another thread goes on.
    void close() noexcept { end_.close(); }

    /// get() with a completion token: void(std::exception_ptr, received<T>).
    /// @cancellation every type: stops waiting; no value is lost.
    template <class Token>
    auto async_get(Token&& token) {
        return detail::begin_call<detail::get_result<T>>(
            detail::getting(detail::used(end_), std::nullopt), std::forward<Token>(token));
    }
    /// get(timeout) with a completion token: void(std::exception_ptr, received<T>).
    /// @cancellation every type: stops waiting; no value is lost.
    template <class Rep, class Period, class Token>
    auto async_get(std::chrono::duration<Rep, Period> timeout, Token&& token) {
        return detail::begin_call<detail::get_result<T>>(
            detail::getting(detail::used(end_), detail::to_steady(timeout)),
            std::forward<Token>(token));
    }

    /// Gets values until the stream ends: `for (auto& job : jobs)`. Throws what a get throws.
    using iterator = detail::queue_iterator<queue_reader, T>;
    /// Waits for the first value.
    iterator begin() { return iterator(this); }
    /// Where the stream ends.
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    friend struct detail::queue_access;
    explicit queue_reader(detail::queue_end end) noexcept : end_(std::move(end)) {}
    received<T> one(const detail::patience& how_long) {
        return detail::receive_one<T>(detail::used(end_), how_long);
    }

    detail::queue_end end_;
};

/// A queue between processes: of plain values, strings, containers, your own types and shared
/// arrays. A handle: copies share the ends. Pass it to workers, as queue, queue_reader or
/// queue_writer: the parameter's type decides which end a worker gets. Any number of processes may
/// put and get; each value goes to one reader, in the order of each writer. A process that is
/// killed or stopped at any moment harms no other one: a value is in the queue whole or not at all.
/// A killed reader takes at most what it had received.
///
/// Once the queue is passed to another process, the first call decides which end this process uses:
/// the first get gives up its writing end, the first put its reading end, because a process that
/// held the other end itself would never see the end of the stream. The other call then throws
/// std::logic_error, unless keep_both_ends() came before.
///
/// The awaitable calls try at once, on the caller's thread, and wait in the library's engine only
/// if that does not do. A process with the reading end can hold up gets (examples/caveats.md).
///
/// Every put throws broken_queue, codec_error, sharing_error, or what the value's own to_json
/// throws; every get codec_error, sharing_error, or what its own from_json throws: queue_writer and
/// queue_reader say when. A put after close(), and a call that needs an end which this process has
/// given up, throw std::logic_error. A cancellation of any type stops the waiting only.
/// @thread_safety all calls from any thread; assignment as of std::shared_ptr.
/// @source torch.multiprocessing.Queue and SimpleQueue
template <class T>
class queue {
public:
    /// A queue that is bounded by the kernel's socket buffer alone: some hundred small values.
    queue() : queue(0, nullptr) {}
    /// At most `capacity` values wait, whichever process is killed. A process that is stopped in
    /// its put for more than a second holds nobody up, so it may add one value more afterwards.
    /// @throws std::invalid_argument  `capacity` is 0 or negative
    explicit queue(std::size_t capacity) : queue(detail::checked_capacity(capacity), nullptr) {}

    /// Waits while the queue is full.
    /// @cancellation every type: stops waiting; nothing was put.
    [[nodiscard]] asio::awaitable<void> put(T value) { return emplace(std::move(value)); }
    /// Waits while the queue is full, at most for `timeout` on steady_clock. The time of a value of
    /// more than 1 MiB begins when the value is ready to be sent.
    /// @return false: still full when the time was up; nothing was put
    /// @throws std::invalid_argument  `timeout` is not a number
    /// @cancellation every type: stops waiting; nothing was put.
    template <class Rep, class Period>
    [[nodiscard]] asio::awaitable<bool> put(T value, std::chrono::duration<Rep, Period> timeout) {
        return detail::await_result<detail::put_in_time_result>(detail::putting(
            ends_.for_writing(), detail::to_steady(timeout), detail::message_of(std::move(value))));
    }
    /// put(T(args...)). With GCC 12 `co_await q.put(job{...})` of an aggregate crashes, because the
    /// compiler destroys it twice: use this, or name the value first.
    /// @cancellation every type: stops waiting; nothing was put.
    template <class... Args>
    [[nodiscard]] asio::awaitable<void> emplace(Args&&... args) {
        return detail::await_result<detail::no_result>(detail::putting(
            ends_.for_writing(), std::nullopt, detail::message_of(T(std::forward<Args>(args)...))));
    }
    /// Waits for a value. ended(): every writer has closed or is dead, and nothing is left.
    /// @throws codec_error  what came is no T. What the value's own from_json throws, as it is. The
    /// value is lost then, and the next get gives the next one.
    /// @throws sharing_error  there is no room for the value's descriptors; it waits in the queue
    /// @cancellation every type: stops waiting; no value is lost.
    [[nodiscard]] asio::awaitable<received<T>> get() {
        return detail::await_result<detail::get_result<T>>(
            detail::getting(ends_.for_reading(), std::nullopt));
    }
    /// Waits for a value, at most for `timeout` on steady_clock. timed_out(): none came in time.
    /// @throws std::invalid_argument  `timeout` is not a number. And what get() throws.
    /// @cancellation every type: stops waiting; no value is lost.
    template <class Rep, class Period>
    [[nodiscard]] asio::awaitable<received<T>> get(std::chrono::duration<Rep, Period> timeout) {
        return detail::await_result<detail::get_result<T>>(
            detail::getting(ends_.for_reading(), detail::to_steady(timeout)));
    }
    /// put() with a completion token: void(std::exception_ptr).
    /// @cancellation every type: stops waiting; nothing was put.
    template <class Token>
    auto async_put(T value, Token&& token) {
        return detail::queue_access::writer<T>(ends_.for_writing())
            .async_put(std::move(value), std::forward<Token>(token));
    }
    /// put(value, timeout) with a completion token: void(std::exception_ptr, bool).
    /// @cancellation every type: stops waiting; nothing was put.
    template <class Rep, class Period, class Token>
    auto async_put(T value, std::chrono::duration<Rep, Period> timeout, Token&& token) {
        return detail::queue_access::writer<T>(ends_.for_writing())
            .async_put(std::move(value), timeout, std::forward<Token>(token));
    }
    /// get() with a completion token: void(std::exception_ptr, received<T>).
    /// @cancellation every type: stops waiting; no value is lost.
    template <class Token>
    auto async_get(Token&& token) {
        return detail::queue_access::reader<T>(ends_.for_reading())
            .async_get(std::forward<Token>(token));
    }
    /// get(timeout) with a completion token: void(std::exception_ptr, received<T>).
    /// @cancellation every type: stops waiting; no value is lost.
    template <class Rep, class Period, class Token>
    auto async_get(std::chrono::duration<Rep, Period> timeout, Token&& token) {
        return detail::queue_access::reader<T>(ends_.for_reading())
            .async_get(timeout, std::forward<Token>(token));
    }
    /// Never waits. @return false: the queue is full, and `value` is as it was
    bool try_put(T& value) {
        return detail::queue_access::writer<T>(ends_.for_writing()).try_put(value);
    }
    /// Never waits. timed_out(): there is no value now.
    received<T> try_get() { return detail::queue_access::reader<T>(ends_.for_reading()).try_get(); }

    /// This process puts no more: closes all its writing handles of the queue.
    void close() { ends_.close(); }
    /// How many values wait in a queue with a capacity.
    /// @throws std::logic_error  it has none
    std::size_t size() const { return ends_.waiting(); }

    /// A handle of the reading end alone. Gives nothing up.
    /// @throws std::logic_error  this process has given up that end
    queue_reader<T> reader() const { return detail::queue_access::reader<T>(ends_.reader()); }
    /// A handle of the writing end alone. Gives nothing up.
    /// @throws std::logic_error  this process has given up that end
    queue_writer<T> writer() const { return detail::queue_access::writer<T>(ends_.writer()); }
    /// reader(), for functions that take one.
    operator queue_reader<T>() const { return reader(); }  // NOLINT: implicit on purpose
    /// writer(), for functions that take one.
    operator queue_writer<T>() const { return writer(); }  // NOLINT: implicit on purpose
    /// This process reads and writes. It sees the end of the stream only after close().
    /// @throws std::logic_error  an end was given up before
    queue& keep_both_ends() {
        ends_.keep_both();
        return *this;
    }

private:
    friend struct detail::queue_access;
    queue(std::size_t capacity, std::nullptr_t)
        : ends_(detail::queue_description_of<T>(capacity)) {}
    explicit queue(detail::queue_ends ends) noexcept : ends_(std::move(ends)) {}

    detail::queue_ends ends_;
};

}  // namespace COHORT_ASIO_NAMESPACE
