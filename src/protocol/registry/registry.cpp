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

detail::function_node::function_node(invoke_function f, const char* n) noexcept
    : invoke(f), name(n) {
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

/// A module that no key_of() names.
constexpr std::string_view any_module = "any:";

std::uint64_t hash_of(std::string_view text) noexcept {  // FNV-1a
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const unsigned char c : text)
        hash = (hash ^ c) * 0x100000001b3;
    return hash;
}

/// Whether functions of two source files may have this mangled name: static ones ("L" and their
/// length), those of anonymous namespaces, and lambdas. Says so of some others, too.
bool may_have_namesakes(std::string_view name) noexcept {
    for (auto at = name.find('L'); at != name.npos; at = name.find('L', at + 1))
        if (at + 1 < name.size() && name[at + 1] >= '0' && name[at + 1] <= '9')
            return true;
    return name.find("_GLOBAL__N") != name.npos || name.find("Ul") != name.npos ||
           name.find('$') != name.npos;
}

/// Null if two functions have the name. Other functions are registered twice where the program and
/// a library have both compiled them, and the library shows or shares no symbols: then it is the
/// latest, which is the program's.
const function_node* find_named(std::uint64_t hash) {
    const function_node* found = nullptr;
    for (const function_node* node = registered.load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
        if (node->name == nullptr || hash_of(node->name) != hash)
            continue;
        const std::string_view name = node->name;
        if (found != nullptr && (name != found->name || may_have_namesakes(name)))
            return nullptr;
        if (found == nullptr)
            found = node;
    }
    return found;
}

}  // namespace

protocol::function_key named_key_of(const function_node& node) {
    protocol::function_key key;
    append(key, any_module);
    key.offset = node.name != nullptr ? hash_of(node.name) : 0;
    return key;
}

bool is_named(const protocol::function_key& key) noexcept {
    return std::string_view(reinterpret_cast<const char*>(key.module.data()), key.module_length) ==
           any_module;
}

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
    if (is_named(key))
        return find_named(key.offset);
    for (const function_node* node = registered.load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
        if (key_of(*node) == key)
            return node;
    }
    return nullptr;
}

}  // namespace protocol
}  // namespace cohort
