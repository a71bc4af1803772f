// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/ready_queue.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace cohort COHORT_ASIO_NAMESPACE {

/// Runs handlers and coroutines on a loop that is not Asio's, such as GLib's, libuv's or one of
/// your own. What is posted to it is queued. While anything is queued, fd() is readable; your loop
/// watches fd() and calls run_ready(), which is the only place where handlers run.
///
///     cohort::manual_executor loop;
///     asio::co_spawn(loop, orchestrate(), asio::detached);
///     for (pollfd watched{loop.fd(), POLLIN, 0}; !done;)
///         if (::poll(&watched, 1, -1) > 0)
///             loop.run_ready();
///
/// It is an execution context, as asio::io_context is one: it stands wherever Asio or this library
/// take a context, get_executor() wherever they take an executor, and it must outlive what uses
/// its executors. Its destructor destroys, without a call, what is queued and the handlers of
/// operations that are pending; what is posted meanwhile is destroyed too. A handler must not
/// destroy it.
///
/// It belongs to the process that made it. In a forked copy of that process what is posted is
/// destroyed, run_ready() throws, and the destructor leaks what was queued before the fork. Make a
/// new one there.
/// @thread_safety get_executor(), fd(), run_ready() and all use of the executors: from any
/// thread. Where several threads call run_ready(), handlers run at the same time, as on an
/// io_context with several threads.
// The queue is a base, because what the execution context destroys at its end may still post.
class manual_executor : private detail::ready_queue, public asio::execution_context {
public:
    class executor_type;

    /// @throws std::system_error  no descriptor is left
    manual_executor() = default;
    ~manual_executor() {
        shutdown();  // the library posts nothing more
        detail::ready_queue::close();
    }

    /// The executor, for whatever takes no context.
    executor_type get_executor() noexcept;

    /// A descriptor that is readable exactly while something is queued. It stays the same, and is
    /// only to be watched, level-triggered or edge-triggered: run_ready() reads it.
    int fd() const noexcept { return detail::ready_queue::fd(); }

    /// Runs what was queued before the call and has not begun, in the order in which it was posted.
    /// Never waits. What is posted meanwhile is left for the next call, so that a handler that
    /// posts itself again does not keep the loop from its other work. A handler may call
    /// run_ready(), for example from a dialogue with a loop of its own: the inner call also runs
    /// what the outer one has not begun.
    /// @return how many handlers this call ran, without those of inner calls
    /// @throws what a handler throws. The handlers behind that one stay queued, and fd() readable.
    /// @throws std::system_error  no_child_process: this is a forked copy of the process
    std::size_t run_ready() { return detail::ready_queue::run(); }
};

/// The executor of a manual_executor: what Asio's post, dispatch and defer are given with it is
/// queued, also inside run_ready(). It counts no outstanding work, because run_ready() does not
/// wait for any.
/// @thread_safety safe.
class manual_executor::executor_type {
public:
    /// The manual_executor; Asio asks for it.
    manual_executor& query(asio::execution::context_t) const noexcept { return *context_; }
    /// Itself, because it never runs anything inside execute().
    executor_type require(asio::execution::blocking_t::never_t) const noexcept { return *this; }

    /// Queues a function object. @throws std::bad_alloc  there is no memory
    template <class F>
    void execute(F&& f) const {
        using call = detail::ready_call_of<std::decay_t<F>>;
        context_->push(std::make_unique<call>(std::forward<F>(f)));
    }

    /// Whether both queue in the same place.
    friend bool operator==(const executor_type& a, const executor_type& b) noexcept {
        return a.context_ == b.context_;
    }

private:
    friend class manual_executor;
    explicit executor_type(manual_executor& context) noexcept : context_(&context) {}

    manual_executor* context_;
};

inline manual_executor::executor_type manual_executor::get_executor() noexcept {
    return executor_type(*this);
}

}  // namespace cohort COHORT_ASIO_NAMESPACE
