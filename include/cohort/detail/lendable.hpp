// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <memory>
#include <utility>

// How handles hold the ends of queues.
namespace cohort::detail::inline v0_1 {

/// How a copy of a handle holds its end.
enum class holding {
    as_copied,  // as the handle that is copied
    weak,       // the copy does not keep the stream from ending
    firm,
};

/// What copies hold that this thread makes at present.
COHORT_API holding& current_holding() noexcept;

/// Sets it for the duration of a scope.
class holding_scope {
public:
    explicit holding_scope(holding now) noexcept : before_(std::exchange(current_holding(), now)) {}
    holding_scope(const holding_scope&) = delete;
    holding_scope& operator=(const holding_scope&) = delete;
    ~holding_scope() { current_holding() = before_; }

private:
    const holding before_;
};

/// A handle's pointer to an end. It is weak in copies of a work that a group was started with,
/// wherever in the work's values the handle stands: a stream could not end while the work has a
/// name. Handles that users get are firm.
template <class T>
class lendable {
public:
    lendable() noexcept = default;
    explicit lendable(std::shared_ptr<T> firm) noexcept : firm_(std::move(firm)) {}
    lendable(const lendable& other) noexcept : firm_(other.firm_), lent_(other.lent_) {
        const holding wanted = current_holding();
        if (wanted == holding::weak && firm_)
            lent_ = std::exchange(firm_, nullptr);
        else if (wanted == holding::firm && !firm_)
            firm_ = lent_.lock();
    }
    lendable(lendable&&) noexcept = default;
    lendable& operator=(lendable other) noexcept {
        firm_.swap(other.firm_);
        lent_.swap(other.lent_);
        return *this;
    }
    ~lendable() = default;

    /// What a firm one points to.
    const std::shared_ptr<T>& firm() const noexcept { return firm_; }
    T* operator->() const noexcept { return firm_.get(); }
    T& operator*() const noexcept { return *firm_; }
    /// What it points to, firm or weak; null: nothing, or it is gone.
    std::shared_ptr<T> lock() const noexcept { return firm_ ? firm_ : lent_.lock(); }
    /// Whether it has pointed to something that is gone.
    bool is_gone() const noexcept { return !firm_ && lent_.expired() && is_set(lent_); }

private:
    /// Whether it has ever pointed to something.
    static bool is_set(const std::weak_ptr<T>& pointer) noexcept {
        const std::weak_ptr<T> none;
        return pointer.owner_before(none) || none.owner_before(pointer);
    }

    std::shared_ptr<T> firm_;
    std::weak_ptr<T> lent_;
};

}  // namespace cohort::detail::inline v0_1
