// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/context.hpp"

#include "base/files/settings.hpp"

#include <cohort/worker.hpp>

#include <atomic>

namespace cohort {
namespace protocol {
namespace {

constinit std::atomic<const protocol::control_order*> own_order{
    nullptr};  // leaked: threads may outlive main

}  // namespace

void activate(const protocol::control_order& order) {
    base::inherit(order.sharing_session,
                  static_cast<sharing_strategy>(order.sharing_strategy != 0));
    own_order.store(new protocol::control_order(order), std::memory_order_release);
}

const protocol::control_order* current_order() noexcept {
    return own_order.load(std::memory_order_acquire);
}

std::chrono::nanoseconds grace_period() noexcept {
    const auto* order = current_order();
    return std::chrono::nanoseconds(order == nullptr ? 0 : order->grace_period_ns);
}

}  // namespace protocol

namespace this_worker {

bool active() noexcept { return protocol::current_order() != nullptr; }

int index() noexcept {
    const auto* order = protocol::current_order();
    return order == nullptr ? -1 : order->index;
}

int size() noexcept {
    const auto* order = protocol::current_order();
    return order == nullptr ? 0 : order->size;
}

int attempt() noexcept {
    const auto* order = protocol::current_order();
    return order == nullptr ? 0 : order->attempt;
}

pid_t parent() noexcept {
    const auto* order = protocol::current_order();
    return order == nullptr ? 0 : order->parent;
}

}  // namespace this_worker
}  // namespace cohort
