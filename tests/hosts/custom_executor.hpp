// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <asio/execution.hpp>
#include <asio/execution_context.hpp>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace cohort::test {

/// An execution context that is none of Asio's: one thread, and a count of the work that its
/// executors promise.
class custom_context : public asio::execution_context {
public:
    class executor_type;

    custom_context() : thread_([this] { run(); }) {}
    ~custom_context() {
        join();
        shutdown();  // while the members that tasks use are there
    }

    executor_type get_executor() noexcept;
    /// Waits until nothing is queued and no work is promised.
    void join() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable())
            thread_.join();
    }
    bool running_in_this_thread() const noexcept {
        return std::this_thread::get_id() == thread_.get_id();
    }

private:
    class task {
    public:
        virtual ~task() = default;
        virtual void run() = 0;
    };
    template <class F>
    class task_of final : public task {
    public:
        explicit task_of(F f) : f_(std::move(f)) {}
        void run() override { std::move(f_)(); }

    private:
        F f_;
    };

    void push(std::unique_ptr<task> next) {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(next));
        changed_.notify_all();
    }
    void promise_work(int change) noexcept {
        const std::lock_guard lock(mutex_);
        promised_ += change;
        changed_.notify_all();
    }
    void run() {
        for (;;) {
            std::unique_ptr<task> next;
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock,
                              [this] { return !tasks_.empty() || (ending_ && promised_ == 0); });
                if (tasks_.empty())
                    return;
                next = std::move(tasks_.front());
                tasks_.pop_front();
            }
            next->run();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::unique_ptr<task>> tasks_;
    int promised_ = 0;
    bool ending_ = false;
    std::thread thread_;  // last: it uses all of these
};

/// Promises work where it is asked to, and never runs anything inside execute().
class custom_context::executor_type {
public:
    explicit executor_type(custom_context& context) noexcept : context_(&context) {}
    executor_type(const executor_type& other) noexcept
        : executor_type(*other.context_, other.tracked_) {}
    executor_type& operator=(const executor_type&) = delete;
    ~executor_type() {
        if (tracked_)
            context_->promise_work(-1);
    }

    custom_context& query(asio::execution::context_t) const noexcept { return *context_; }
    executor_type require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    executor_type require(asio::execution::outstanding_work_t::tracked_t) const noexcept {
        return executor_type(*context_, true);
    }
    executor_type require(asio::execution::outstanding_work_t::untracked_t) const noexcept {
        return executor_type(*context_, false);
    }
    template <class F>
    void execute(F f) const {
        context_->push(std::make_unique<task_of<F>>(std::move(f)));
    }
    friend bool operator==(const executor_type& a, const executor_type& b) noexcept {
        return a.context_ == b.context_ && a.tracked_ == b.tracked_;
    }

private:
    executor_type(custom_context& context, bool tracked) noexcept
        : context_(&context), tracked_(tracked) {
        if (tracked_)
            context_->promise_work(+1);
    }

    custom_context* context_;
    bool tracked_ = false;
};

inline custom_context::executor_type custom_context::get_executor() noexcept {
    return executor_type(*this);
}

}  // namespace cohort::test
