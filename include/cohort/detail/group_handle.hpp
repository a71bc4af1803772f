// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/system_executor.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace cohort::detail::inline v0_1 {

[[noreturn]] inline void throw_empty_group(const char* call) {
    throw std::logic_error(std::string("cohort::group::") + call +
                           ": the group is empty (default-constructed or moved from)");
}

/// Where a completion runs when neither the handler nor the group has an executor.
inline asio::any_io_executor no_executor() {
    return asio::any_io_executor(asio::system_executor());
}

/// Owns a group: the last thing it does for it is to ask for its stop. Does nothing for an ended
/// group.
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
    const group_ref& get_or_throw(const char* call) const {
        if (!group_)
            throw_empty_group(call);
        return group_;
    }

private:
    void drop() noexcept {
        if (group_)
            request_stop(group_);
        group_.reset();
    }

    group_ref group_;
};

/// Makes a public group from its parts.
class group_access;

}  // namespace cohort::detail::inline v0_1
