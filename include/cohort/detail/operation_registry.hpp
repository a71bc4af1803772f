// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/config.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace cohort::detail::inline v0_1 {

/// One pending operation with its handler. The registry of the context of the handler's executor
/// owns it, so that a context is destroyed together with its handlers.
class operation_base {
public:
    virtual ~operation_base() = default;
    /// Stores the result and posts the handler. Before post() returns, the handler may have run on
    /// another thread and this operation may be destroyed. Throws what the executor throws.
    virtual void post(std::shared_ptr<operation_base> self, const completion& result) = 0;
    /// Calls the handler, on its executor.
    virtual void run(std::shared_ptr<operation_base> self) = 0;

    bool posted = false;  // under the registry's lock
};

/// The pending operations of one execution context.
///
/// User threads add operations, the engine's thread completes them, and the thread that destroys
/// the context closes the registry. The lock is never held while user code runs, because an
/// executor may call back when it is posted to, copied or destroyed. Instead `close` waits for such
/// calls, so that their context exists until they return. An operation stays here until its handler
/// runs, because an executor that drops a posted function must not make the engine's thread the
/// operation's last owner.
class COHORT_API operation_registry final : public completion_sink {
public:
    operation_registry();
    ~operation_registry() override;

    /// @return false: the context is being destroyed. The operation is not kept, so the caller
    /// destroys it.
    bool add(operation_id id, std::shared_ptr<operation_base> operation);

    delivery complete(operation_id id, const completion& result) noexcept override;

    /// Like complete(), for the initiating call, where nobody would try again.
    /// @throws what the executor throws; the operation is destroyed then.
    void complete_now(operation_id id, const completion& result);

    /// Drops the registry's ownership of an operation that is about to run or was refused.
    void release(operation_id id);

    /// Counts a call of user code that needs the context: `close` waits for its end. Converts to
    /// false when the context is being destroyed.
    class use {
    public:
        explicit use(operation_registry& registry);
        use(const use&) = delete;
        use& operator=(const use&) = delete;
        COHORT_API ~use();

        explicit operator bool() const noexcept { return registry_ != nullptr; }

    private:
        friend class operation_registry;
        operation_registry* registry_ = nullptr;
    };

    /// Keeps outstanding work of an executor of this context until `drop_work`, for an operation
    /// that completes in another context. Call this while holding a `use`.
    void keep_work(operation_id id, std::shared_ptr<void> work);
    void drop_work(operation_id id);

    /// Destroys all operations on the calling thread, without the lock, because a handler's
    /// destructor may call back.
    void close();

private:
    /// @return false: no operation waits under this id. @throws what the executor throws
    bool post(operation_id id, const completion& result);

    std::mutex mutex_;
    bool closed_ = false;
    std::atomic<int> uses_ = 0;
    std::map<operation_id, std::shared_ptr<operation_base>> operations_;
    std::map<operation_id, std::shared_ptr<void>> work_;
};

}  // namespace cohort::detail::inline v0_1
