// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/registry.hpp"

#include "base/files/settings.hpp"
#include "protocol/trace/names.hpp"

#include <cohort/forkserver.hpp>
#include <cohort/worker.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

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

namespace {

/// An entry of a list without a lock, because a forked copy might find a lock taken.
struct entry {
    const detail::function_node* node;
    const entry* before;
};
std::atomic<const entry*> last = nullptr;

}  // namespace

namespace detail::inline v0_1 {

void add_preload(const function_node& node) {
    auto* const added = new entry{&node, last};
    while (!last.compare_exchange_weak(added->before, added)) {
    }
}

}  // namespace detail::inline v0_1

namespace protocol {

std::vector<protocol::function_key> preloads() {
    std::vector<const detail::function_node*> nodes;
    for (const auto* at = last.load(); at != nullptr; at = at->before)
        nodes.push_back(at->node);
    std::ranges::reverse(nodes);
    std::vector<protocol::function_key> keys;
    for (auto at = nodes.begin(); at != nodes.end(); ++at)
        if (std::find(nodes.begin(), at, *at) == at)
            keys.push_back(protocol::key_of(**at));
    return keys;
}

}  // namespace protocol
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
