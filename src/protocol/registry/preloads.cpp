// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/preloads.hpp"

#include <cohort/forkserver.hpp>

#include <algorithm>
#include <atomic>

namespace cohort {

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
}  // namespace cohort
