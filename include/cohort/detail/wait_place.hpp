// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The place of an operation among those that wait at one object.
/// @tparam Cancel  ends the wait of an operation; has no effect on one that has completed
template <class Waited, void (*Cancel)(const std::weak_ptr<Waited>&, operation_id) noexcept>
class wait_place {
public:
    explicit wait_place(std::shared_ptr<Waited> at) noexcept : at_(std::move(at)) {}
    void set(operation_id id) noexcept { id_ = id; }

    /// Ends the wait of an operation that is destroyed before it completes, because it would keep
    /// its place.
    class guard {
    public:
        explicit guard(std::shared_ptr<wait_place> place) noexcept : place_(std::move(place)) {}
        guard(guard&& other) noexcept = default;
        guard& operator=(guard&&) = delete;
        ~guard() {
            if (place_ && place_->id_ != 0)
                Cancel(place_->at_, place_->id_);
        }
        void completed() noexcept { place_.reset(); }

    private:
        std::shared_ptr<wait_place> place_;
    };

    /// The handler in the operation's cancellation slot.
    class canceller {
    public:
        canceller(std::weak_ptr<Waited> at, operation_id id) noexcept
            : at_(std::move(at)), id_(id) {}
        void operator()(cancellation_type type) const noexcept {
            if (type != cancellation_type::none)
                Cancel(at_, id_);
        }

    private:
        std::weak_ptr<Waited> at_;
        operation_id id_;
    };

private:
    std::shared_ptr<Waited> at_;  // alive as long as the operation is
    std::atomic<operation_id> id_ = 0;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
