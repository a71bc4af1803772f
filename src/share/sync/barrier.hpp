// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/sync/barrier_page.hpp"
#include "share/sync/wakeup.hpp"

#include <cohort/detail/registration.hpp>
#include <cohort/detail/shared_memory.hpp>

#include <memory>
#include <span>
#include <vector>

namespace cohort::share {

/// A barrier as one process has it.
struct barrier {
    barrier(detail::shared_memory m, std::shared_ptr<wakeup> w) noexcept
        : memory(std::move(m)), news(std::move(w)), page(memory.data(), memory.size()) {}

    /// Tells all parties that the phase is over.
    void announce() noexcept;
    void break_by(const barrier_cause& cause) noexcept;
    /// @return false: the phase was over before
    bool break_phase(std::uint32_t phase, const barrier_cause& cause) noexcept;

    const detail::shared_memory memory;
    const std::shared_ptr<wakeup> news;  // for operations that wait
    barrier_page page;
};

/// The barriers among descriptors that a group's workers get. Whoever watches the workers breaks
/// them when one ends.
std::vector<std::shared_ptr<barrier>> barriers_among(std::span<const detail::attachment> passed);

}  // namespace cohort::share
