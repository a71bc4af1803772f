// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/context.hpp"

#include "base/files/settings.hpp"

#include <cohort/worker.hpp>

#include <atomic>
#include <cstdlib>
#include <string>

namespace cohort {
namespace protocol {
namespace {

struct told_worker {
    protocol::control_order order;
    std::string host;
};
constinit std::atomic<const told_worker*> current{nullptr};  // leaked: threads may outlive main

}  // namespace

void activate(const protocol::control_order& order) {
    base::inherit(order.sharing_session,
                  static_cast<sharing_strategy>(order.sharing_strategy != 0));
    const char* const host = std::getenv("COHORT_HOST");
    current.store(new told_worker{order, host != nullptr ? host : ""}, std::memory_order_release);
}

const protocol::control_order* current_order() noexcept {
    const auto* const self = current.load(std::memory_order_acquire);
    return self == nullptr ? nullptr : &self->order;
}

std::string current_host() {
    const auto* const self = current.load(std::memory_order_acquire);
    return self == nullptr ? std::string() : self->host;
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

int local_index() noexcept {
    const auto* order = protocol::current_order();
    return order == nullptr ? -1 : order->local_index;
}

int local_size() noexcept {
    const auto* order = protocol::current_order();
    return order == nullptr ? 0 : order->local_size;
}

std::string host() { return protocol::current_host(); }

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
