// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/placement.hpp>
#include <cohort/where_it_runs.hpp>

#include <utility>

namespace cohort {

namespace detail::inline v0_1 {
struct placement_access;
}

/// The settings of one worker, for options::options_for(): `placement().env("GPU", 3).nice(5)`.
/// They stand over those of the options, and a command's stand over them. A value: copies and
/// compares; copies share the descriptors given with fd().
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
class COHORT_API placement : public where_it_runs<placement> {
public:
    /// No settings: the worker has those of the options.
    placement() = default;

    /// Whether all settings are equal.
    friend bool operator==(const placement&, const placement&) = default;

private:
    friend struct detail::placement_access;
    friend class where_it_runs<placement>;
    friend class limits_of<placement>;

    detail::placement& placed() noexcept { return where_; }

    detail::placement where_;
};

namespace detail::inline v0_1 {
struct placement_access {
    static placement&& where(cohort::placement&& of) noexcept { return std::move(of.where_); }
};
}  // namespace detail::inline v0_1

}  // namespace cohort
