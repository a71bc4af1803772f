// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/values/group_end.hpp"
#include "hosts/values/wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cohort::multihost {

/// Where the end of a worker is read, and what may be in it.
struct end_reader_place {
    // The times in an end are ages, and are counted back from when it was sent: not later than
    // `now`, which is when it came, less the time that the fastest beat is under way.
    time_point now;
    std::optional<duration> offset;  // of the agent's clock to this one's; empty: it is not known
    std::chrono::system_clock::time_point time_of_day;  // of `now`, on this host
    time_point earliest;                                // the start of the group
    int workers = 0;                                    // there are so many
    std::uint64_t result_limit = 0;                     // of a result, in bytes
    std::size_t capture_limit = unlimited;  // of the head and of the tail of a stream, in bytes
    std::string host;                       // its name, for outcome::host

    /// When that was, by the clock of this host, within the life of the group.
    time_point when(far_clock told) const noexcept {
        return offset ? std::clamp(time_point(told + *offset), std::min(earliest, now), now) : now;
    }
};

/// Writes how a worker ended, without the attempts before it: each is told when it ends. A result
/// that holds descriptors is left out, and noted. Texts are as long as local records may make them
/// at most.
/// @param end  with an outcome
/// @param now  when it is sent: the ages are counted to here
std::vector<std::byte> write_end(const detail::ended_worker& end, time_point now);

/// The same without the worker's result and what was captured of its streams, which is noted: for
/// an agent that has no memory to send these.
std::vector<std::byte> write_bare_end(const detail::ended_worker& end, time_point now);

/// Reads what an agent says, which may be anything. Times are kept within the life of the group,
/// and in their order.
read_value<detail::ended_worker> read_end(std::span<const std::byte> bytes,
                                          const end_reader_place& here) noexcept;

}  // namespace cohort::multihost
