// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cohort/detail/patience.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <stop_token>

#include <poll.h>

// What calls need that block their thread in a poll.
namespace cohort::loop {

/// Makes a poll return when a stop token gets a stop request.
class stop_event {
public:
    /// @throws sharing_error  there is no room for a descriptor
    explicit stop_event(const std::stop_token& token);
    /// -1: no stop can be asked for.
    int descriptor() const noexcept { return event_ ? event_.get() : -1; }

private:
    struct set {
        explicit set(int e) noexcept : event(e) {}
        void operator()() const noexcept;
        int event;
    };
    base::unique_fd event_;
    std::optional<std::stop_callback<set>> callback_;
};

/// Waits for one of the events, no longer than until `deadline`.
/// @return false: none came
bool poll_until(std::span<pollfd> events,
                std::optional<std::chrono::steady_clock::time_point> deadline) noexcept;

}  // namespace cohort::loop
