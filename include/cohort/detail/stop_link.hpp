// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// Between the stop token of a receiver and the cancellation slot of an operation, because a stop
/// may be requested on any thread and at any moment, but Asio's own slots are for one thread at a
/// time. Shared by all that may use it last.
class stop_link : public std::enable_shared_from_this<stop_link> {
public:
    /// Runs a function object where the operation is.
    using runner = std::function<void(std::function<void()>)>;

    /// @param where  runs the canceller; empty: it may run on any thread
    explicit stop_link(runner where) : where_(std::move(where)) {}

    /// A stop is requested: cancels the operation, as soon as it has been initiated.
    void stop() { (void)note(asked_); }
    /// The initiation is over. @return true: its handler was destroyed during it
    bool initiated() { return note(initiated_); }
    /// The handler was destroyed without a call. @return false: the initiation goes on
    bool abandon() {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        return initiated_;
    }

    /// What the operation sees: a cancellation slot as Asio requires it.
    class slot {
    public:
        explicit slot(std::shared_ptr<stop_link> link) noexcept : link_(std::move(link)) {}

        bool is_connected() const noexcept { return true; }
        /// Sets what is called when a stop is requested.
        template <class Canceller, class... Args>
        Canceller& emplace(Args&&... args) {
            const auto made =
                std::make_shared<canceller_of<Canceller>>(std::forward<Args>(args)...);
            link_->set(made);
            return made->target;
        }
        void clear() { link_->set(nullptr); }
        friend bool operator==(const slot&, const slot&) noexcept = default;

    private:
        std::shared_ptr<stop_link> link_;
    };

private:
    class canceller {
    public:
        virtual ~canceller() = default;
        virtual void cancel() = 0;
    };
    template <class Target>
    class canceller_of final : public canceller {
    public:
        template <class... Args>
        explicit canceller_of(Args&&... args) : target(std::forward<Args>(args)...) {}
        /// As `||` and a cancelled coroutine do.
        void cancel() override { target(cancellation_type::terminal); }

        Target target;
    };

    void set(std::shared_ptr<canceller> next) {
        const std::lock_guard lock(mutex_);
        canceller_.swap(next);
    }
    /// Lets the canceller run, once and without the lock, if both have happened.
    /// @return whether the handler had been destroyed when this was noted
    bool note(bool& fact) {
        std::unique_lock lock(mutex_);
        fact = true;
        const bool abandoned = abandoned_;
        const bool due = asked_ && initiated_ && !std::exchange(is_cancelled_, true);
        lock.unlock();
        if (due && where_)
            where_([self = shared_from_this()] { self->cancel(); });
        else if (due)
            cancel();
        return abandoned;
    }
    /// The canceller stays: the slot is the operation's, which may look at it until it has ended.
    void cancel() {
        std::unique_lock lock(mutex_);
        const auto called = canceller_;
        lock.unlock();
        if (called)
            called->cancel();
    }

    const runner where_;
    std::mutex mutex_;
    bool asked_ = false;
    bool initiated_ = false;
    bool abandoned_ = false;
    bool is_cancelled_ = false;
    std::shared_ptr<canceller> canceller_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
