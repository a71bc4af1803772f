// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "output/routes/routes.hpp"

#include <cohort/detail/placement.hpp>
#include <cohort/detail/sink.hpp>

#include <optional>
#include <variant>
#include <vector>

namespace cohort::output {

/// The streams of one worker as they were asked for. The places are their numbers.
struct asked_streams {
    std::optional<int> given[3];
    std::vector<detail::sink> sinks[3];
    std::optional<detail::input> input;
};

inline bool is_one(const std::vector<detail::sink>& sinks, auto type) {
    return sinks.size() == 1 && std::holds_alternative<decltype(type)>(sinks.front());
}

/// The settings of one worker's streams.
asked_streams asked_of(const detail::placement& where);

/// Whether the console shows the worker.
bool shows(const detail::console_sink& console, int index);

/// Leaves what a machine does for a worker whose group spans several.
///
/// At the host all sinks for which the text goes to the origin become one chunks(). Its when_full
/// is `block` if one of them blocks, and its buffer the largest of theirs. An inherited stream goes
/// to the console of the agent, line by line, because the agent's own streams are the link's.
///
/// At the origin all sinks wait for room, because the host has dropped what may be. What is done at
/// the host becomes discard(), so that no file is opened twice.
/// @param index  of the worker in the plan
void leave_part_of(routes_of machine, int index, asked_streams& asked);

}  // namespace cohort::output
