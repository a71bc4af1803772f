// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/operation_registry.hpp>

#include <memory>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

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

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
