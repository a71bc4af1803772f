// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>

#include <utility>

namespace cohort::detail::inline v0_1 {

/// Makes a public group. Defined in spawn_operation.hpp.
class group_access;

/// Owns a group: stops it when it lets go of it. An ended group is not affected.
class group_handle {
public:
    group_handle() noexcept = default;
    explicit group_handle(group_ref group) noexcept : group_(std::move(group)) {}
    group_handle(group_handle&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
    group_handle& operator=(group_handle&& other) noexcept {
        if (this != &other) {
            drop();
            group_ = std::exchange(other.group_, nullptr);
        }
        return *this;
    }
    ~group_handle() { drop(); }

    explicit operator bool() const noexcept { return group_ != nullptr; }
    const group_ref& get() const noexcept { return group_; }

private:
    void drop() noexcept {
        if (group_)
            let_go(group_);
        group_.reset();
    }

    group_ref group_;
};

}  // namespace cohort::detail::inline v0_1
