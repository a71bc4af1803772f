// SPDX-License-Identifier: BSL-1.0
#include "start/preloads.hpp"

#include <cohort/forkserver.hpp>

#include <algorithm>
#include <mutex>

namespace cohort {

namespace {

struct preload_list {
    std::mutex mutex;
    std::vector<const detail::function_node*> nodes;
};

preload_list& list() {
    static auto& leaked = *new preload_list;
    return leaked;
}

}  // namespace

namespace detail {

void add_preload(const function_node& node) {
    const std::lock_guard lock(list().mutex);
    auto& nodes = list().nodes;
    if (std::find(nodes.begin(), nodes.end(), &node) == nodes.end())
        nodes.push_back(&node);
}

}  // namespace detail

namespace start {

std::vector<worker::function_key> preloads() {
    const std::lock_guard lock(list().mutex);
    std::vector<worker::function_key> keys;
    for (const auto* node : list().nodes)
        keys.push_back(worker::key_of(*node));
    return keys;
}

}  // namespace start
}  // namespace cohort
