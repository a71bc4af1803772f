// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/engine.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/execution/outstanding_work.hpp>
#include <asio/execution_context.hpp>
#include <asio/prefer.hpp>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace cohort::detail {

/// One pending operation with its handler. Owned by the registry of the context of the handler's
/// executor, so that a context which is destroyed takes its handlers with it.
class operation_base {
public:
    virtual ~operation_base() = default;
    /// Stores the result and posts the handler; never calls it. May throw what the executor throws.
    virtual void post(std::shared_ptr<operation_base> self, const completion& result) = 0;

    bool posted = false;  // under the registry's lock
};

/// The pending operations of one execution context.
///
/// The engine's thread completes, the user's threads add, the thread that destroys the context
/// closes. Posting under the lock is what makes `close` safe: while an operation is being posted
/// its context cannot go away. An operation stays here until its handler runs: an executor that
/// drops what it was given must not make the engine's thread its last owner.
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
        std::lock_guard lock(mutex_);
        auto found = operations_.find(id);
        if (found == operations_.end() || found->second->posted)
            return delivery::nobody;
        try {
            found->second->post(found->second, result);
        } catch (...) {
            return delivery::refused;  // the operation stays here
        }
        found->second->posted = true;
        return delivery::posted;
    }

    /// The same inside the initiating call, where nobody would try again.
    /// @throws what the executor throws; the operation is destroyed then.
    void complete_now(operation_id id, const completion& result) {
        std::shared_ptr<operation_base> refused;  // destroyed after the mutex is released
        std::lock_guard lock(mutex_);
        auto found = operations_.find(id);
        if (found == operations_.end())
            return;
        try {
            found->second->post(found->second, result);
        } catch (...) {
            refused = std::move(found->second);
            operations_.erase(found);
            throw;
        }
        found->second->posted = true;
    }

    /// Leaves a posted operation to the caller, which is about to run it: as its only owner, since
    /// complete() has dropped its own reference when the lock is free.
    void release(operation_id id) {
        std::lock_guard lock(mutex_);
        operations_.erase(id);
    }

    /// Keeps work for an executor of this context, on behalf of an operation that completes in
    /// another, until `drop_work`. None once the context is being destroyed: groups outlive theirs.
    void keep_work(operation_id id, const asio::any_io_executor& executor) {
        std::lock_guard lock(mutex_);
        if (!closed_)
            work_.emplace(id, asio::prefer(executor, asio::execution::outstanding_work.tracked));
    }
    void drop_work(operation_id id) {
        std::lock_guard lock(mutex_);
        work_.erase(id);
    }

    /// Destroys all operations on the calling thread, unlocked: a handler's destructor may call
    /// back.
    void close() {
        std::unordered_map<operation_id, std::shared_ptr<operation_base>> taken;
        std::lock_guard lock(mutex_);
        closed_ = true;
        taken.swap(operations_);
        work_.clear();
        // `taken` was constructed before `lock`, so it is destroyed after the mutex is released.
    }

private:
    std::mutex mutex_;
    bool closed_ = false;
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

}  // namespace cohort::detail
