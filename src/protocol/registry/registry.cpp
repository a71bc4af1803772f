// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/registry.hpp"

#include "protocol/trace/modules.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cohort {
namespace {

// Constant-initialised, because nodes register themselves from initialisers of other translation
// units.
constinit std::atomic<detail::function_node*> registered{nullptr};

}  // namespace

detail::function_node::function_node(invoke_function f) noexcept : invoke(f) {
    next = registered.load(std::memory_order_relaxed);
    while (!registered.compare_exchange_weak(next, this, std::memory_order_release,
                                             std::memory_order_relaxed)) {
    }
}

namespace protocol {
namespace {

using detail::function_node;

void append(protocol::function_key& key, std::string_view bytes) noexcept {
    const std::size_t room = key.module.size() - key.module_length;
    const std::size_t count = std::min(room, bytes.size());
    std::memcpy(key.module.data() + key.module_length, bytes.data(), count);
    key.module_length = static_cast<std::uint8_t>(key.module_length + count);
}

}  // namespace

protocol::function_key key_of(const function_node& node) {
    const auto address = reinterpret_cast<std::uintptr_t>(&node);
    protocol::function_key key;
    protocol::module at;
    if (!protocol::find_module(address, at))
        return key;
    key.offset = address - at.base;
    if (!at.build_id.empty()) {
        append(key, {reinterpret_cast<const char*>(at.build_id.data()), at.build_id.size()});
    } else {
        const std::string_view path = at.path;
        append(key, "name:");
        append(key, path.substr(path.rfind('/') + 1));
    }
    return key;
}

const function_node* find(const protocol::function_key& key) {
    for (const function_node* node = registered.load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
        if (key_of(*node) == key)
            return node;
    }
    return nullptr;
}

}  // namespace protocol
}  // namespace cohort
