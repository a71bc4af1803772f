// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/lendable.hpp>

#include <concepts>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// The user's values in a work: a function's arguments, or a callable. Copies of the work share
/// them. Ends of queues that they hold are held until a group is started. Afterwards a work that
/// has a name holds them weakly, because their streams could not end while it lives.
template <class T>
class work_part {
public:
    explicit work_part(std::shared_ptr<T> value)
        : shared_(std::make_shared<state>(std::move(value))) {}
    work_part(const work_part& other)
        requires std::copy_constructible<T>
        : shared_(other.shared_) {
        const std::lock_guard guard(used().mutex);
        shared_->copy = [](const T& from) { return std::make_shared<T>(from); };
    }
    work_part(work_part&&) noexcept = default;
    work_part& operator=(const work_part&) = delete;
    work_part& operator=(work_part&&) noexcept = default;
    ~work_part() = default;

    /// The values, where no end can be among them.
    std::shared_ptr<T> shared() const { return used().value; }
    /// The values for one start. Ends that are gone by then are so in the result.
    std::shared_ptr<T> take() const {
        const std::lock_guard guard(used().mutex);
        if (shared_->copy == nullptr)  // the work has no other name
            return shared_->value;
        if (shared_->is_lent) {
            const holding_scope held(holding::firm);
            return shared_->copy(*shared_->value);
        }
        std::shared_ptr<T> lent;
        {
            const holding_scope lends(holding::weak);
            lent = shared_->copy(*shared_->value);
        }
        shared_->is_lent = true;
        return std::exchange(shared_->value, std::move(lent));
    }

private:
    struct state {
        explicit state(std::shared_ptr<T> first) noexcept : value(std::move(first)) {}
        std::mutex mutex;
        std::shared_ptr<T> value;
        // Set by the first copy, because not every T can be copied.
        std::shared_ptr<T> (*copy)(const T& from) = nullptr;
        bool is_lent = false;  // the value holds ends weakly
    };

    state& used() const {
        if (!shared_)
            throw std::logic_error("cohort: this work was moved away");
        return *shared_;
    }

    std::shared_ptr<state> shared_;
};

}  // namespace cohort::detail::inline v0_1
