// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/operation_registry.hpp>

#include <utility>

namespace cohort::detail::inline v0_1 {

operation_registry::operation_registry() = default;
operation_registry::~operation_registry() = default;

bool operation_registry::add(operation_id id, std::shared_ptr<operation_base> operation) {
    const std::lock_guard lock(mutex_);
    if (closed_)
        return false;
    operations_.emplace(id, std::move(operation));
    return true;
}

delivery operation_registry::complete(operation_id id, const completion& result) noexcept {
    try {
        return post(id, result) ? delivery::posted : delivery::gone;
    } catch (...) {
        return delivery::refused;  // the operation stays here
    }
}

void operation_registry::complete_now(operation_id id, const completion& result) {
    try {
        post(id, result);
    } catch (...) {
        release(id);
        throw;
    }
}

void operation_registry::release(operation_id id) {
    decltype(operations_)::node_type released;  // destroyed after the mutex is released
    const std::lock_guard lock(mutex_);
    released = operations_.extract(id);
}

operation_registry::use::use(operation_registry& registry) {
    const std::lock_guard lock(registry.mutex_);
    if (registry.closed_)
        return;
    ++registry.uses_;
    registry_ = &registry;
}

operation_registry::use::~use() {
    if (!registry_)
        return;
    --registry_->uses_;
    registry_->uses_.notify_all();
}

void operation_registry::keep_work(operation_id id, std::shared_ptr<void> work) {
    decltype(work_) kept;
    kept.emplace(id, std::move(work));
    const std::lock_guard lock(mutex_);
    if (!closed_)
        work_.merge(kept);  // moves no executor
}

void operation_registry::drop_work(operation_id id) {
    const use here(*this);
    if (!here)
        return;
    decltype(work_)::node_type dropped;  // destroyed after the mutex is released
    const std::lock_guard lock(mutex_);
    dropped = work_.extract(id);
}

void operation_registry::close() {
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

bool operation_registry::post(operation_id id, const completion& result) {
    const use here(*this);
    if (!here)
        return false;
    std::unique_lock lock(mutex_);
    const auto found = operations_.find(id);
    if (found == operations_.end() || std::exchange(found->second->posted, true))
        return false;
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

}  // namespace cohort::detail::inline v0_1
