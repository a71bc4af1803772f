// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/execution/outstanding_work.hpp>
#include <asio/execution_context.hpp>
#include <asio/prefer.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// One pending operation with its handler. Owned by the registry of the context of the handler's
/// executor, so that a context which is destroyed takes its handlers with it.
class operation_base {
public:
    virtual ~operation_base() = default;
    /// Stores the result and posts the handler, which may have run on another thread, and this be
    /// destroyed, before it returns. Throws what the executor throws.
    virtual void post(std::shared_ptr<operation_base> self, const completion& result) = 0;

    bool posted = false;  // under the registry's lock
};

/// The pending operations of one execution context.
///
/// The engine's thread completes, the user's threads add, the thread that destroys the context
/// closes. The lock is never held while the user's code runs: an executor may call back when it is
/// posted to, copied or destroyed. `close` waits for such calls instead, so that their context is
/// there until they return. An operation stays here until its handler runs: an executor that drops
/// what it was given must not make the engine's thread its last owner.
class operation_registry final : public completion_sink {
public:
    /// @return false: the context is being destroyed; the operation is left to the caller to
    /// destroy.
    bool add(operation_id id, std::shared_ptr<operation_base> operation) {
        std::lock_guard lock(mutex_);
        if (closed_)
            return false;
        operations_.emplace(id, std::move(operation));
        return true;
    }

    delivery complete(operation_id id, const completion& result) noexcept override {
        try {
            return post(id, result) ? delivery::posted : delivery::nobody;
        } catch (...) {
            return delivery::refused;  // the operation stays here
        }
    }

    /// The same inside the initiating call, where nobody would try again.
    /// @throws what the executor throws; the operation is destroyed then.
    void complete_now(operation_id id, const completion& result) {
        try {
            post(id, result);
        } catch (...) {
            release(id);
            throw;
        }
    }

    /// Leaves an operation to those who have it: the one that is about to run it, or nobody.
    void release(operation_id id) {
        decltype(operations_)::node_type released;  // destroyed after the mutex is released
        std::lock_guard lock(mutex_);
        released = operations_.extract(id);
    }

    /// Keeps work for an executor of this context, on behalf of an operation that completes in
    /// another, until `drop_work`. None once the context is being destroyed: groups outlive theirs.
    void keep_work(operation_id id, const asio::any_io_executor& executor) {
        const auto here = enter();
        if (!here)
            return;
        decltype(work_) kept;
        kept.emplace(id, asio::prefer(executor, asio::execution::outstanding_work.tracked));
        const std::lock_guard lock(mutex_);
        if (!closed_)
            work_.merge(kept);  // moves no executor
    }
    void drop_work(operation_id id) {
        const auto here = enter();
        if (!here)
            return;
        decltype(work_)::node_type dropped;  // destroyed after the mutex is released
        const std::lock_guard lock(mutex_);
        dropped = work_.extract(id);
    }

    /// Destroys all operations on the calling thread, unlocked: a handler's destructor may call
    /// back.
    void close() {
        decltype(operations_) taken;
        decltype(work_) work;
        std::unique_lock lock(mutex_);
        closed_ = true;
        taken.swap(operations_);
        work.swap(work_);
        lock.unlock();
        for (int count; (count = uses_) != 0;)
            uses_.wait(count);
    }

private:
    /// @return false: nobody waits under this name. @throws what the executor throws
    bool post(operation_id id, const completion& result) {
        std::unique_lock lock(mutex_);
        const auto found = operations_.find(id);
        if (found == operations_.end() || std::exchange(found->second->posted, true))
            return false;
        const in_use here(uses_);
        auto operation = found->second;
        lock.unlock();
        auto& target = *operation;
        try {
            // Without an owner on this thread: the handler's is the last one.
            target.post(std::move(operation), result);
        } catch (...) {
            lock.lock();
            if (const auto refused = operations_.find(id); refused != operations_.end())
                refused->second->posted = false;
            throw;
        }
        return true;
    }

    /// Counts a call of the user's code for which the context must be there: `close` waits for it.
    /// Begins under the lock, before the context is closed.
    class in_use {
    public:
        explicit in_use(std::atomic<int>& count) noexcept : count_(count) { ++count_; }
        in_use(const in_use&) = delete;
        in_use& operator=(const in_use&) = delete;
        ~in_use() {
            --count_;
            count_.notify_all();
        }

    private:
        std::atomic<int>& count_;
    };

    /// @return empty: the context is being destroyed
    std::optional<in_use> enter() {
        const std::lock_guard lock(mutex_);
        return closed_ ? std::nullopt : std::optional<in_use>(std::in_place, uses_);
    }

    std::mutex mutex_;
    bool closed_ = false;
    std::atomic<int> uses_ = 0;
    std::unordered_map<operation_id, std::shared_ptr<operation_base>> operations_;
    std::unordered_map<operation_id, asio::any_io_executor> work_;
};

/// Gives each execution context its registry, and closes it when the context shuts down.
class completion_service : public asio::execution_context::service {
public:
    static inline asio::execution_context::id id;

    explicit completion_service(asio::execution_context& context)
        : asio::execution_context::service(context),
          registry_(std::make_shared<operation_registry>()) {}

    const std::shared_ptr<operation_registry>& registry() const noexcept { return registry_; }

private:
    void shutdown() override { registry_->close(); }

    std::shared_ptr<operation_registry> registry_;
};

}  // namespace cohort::detail::inline v0_1
