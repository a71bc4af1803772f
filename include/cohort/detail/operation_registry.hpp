// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/config.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace cohort::detail::inline v0_1 {

/// One pending operation with its handler. Owned by the registry of the context of the handler's
/// executor, so that a context which is destroyed takes its handlers with it.
class operation_base {
public:
    virtual ~operation_base() = default;
    /// Stores the result and posts the handler, which may have run on another thread, and this be
    /// destroyed, before it returns. Throws what the executor throws.
    virtual void post(std::shared_ptr<operation_base> self, const completion& result) = 0;
    /// Calls the handler, on its executor.
    virtual void run(std::shared_ptr<operation_base> self) = 0;

    bool posted = false;  // under the registry's lock
};

/// The pending operations of one execution context.
///
/// The engine's thread completes, the user's threads add, the thread that destroys the context
/// closes. The lock is never held while the user's code runs: an executor may call back when it is
/// posted to, copied or destroyed. `close` waits for such calls instead, so that their context is
/// there until they return. An operation stays here until its handler runs: an executor that drops
/// what it was given must not make the engine's thread its last owner.
class COHORT_API operation_registry final : public completion_sink {
public:
    operation_registry();
    ~operation_registry() override;

    /// @return false: the context is being destroyed; the operation is left to the caller to
    /// destroy.
    bool add(operation_id id, std::shared_ptr<operation_base> operation);

    delivery complete(operation_id id, const completion& result) noexcept override;

    /// The same inside the initiating call, where nobody would try again.
    /// @throws what the executor throws; the operation is destroyed then.
    void complete_now(operation_id id, const completion& result);

    /// Leaves an operation to those who have it: the one that is about to run it, or nobody.
    void release(operation_id id);

    /// Counts a call of the user's code for which the context must be there: `close` waits for it.
    /// False when the context is being destroyed.
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

    /// Keeps work for an executor of this context, on behalf of an operation that completes in
    /// another, until `drop_work`. To be called with a `use`.
    void keep_work(operation_id id, std::shared_ptr<void> work);
    void drop_work(operation_id id);

    /// Destroys all operations on the calling thread, unlocked: a handler's destructor may call
    /// back.
    void close();

private:
    /// @return false: nobody waits under this name. @throws what the executor throws
    bool post(operation_id id, const completion& result);

    std::mutex mutex_;
    bool closed_ = false;
    std::atomic<int> uses_ = 0;
    std::map<operation_id, std::shared_ptr<operation_base>> operations_;
    std::map<operation_id, std::shared_ptr<void>> work_;
};

}  // namespace cohort::detail::inline v0_1
