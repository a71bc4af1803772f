// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/origin/host_link.hpp"
#include "loop/runtime/runtime.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace cohort::multihost {

/// What an agent has said to one part of a group, and is not read yet. Where that becomes too much,
/// its link is not read until half of it is, because the engine's thread may be busy, or have stood
/// still, while an agent that keeps the protocol goes on.
class backlog {
public:
    backlog(loop::runtime& runtime, std::shared_ptr<host_link> link) noexcept
        : runtime_(runtime), link_(std::move(link)) {}

    /// A message has come. On the output thread.
    void came(std::size_t bytes);
    /// One is being read now. On the engine's thread.
    void taken(std::size_t bytes);

private:
    void look();

    loop::runtime& runtime_;
    const std::shared_ptr<host_link> link_;
    std::atomic<std::size_t> cost_ = 0;
    std::atomic<bool> holds_link_ = false;
};

}  // namespace cohort::multihost
